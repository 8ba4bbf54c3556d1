"""Make parts: read pictures, run the model, write the rows, commit. In one process or several."""

import contextlib
import os
import platform
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import torch

from pttool.core.features.batches import Batch, batches
from pttool.core.features.hooks import Capture
from pttool.core.features.parts import (
    Failure,
    Record,
    RowsFile,
    part_file,
    record_file,
    record_text,
)
from pttool.core.features.preparing import Prepared
from pttool.core.features.ranks import Shard, own_device
from pttool.core.features.staging import place, staged
from pttool.core.workers import WorkerDied, Workers
from pttool.errors import PttoolError, UnavailableError

Told = tuple[type[PttoolError], str, str | None]  # an exception loses its hint between processes


@dataclass(frozen=True, slots=True)
class Job:
    """What parts are made of, where they go, whose they are, and the hash that their records have.

    `decoders` are the threads of each process that read ahead.
    """

    prepared: Prepared
    out: Path
    shard: Shard
    configuration: str
    decoders: int


@dataclass(frozen=True, slots=True)
class Made:
    """A finished part, and the seconds that the model took for it."""

    record: Record
    forward_s: float


def make(job: Job, parts: Sequence[int], processes: int) -> Generator[Made, None, None]:
    """Make parts, and yield each when it is committed, in any order.

    With several processes each does one part after another, with the same values. They are forked
    from this one, which must have run nothing in several threads, nor on a GPU; they end with it.

    Raises what the model or the system says of the first part that can't be made.
    """
    if processes == 1:
        maker = _Maker(job)
        with contextlib.closing(maker), contextlib.closing(maker.parts(parts)) as made:
            yield from made
        return
    workers: Workers[int, Made | Told] = Workers(_Worker(job).part, processes)
    with contextlib.closing(workers.results(parts)) as results:
        for number, result in results:
            match result:
                case Made():
                    yield result
                case WorkerDied():
                    raise UnavailableError(
                        f"the process at work on part {parts[number]} was killed",
                        "if memory ran out: a smaller -j; the same command goes on",
                    )
                case kind, message, hint:
                    raise kind(message, hint)


class _Worker:
    """Makes a part whenever it is asked to, each copy in its own process and on its own GPU."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._count = torch.multiprocessing.get_context("fork").Value("i", 0)
        self._maker: _Maker | None = None

    def part(self, part: int) -> Made | Told:
        """Make one part; what is wrong comes back as what to raise."""
        try:
            with contextlib.closing(self._own().parts([part])) as made:
                return next(made)
        except PttoolError as error:
            return type(error), error.message, error.hint

    def _own(self) -> "_Maker":
        if self._maker is None:
            with self._count.get_lock():
                number = self._count.value
                self._count.value += 1
            self._maker = _Maker(self._job, number)
        return self._maker


class _Maker:
    """A model with hooks, on the device of this process, and the parts that it makes."""

    def __init__(self, job: Job, worker: int = 0) -> None:
        prepared, running = job.prepared, job.prepared.request.running
        torch.set_num_threads(running.threads)
        device = own_device(prepared.device, worker, os.environ)
        self._job = job
        self._made_on = _processor(device)
        self._capture = Capture(
            prepared.loaded.module.to(device),
            prepared.wanted,
            name=prepared.loaded.name,
            pool=running.pool,
            amp=running.amp,
            channels_last=running.channels_last,
            compiled=running.compiled,
        )

    def close(self) -> None:
        """Take the hooks away."""
        self._capture.close()

    def parts(self, parts: Iterable[int]) -> Generator[Made, None, None]:
        """Make parts in their order; what comes next is read while the model is at work."""
        prepared, layout = self._job.prepared, self._job.prepared.manifest.layout
        stream = batches(
            prepared.inputs,
            (layout.numbers(part) for part in parts),
            prepared.preprocessing,
            prepared.request.reading,
            batch_size=prepared.request.running.batch_size,
            decoders=self._job.decoders,
        )
        with contextlib.closing(stream):
            for part, own in groupby(stream, lambda batch: batch.numbers.start // layout.size):
                yield self._made(part, own)

    def _made(self, part: int, stream: Iterable[Batch]) -> Made:
        job = self._job
        paths = {one.layer: part_file(one.layer, part) for one in job.prepared.wanted}
        with staged(job.out, job.shard) as folder:
            with contextlib.ExitStack() as stack:
                files = {}
                for layer, path in paths.items():
                    (folder / path).parent.mkdir()
                    files[layer] = RowsFile(stack.enter_context((folder / path).open("wb")), layer)
                rows = self._write(stream, files)
                layers = {layer: file.finish() for layer, file in files.items()}
            record = Record(
                part, job.configuration, layers, self._made_on, tuple(rows.ids), rows.failures
            )
            text = record_text(record)
            (folder / record_file(part)).write_text(text, encoding="utf-8")
            place(folder, job.out, [*paths.values(), record_file(part)])
        return Made(record, rows.forward_s)

    def _write(self, stream: Iterable[Batch], files: Mapping[str, RowsFile]) -> "_Rows":
        inputs = self._job.prepared.inputs
        ids: list[str] = []
        failures: list[Failure] = []
        forward_s = 0.0
        for batch in stream:
            start = time.perf_counter()
            outputs = self._capture(batch.pictures)
            forward_s += time.perf_counter() - start
            kept = batch.kept
            for layer, rows in outputs.items():
                files[layer].add(rows if len(kept) == len(rows) else rows[kept])
            ids += [inputs[batch.numbers[slot]].id for slot in kept]
            for failure in batch.failures:
                number = batch.numbers[failure.slot]
                failures.append(Failure(number, inputs[number].id, failure.reason))
        return _Rows(ids, tuple(sorted(failures, key=lambda one: one.input)), forward_s)


@dataclass(frozen=True, slots=True)
class _Rows:
    ids: Sequence[str]
    failures: tuple[Failure, ...]
    forward_s: float


def _processor(device: str) -> str:
    if device.startswith("cuda"):
        return torch.cuda.get_device_name(device)
    return f"{platform.machine()} with {torch.backends.cpu.get_cpu_capability()}"

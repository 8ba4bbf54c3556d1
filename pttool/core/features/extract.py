"""`extract`: what layers give for many pictures, in parts that a killed run goes on with."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

import torch

from pttool.core.features.joining import join
from pttool.core.features.making import Job, make
from pttool.core.features.manifest import FAILURES, begin, check_folder
from pttool.core.features.merge import complete, gathered, joint, missing
from pttool.core.features.outcome import Progress, Tally, left_out, report
from pttool.core.features.parts import folder_of, read_record
from pttool.core.features.preparing import Prepared, prepare
from pttool.core.features.ranks import Shard, choose_decoders, choose_device, choose_processes
from pttool.core.features.requests import Request, Sharing, Target
from pttool.core.features.staging import remove_abandoned
from pttool.core.report import Report


def extract(request: Request, sharing: Sharing, target: Target, *, progress: Progress) -> Report:
    """Write what layers give for each picture, and return what was done.

    Parts of the inputs, always the same ones, are made by this process and those that it starts;
    what a run with the same configuration has finished in the folder is kept. When all parts are
    there, `ids.txt`, `failures.jsonl` and the totals of the manifest are written, and the parts
    joined if `target` says so. Pictures that can't be read are the report's failure.

    Raises UsageError for layers or a configuration that don't fit, InputError where no picture is
    found, UnavailableError for weights, devices and what the system refuses.
    """
    check_folder(target.out)
    device = choose_device(request.running.device)
    torch.set_num_threads(1)  # before anything runs: what threads have begun can't be forked
    prepared = prepare(request, device)
    out, shard = target.out, sharing.shard
    begin(out, shard, prepared.manifest, overwrite=target.overwrite)
    try:
        tally, processes = _made(prepared, sharing, target, progress)
        return _ended(prepared, tally, processes, shard, target)
    finally:
        remove_abandoned(out, shard)


def _made(
    prepared: Prepared, sharing: Sharing, target: Target, progress: Progress
) -> tuple[Tally, int]:
    """Make the parts of a shard that aren't there; return the counts, and how many processes."""
    layout, digest = prepared.manifest.layout, prepared.manifest.hash
    own = sharing.shard.own(range(len(layout)))
    tally = Tally(target.out, sum(len(layout.numbers(part)) for part in own), progress)
    todo = []
    for part in own:
        record = read_record(target.out, part, digest)
        if record is None:
            todo.append(part)
        else:
            tally.found(record)
    processes = _processes(prepared, sharing, todo)
    decoders = sharing.decoders or choose_decoders(
        prepared.device, sharing.cpus, processes, prepared.request.running.threads
    )
    job = Job(prepared, target.out, sharing.shard, digest, decoders)
    tally.begin()
    with closing(make(job, todo, processes)) as parts:
        for made in parts:
            tally.add(made.record, made.forward_s)
    return tally, processes


def _processes(prepared: Prepared, sharing: Sharing, todo: Sequence[int]) -> int:
    asked = sharing.processes or choose_processes(
        prepared.device,
        sharing.shard,
        sharing.cpus // prepared.request.running.threads,
        compiled=prepared.request.running.compiled,
    )
    return max(1, min(asked, len(todo)))


def _ended(
    prepared: Prepared, tally: Tally, processes: int, shard: Shard, target: Target
) -> Report:
    """Complete the output if all parts are there, and return the report."""
    out, manifest = target.out, prepared.manifest
    paths = {one.layer: folder_of(one.layer) for one in prepared.wanted}
    absent = [] if shard.is_all else missing(out, manifest)
    if absent:
        note = (
            f"{len(absent)} of {len(manifest.layout)} parts are left to other shards: "
            f"pttool features merge {out} joins them when all are there"
        )
        failure = None if shard.is_rank else left_out(tally.failed, tally.images, f"{out}/part-*")
        made = report(prepared, tally, processes, shard, paths, (*prepared.notes, note))
        return replace(made, failure=failure)
    whole = gathered(out, manifest)
    complete(whole, shard)
    if target.joined is not None:
        paths = join(joint(whole), target.joined, shard)
    made = report(prepared, tally, processes, shard, paths, (*prepared.notes, *whole.notes))
    failed = len(whole.failures)
    failure = left_out(failed, manifest.layout.inputs, f"{out / FAILURES}")
    return replace(made, failure=failure)

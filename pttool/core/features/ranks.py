"""Which parts are whose: the ranks of torchrun, the shards of an array of jobs, the devices."""

import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import torch

from pttool.core.model.resolve import check_device
from pttool.errors import UsageError

DeviceChoice = Literal["auto", "cpu", "cuda"]


@dataclass(frozen=True, slots=True)
class Shard:
    """One of `count` that share the work without talking to each other; `number` is from 0.

    `is_rank` says that one which fails ends the others, as torchrun does.
    """

    number: int = 0
    count: int = 1
    is_rank: bool = False

    def own(self, parts: Iterable[int]) -> list[int]:
        """Return the parts that are this one's: those whose number, modulo `count`, is its own."""
        return [part for part in parts if part % self.count == self.number]

    @property
    def is_all(self) -> bool:
        """Whether there are no others."""
        return self.count == 1


def choose_shard(text: str | None, environment: Mapping[str, str]) -> Shard:
    """Return the shard that `--shard I/N` names, or that RANK and WORLD_SIZE do, or all.

    Raises UsageError for what is no shard, and for both at once.
    """
    of_torchrun = _of_torchrun(environment)
    if text is None:
        return of_torchrun
    if not of_torchrun.is_all:
        raise UsageError(
            f"--shard {text}: RANK and WORLD_SIZE already say which parts are whose",
            "leave out --shard, or unset WORLD_SIZE",
        )
    match = re.fullmatch(r"([0-9]+)/([0-9]+)", text)
    if match is None or int(match[1]) >= int(match[2]):
        raise UsageError(
            f"--shard {text}: is no shard", "I/N, with I from 0: --shard 0/4 to --shard 3/4"
        )
    return Shard(int(match[1]), int(match[2]))


def choose_device(choice: DeviceChoice) -> str:
    """Return "cpu" or "cuda"; raises UnavailableError for a device that isn't here."""
    # Without it, torch asks CUDA itself, and processes forked later can't use it.
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    if choice == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    check_device(choice)
    return choice


def choose_processes(device: str, shard: Shard, cpus: int, *, compiled: bool) -> int:
    """Return how many processes do the work by default: one for each CPU, or for each GPU.

    A rank is one already, and what torch.compile starts can't be forked.
    """
    if shard.is_rank or compiled:
        return 1
    if sys.platform != "linux":  # elsewhere a process with threads can't be forked
        return 1
    return torch.cuda.device_count() if device == "cuda" else cpus


def choose_decoders(device: str, cpus: int, processes: int, threads: int) -> int:
    """Return how many threads of a process read ahead by default.

    Beside a GPU, the CPUs have nothing else to do; else those of the model do, in turn with one.
    """
    if device == "cuda":
        return max(1, cpus // processes)
    return min(threads, 2)


def own_device(device: str, worker: int, environment: Mapping[str, str]) -> str:
    """Return the device of one process: the GPUs of a machine go round among its processes."""
    if device != "cuda":
        return device
    local = int(environment.get("LOCAL_RANK", 0))
    return f"cuda:{(local + worker) % torch.cuda.device_count()}"


def _of_torchrun(environment: Mapping[str, str]) -> Shard:
    rank, world = environment.get("RANK"), environment.get("WORLD_SIZE")
    if rank is None or world is None:
        return Shard()
    if not (rank.isdecimal() and world.isdecimal() and int(rank) < int(world)):
        raise UsageError(
            f"RANK={rank} and WORLD_SIZE={world} name no rank", "unset them, or use torchrun"
        )
    return Shard(int(rank), int(world), is_rank=int(world) > 1)

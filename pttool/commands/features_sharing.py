"""The options of `pttool features` that share the work among processes and machines."""

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from typer import Option

if TYPE_CHECKING:
    from pttool.core.features.requests import Sharing


@dataclass(frozen=True, slots=True)
class SharingOptions:
    """Who does the work, which changes nothing of what comes out."""

    jobs: Annotated[
        int | None,
        Option(
            "-j",
            "--jobs",
            metavar="N",
            min=1,
            help="Processes; by default one for each CPU granted, or for each GPU.",
            show_default=False,
        ),
    ] = None
    decoders: Annotated[
        int | None,
        Option(
            "--decoders",
            metavar="N",
            min=1,
            help="Threads of each process that read ahead.",
            show_default=False,
        ),
    ] = None
    shard: Annotated[
        str | None,
        Option(
            "--shard",
            metavar="I/N",
            help="Make part k only if k mod N is I, from 0, as for an array of jobs.",
            show_default=False,
        ),
    ] = None

    def sharing(self) -> "Sharing":
        """Return who does the work; raises UsageError for what is no shard."""
        from pttool.core.features.ranks import choose_shard
        from pttool.core.features.requests import Sharing

        shard = choose_shard(self.shard, os.environ)
        return Sharing(shard, self.jobs, self.decoders, _granted_cpus())


def _granted_cpus() -> int:
    """Return how many CPUs the process may use: those it may run on, at most its quota of time."""
    from pttool.core.env.processors import cpu_quota

    usable = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    quota = cpu_quota()
    return max(1, usable if quota is None else min(usable, round(quota)))

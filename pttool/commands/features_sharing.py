"""The options of `pttool features` that share the work among processes and machines."""

import os
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
        from pttool.core.processors import granted_cpus

        shard = choose_shard(self.shard, os.environ)
        return Sharing(shard, self.jobs, self.decoders, granted_cpus())

"""What findings are drawn from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pttool.core.profile.recording import Process
from pttool.core.profile.types import HotLine, Loader, Ops, Steady


@dataclass(frozen=True, slots=True)
class Evidence:
    """A run with enough steady steps to judge. `phases_s` is the whole run, which took `wall_s`.

    `sync_lines` are lines that wait for a GPU, by their share of the samples within steps.
    """

    steady: Steady
    wall_s: float
    phases_s: Mapping[str, float]
    main: Process
    workers: Sequence[Process]
    loader: Loader | None
    hot_lines: Sequence[HotLine]
    sync_lines: Sequence[HotLine]
    ops: Ops

    @property
    def data_wait(self) -> float:
        """The share of the steady time that waits for data."""
        return self.steady.fraction("data_wait")

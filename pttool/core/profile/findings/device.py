"""Findings about a GPU that has nothing to do, or is waited for."""

from pttool.core.profile.findings.evidence import Evidence
from pttool.core.profile.labels import short_place
from pttool.core.profile.types import Finding

IDLE = 0.3  # of the time in the windows
SYNCING = 0.05  # of the samples within steps
MOST_NAMED = 3


def gpu_idle(evidence: Evidence) -> Finding | None:
    """The GPU had nothing to do for a good part of the windows."""
    ops = evidence.ops
    if ops.device_busy_s is None or ops.wall_s <= 0:
        return None
    idle = max(0.0, 1 - ops.device_busy_s / ops.wall_s)
    if idle < IDLE:
        return None
    waits = evidence.data_wait >= IDLE
    return Finding(
        "gpu-idle",
        "warning",
        idle,
        f"the GPU had nothing to do {100 * idle:.0f} % of the time in which ops were recorded",
        "end the wait for data first"
        if waits
        else "give it more at once: a larger batch, torch.compile(mode='reduce-overhead')",
    )


def sync_calls(evidence: Evidence) -> Finding | None:
    """Lines of the loop that wait until the GPU has done all it was given."""
    fraction = sum(line.fraction for line in evidence.sync_lines)
    if fraction < SYNCING:
        return None
    named = ", ".join(
        short_place(line.file, line.line) for line in evidence.sync_lines[:MOST_NAMED]
    )
    return Finding(
        "sync-calls",
        "warning",
        fraction,
        f"{100 * fraction:.0f} % of the steps' time waits for the GPU at {named}",
        "call .item() and .cpu() every so many steps, not in each; keep sums on the GPU",
    )

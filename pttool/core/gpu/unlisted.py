"""Memory that is used on a GPU, though no process is listed that holds it."""

from collections.abc import Sequence

from pttool.core.gpu.types import Memory, Process

# What the driver itself keeps, where nobody computes: NVML's first call counts that as used.
IDLE_BYTES = 512 << 20
IDLE_PART = 50


def unlisted_bytes(memory: Memory | None, processes: Sequence[Process]) -> int:
    """Return how much more is used than these processes hold; 0 for what an idle GPU keeps.

    Of memory that the CPU shares, most is used by what has nothing to do with the GPU.
    """
    if memory is None or memory.used_bytes is None or memory.unified:
        return 0
    unlisted = memory.used_bytes - sum(each.memory_bytes or 0 for each in processes)
    usual = max(IDLE_BYTES, memory.total_bytes // IDLE_PART)
    return unlisted if unlisted > usual else 0

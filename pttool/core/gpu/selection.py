"""What a command line names: a GPU by index or UUID, or a MIG instance by its UUID."""

from collections.abc import Sequence

from pttool.core.gpu.types import Gpu
from pttool.errors import UsageError


def select(gpus: Sequence[Gpu], names: Sequence[str]) -> tuple[Gpu, ...]:
    """Return the GPUs named, in the order of the machine; no names are all of them.

    A name is an index of NVML's, which counts by PCI bus, or a UUID as far as it is unique; commas
    part several. A GPU of which only MIG instances are named is narrowed to those. Raises
    UsageError for a name that is neither, or fits several.
    """
    if not names:
        return tuple(gpus)
    found = {_find(gpus, part.strip()) for name in names for part in name.split(",")}
    chosen: list[Gpu] = []
    for gpu in gpus:
        instances = {uuid for index, uuid in found if index == gpu.index and uuid is not None}
        if (gpu.index, None) in found:
            chosen.append(gpu)
        elif instances:
            chosen.append(gpu.narrowed(instances))
    return tuple(chosen)


def _find(gpus: Sequence[Gpu], name: str) -> tuple[int, str | None]:
    """Return the index of the GPU that a name means, and the UUID of the instance if it is one."""
    found: list[tuple[int, str | None]]
    if name.isascii() and name.isdecimal():
        found = [(gpu.index, None) for gpu in gpus if gpu.index == int(name)]
    elif name.startswith("MIG-"):
        instances = [(gpu.index, each.uuid) for gpu in gpus for each in gpu.instances]
        found = [(index, uuid) for index, uuid in instances if (uuid or "").startswith(name)]
    else:
        found = [(gpu.index, None) for gpu in gpus if _has_uuid(gpu, name)]
    if len(found) == 1:
        return found[0]
    what = "fits several" if found else "is no GPU or MIG instance"
    known = ", ".join(f"{gpu.index} {gpu.uuid or ''}".strip() for gpu in gpus)
    raise UsageError(f"-i {name}: {what}", f"there are {known}")


def _has_uuid(gpu: Gpu, name: str) -> bool:
    """Whether a name that is long enough to be meant begins the UUID."""
    return name.startswith("GPU-") and (gpu.uuid or "").startswith(name)

"""The GPUs that a command line names: by index, UUID, or the beginning of one."""

from collections.abc import Sequence

from pttool.core.gpu.types import Gpu
from pttool.errors import UsageError


def select(gpus: Sequence[Gpu], names: Sequence[str]) -> tuple[Gpu, ...]:
    """Return the GPUs named, in the order of the machine; no names are all of them.

    A name is an index of NVML's, which counts by PCI bus, or a UUID as far as it is unique; commas
    part several. Raises UsageError for one that is no GPU, or fits several.
    """
    wanted = [part.strip() for name in names for part in name.split(",")]
    chosen = {_find(gpus, part) for part in wanted}
    return tuple(gpu for gpu in gpus if not names or gpu.index in chosen)


def _find(gpus: Sequence[Gpu], name: str) -> int:
    if name.isascii() and name.isdecimal():
        found = [gpu.index for gpu in gpus if gpu.index == int(name)]
    else:
        found = [gpu.index for gpu in gpus if _has_uuid(gpu, name)]
    if len(found) == 1:
        return found[0]
    what = "fits several GPUs" if found else "is no GPU"
    known = ", ".join(f"{gpu.index} {gpu.uuid or ''}".strip() for gpu in gpus)
    raise UsageError(f"-i {name}: {what}", f"there are {known}")


def _has_uuid(gpu: Gpu, name: str) -> bool:
    """Whether a name that is long enough to be meant begins the UUID."""
    return name.startswith("GPU-") and (gpu.uuid or "").startswith(name)

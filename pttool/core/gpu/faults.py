"""What to say of GPUs that don't answer, while the others are shown."""

from collections.abc import Sequence

from pttool.core.gpu.types import FieldError, Gpu
from pttool.errors import CheckFailedError

# Xid 79: the GPU has fallen off the bus (NVIDIA's Xid catalogue).
ADVICE = {
    FieldError.GPU_LOST: "look for Xid in dmesg; reset it ({reset}), or reboot: after Xid 79 only "
    "a reboot helps",
    FieldError.RESET_REQUIRED: "reset it: {reset}",
    FieldError.NO_PERMISSION: "see the modes of /dev/nvidia*, and the container's device rules",
}
OTHERWISE = "look for Xid and NVRM in dmesg, then reset it ({reset}) or reboot"


def unhealthy(gpus: Sequence[Gpu]) -> CheckFailedError | None:
    """Return the failure that names the GPUs that don't answer and what helps, or None."""
    bad = [gpu for gpu in gpus if gpu.fault is not None]
    if not bad:
        return None
    fault = bad[0].fault or ""
    said = ", ".join(f"GPU {gpu.index} ({gpu.fault})" for gpu in bad)
    reset = f"pttool gpu reset -i {','.join(str(gpu.index) for gpu in bad)}"
    advice = ADVICE.get(FieldError(fault), OTHERWISE) if fault in set(FieldError) else OTHERWISE
    return CheckFailedError(
        f"{len(bad)} of {len(gpus)} GPUs can't be used: {said}", advice.format(reset=reset)
    )

"""`pttool gpu doctor`."""

from pttool.options import FormatOptions
from pttool.output import emit


def doctor(*, output: FormatOptions) -> None:
    """Say why CUDA is not usable: one cause, and one thing to do about it.

    It looks at torch's build, the driver, its kernel modules, device files, containers, WSL and
    CUDA_VISIBLE_DEVICES, and asks the driver in processes of their own: one that crashes or hangs
    (20 seconds) is a finding too. Ends with exit code 1 when CUDA is not usable.

    Examples:
        pttool gpu doctor
        pttool gpu doctor --json | jq -r .summary.fix
        pttool gpu doctor || export DEVICE=cpu
    """
    destination = output.to_stdout()
    from pttool.core.gpu.doctor import doctor as diagnose

    emit("gpu doctor", diagnose(), destination)

"""NVML opened and closed, and its errors by name: of a field, or why there is no driver."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pynvml

from pttool.core.gpu.types import FieldError
from pttool.core.sysroot import rooted
from pttool.errors import UnavailableError

FIELD_ERRORS: dict[int, str] = {
    pynvml.NVML_ERROR_NOT_SUPPORTED: FieldError.NOT_SUPPORTED,
    pynvml.NVML_ERROR_NO_PERMISSION: FieldError.NO_PERMISSION,
    pynvml.NVML_ERROR_NOT_FOUND: FieldError.NOT_FOUND,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND: FieldError.DRIVER_TOO_OLD,
    pynvml.NVML_ERROR_GPU_IS_LOST: FieldError.GPU_LOST,
    pynvml.NVML_ERROR_RESET_REQUIRED: FieldError.RESET_REQUIRED,
    pynvml.NVML_ERROR_UNKNOWN: FieldError.UNKNOWN_ERROR,
}

# By NVML's code: a name for programs, and what is wrong and what helps on one line for people.
CAUSES: dict[int, tuple[str, str]] = {
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: (
        "no_driver_library",
        "no NVIDIA driver: libnvidia-ml.so.1 can't be loaded (install the driver; start a "
        "container with --gpus all)",
    ),
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: (
        "driver_not_loaded",
        "the NVIDIA kernel module is not loaded (sudo modprobe nvidia; after a new kernel "
        "install the driver again)",
    ),
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: (
        "version_mismatch",
        "version mismatch: the NVIDIA kernel module and the driver's library differ (reboot, or "
        "reload the nvidia modules)",
    ),
    pynvml.NVML_ERROR_NO_PERMISSION: (
        "no_permission",
        "no permission to reach the NVIDIA driver (see the modes of /dev/nvidia*, and the "
        "container's device rules)",
    ),
    pynvml.NVML_ERROR_GPU_IS_LOST: (
        "gpu_lost",
        "a GPU has fallen off the bus (see Xid in dmesg; reboot)",
    ),
    pynvml.NVML_ERROR_UNKNOWN: (
        "unknown_error",
        "NVML fails with an unknown error (in a container: restart it; else reboot)",
    ),
}


class NoDriverError(UnavailableError):
    """There is no usable driver, or no GPU; `cause` names it for programs."""

    def __init__(self, cause: str, message: str) -> None:
        super().__init__(message)
        self.cause = cause


@contextlib.contextmanager
def session() -> Iterator[None]:
    """Hold NVML open; sessions nest, and the last to end makes pttool no client of the driver.

    Raises NoDriverError where NVML can't start.
    """
    try:
        pynvml.nvmlInitWithFlags(0)
    except pynvml.NVMLError as error:
        raise no_driver(error.value) from error
    try:
        yield
    finally:
        with contextlib.suppress(pynvml.NVMLError):  # nothing is left to do for a broken driver
            pynvml.nvmlShutdown()


def no_driver(code: int) -> NoDriverError:
    """Return the error for NVML's code of a call that all else needs."""
    whose = _other_vendor() if code == pynvml.NVML_ERROR_LIBRARY_NOT_FOUND else None
    if whose is not None:
        cause, said = whose
        return NoDriverError(
            cause,
            f"pttool asks NVIDIA's driver, and {said}: pttool gpu info --torch shows what torch "
            "sees of them",
        )
    cause, message = CAUSES.get(
        code, (f"nvml_{code}", f"NVML fails with error {code}: pttool gpu doctor looks further")
    )
    return NoDriverError(cause, message)


def _other_vendor() -> tuple[str, str] | None:
    if sys.platform == "darwin":
        return "apple", "a Mac has GPUs of Apple"
    # The compute driver of AMD's GPUs.
    return ("amd", "the GPUs here are of AMD") if rooted("/dev/kfd").exists() else None


def call(function: Callable[..., Any], *arguments: Any) -> tuple[Any, str | None]:
    """Return what a function of NVML gives, or else None and the error's name."""
    try:
        return function(*arguments), None
    except pynvml.NVMLError as error:
        return None, FIELD_ERRORS.get(error.value, f"nvml_{error.value}")
    except UnicodeDecodeError:  # the text of a broken driver
        return None, FieldError.UNDECODABLE


class Reader:
    """Reads fields of one device; what fails is None, and its error is kept by the field's name."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle
        self.errors: dict[str, str] = {}

    def read(
        self,
        name: str,
        function: Callable[..., Any],
        *arguments: Any,
        convert: Callable[[Any], Any] = int,
    ) -> Any:
        """Return the converted value of a call on the device, or None."""
        value, error = call(function, self.handle, *arguments)
        if error is not None:
            self.errors[name] = error
            return None
        return convert(value)

"""Ask libcuda what cuInit says, in a process that may crash or hang instead of this one."""

import ctypes
import sys
from collections.abc import Callable

LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"


def tell_all(tell: Callable[..., None]) -> None:
    """Tell `library` (found, missing, broken), `driver_version`, the `code` of cuInit, `devices`.

    What was told before a call that never returns is still known.
    """
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError as error:
        tell(library="missing" if _is_missing(error) else "broken", detail=str(error))
        return
    tell(library="found")
    number = ctypes.c_int(0)
    if library.cuDriverGetVersion(ctypes.byref(number)) == 0:
        tell(driver_version=number.value)
    code = library.cuInit(0)
    tell(code=code)
    if code == 0 and library.cuDeviceGetCount(ctypes.byref(number)) == 0:
        tell(devices=number.value)


def _is_missing(error: OSError) -> bool:
    """Whether the file itself is not there, rather than damaged or in want of another library."""
    text = str(error)
    return text.startswith(f"{LIBRARY}: cannot open") or "Could not find module" in text

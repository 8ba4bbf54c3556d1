"""The one place where failures become a line on stderr and an exit code.

It imports nothing that Python has not loaded by itself: `--version` runs under it too.
"""

from __future__ import annotations

import errno
import gc
import os
import sys

TYPE_CHECKING = False  # as typing has it, whose import would double what --version loads
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

# Where the distribution has another name than the package.
_DISTRIBUTIONS = {"cv2": "opencv-python", "sklearn": "scikit-learn", "pynvml": "nvidia-ml-py"}
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
ISSUES = "https://github.com/pttool/pttool/issues"


def guarded(run: Callable[[], int]) -> int:
    """Run and return the exit code; no exception leaves, and standard output is done with."""
    _occupy_standard_descriptors()
    try:
        code = run()
        if sys.stdout is not None and not sys.stdout.closed:
            sys.stdout.flush()
    except BaseException as error:
        code = _explain(error)
        _drop_pending(sys.stdout, 1)
    _occupy_standard_descriptors()  # the user's code may have closed some
    os.dup2(2, 1)  # what a user's own threads and exit handlers still print is no data
    _drop_pending(sys.stderr, 2)
    # What torch has made needs no last collection: it takes half a second of every exit.
    gc.disable()
    gc.freeze()
    return code


def _explain(error: BaseException) -> int:
    from pttool.errors import ExitCode, PttoolError

    _show_traceback(error)
    match error:
        case PttoolError():
            _complain(error.message, error.hint)
            return error.exit_code
        case BrokenPipeError():
            return ExitCode.OK
        case KeyboardInterrupt():
            return error.args[0] if error.args else ExitCode.INTERRUPTED
        case ImportError() if not (error.name or "").startswith("pttool"):
            _complain_about_package(error)
            return ExitCode.UNAVAILABLE
        case OSError() if error.errno in _DISK and error.filename is None:
            # Only what writes text by itself, as Typer's help does, has not named its file by now.
            _complain(f"standard output: {error.strerror}", None)
            return ExitCode.UNAVAILABLE
        case OSError() if error.errno is None:
            _complain(f"a library can't be loaded: {error}", "reinstall the package it belongs to")
            return ExitCode.UNAVAILABLE
        case OSError() if error.filename is not None:
            _complain(f"{error.filename}: {error.strerror}", None)
            return ExitCode.BAD_INPUT
        case MemoryError():
            _complain("out of memory", "give it a smaller input or more memory")
            return ExitCode.UNAVAILABLE
    _complain_about_bug(error)
    return ExitCode.INTERNAL


def _complain_about_package(error: ImportError) -> None:
    package = (error.name or "").partition(".")[0]
    distribution = _DISTRIBUTIONS.get(package, package)
    if isinstance(error, ModuleNotFoundError) and package:
        _complain(f"{package} is not installed", f"pip install {distribution}")
    else:
        _complain(f"a package can't be imported: {error}", "reinstall it")


def _complain_about_bug(error: BaseException) -> None:
    _complain(
        f"a bug in pttool: {type(error).__name__}: {error}",
        f"please report it at {ISSUES} with the traceback that PTTOOL_DEBUG=1 shows",
    )


def _show_traceback(error: BaseException) -> None:
    if os.environ.get("PTTOOL_DEBUG") == "1":
        import traceback

        traceback.print_exception(error)


def _complain(message: str, hint: str | None) -> None:
    from pttool.output import talk
    from pttool.values import printable

    try:
        talk(f"pttool: error: {printable(message)}")
        if hint is not None:
            talk(f"hint: {printable(hint)}")
    except (OSError, ValueError):
        pass  # stderr is gone or closed: the exit code is all that is left to say


def _occupy_standard_descriptors() -> None:
    """Open /dev/null for each that is closed, or the next file would take its place."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _drop_pending(stream: TextIO | None, descriptor: int) -> None:
    """Empty a stream's buffer; into nothing, if a closed pipe or full disk can't take it.

    Python would try again at exit, and fail with exit code 120.
    """
    if stream is None or stream.closed:
        return
    try:
        stream.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, descriptor)
        os.close(nowhere)
        stream.flush()

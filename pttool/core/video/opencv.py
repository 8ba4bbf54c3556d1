"""Import cv2, or say how to mend an installation that is broken in one of the usual ways."""

from types import ModuleType

from pttool.errors import UnavailableError

REINSTALL = (
    "pip uninstall -y opencv-python opencv-python-headless opencv-contrib-python; "
    "pip install opencv-python"
)
HEADLESS = (
    "apt-get install libgl1, or pip uninstall -y opencv-python; pip install opencv-python-headless"
)


def load_cv2() -> ModuleType:
    """Return cv2, with one thread. Raises UnavailableError where it is missing or broken.

    Two wheels share its folder: removing one leaves a namespace without content (opencv-python
    issue 467). The wheel that can open windows needs libGL (issue 370).
    """
    try:
        import cv2
    except ModuleNotFoundError as error:
        raise UnavailableError("cv2 is not installed", "pip install opencv-python") from error
    except ImportError as error:
        reason = " ".join(str(error).split())
        hint = HEADLESS if "libGL" in reason or "libgthread" in reason else REINSTALL
        raise UnavailableError(
            f"cv2 is broken: reinstall one opencv wheel ({reason})", hint
        ) from error
    if not hasattr(cv2, "imencode"):
        raise UnavailableError("cv2 is broken: reinstall one opencv wheel", REINSTALL)
    cv2.setNumThreads(1)  # a worker process is the unit of parallel work
    return cv2

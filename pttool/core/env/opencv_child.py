"""Import cv2 in a process of its own: it fails without libGL, and may crash."""

import importlib.util
from collections.abc import Callable


def tell_all(tell: Callable[..., None]) -> None:
    """Tell `version`, or the `error` of the import; nothing where there is no cv2."""
    if importlib.util.find_spec("cv2") is None:
        return
    try:
        import cv2
    except Exception as error:  # a broken package fails in any way
        tell(error=" ".join(str(error).split()))
        return
    tell(version=cv2.__version__)

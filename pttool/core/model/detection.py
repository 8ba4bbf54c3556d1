"""What torchvision's detectors need: images in a list, their own size, masks that stay on meta."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from pttool.core.model.spec import InputSpec

PACKAGE = "torchvision.models.detection"


def is_detector(module: nn.Module) -> bool:
    """Tell whether a module is one of torchvision's detectors, which take a list of 3-d images."""
    return any(cls.__module__.startswith(PACKAGE) for cls in type(module).__mro__) and hasattr(
        module, "transform"
    )


def own_size(module: nn.Module) -> InputSpec:
    """Return a square image of the size that the detector scales its images to.

    Source: GeneralizedRCNNTransform, which in evaluation uses `fixed_size` or the last `min_size`.
    """
    transform: Any = module.transform
    height, width = transform.fixed_size or (transform.min_size[-1],) * 2
    return InputSpec((3, height, width))


@contextlib.contextmanager
def masks_kept_on_meta() -> Iterator[None]:
    """Let Mask R-CNN end: pasting masks into the image reads the values of their boxes.

    Pasting is the last step and multiplies nothing; in the block it only gives the right shape.
    """
    transform: Any = sys.modules.get(f"{PACKAGE}.transform")
    if transform is None:
        yield
        return
    paste = transform.paste_masks_in_image
    transform.paste_masks_in_image = _unpasted
    try:
        yield
    finally:
        transform.paste_masks_in_image = paste


def _unpasted(masks: Tensor, boxes: Tensor, img_shape: tuple[int, int], padding: int = 1) -> Tensor:
    return masks.new_empty((masks.shape[0], 1, *img_shape))

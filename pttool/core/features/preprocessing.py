"""From a picture to the tensor that a model takes: the transforms that its weights came with."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from PIL.Image import Image, new
from torch import Tensor, nn

from pttool.core.features.types import Shape
from pttool.core.foreign import foreign_code, one_line
from pttool.core.model.published import torchvision
from pttool.core.model.timm_models import timm
from pttool.errors import InputError, UsageError

Transform = Callable[[Image], Tensor]

# torchvision's reference recipe for ImageNet's validation pictures.
RESIZE, CROP = 256, 224
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_TWO_SIZES = ((500, 375), (375, 500))  # sides in another proportion, to see what follows them


@dataclass(frozen=True, slots=True)
class Preprocessing:
    """A transform with what a manifest says of it.

    `shape` is that of every tensor (C, H, W), None if it follows the size of the picture.
    """

    transform: Transform
    description: Mapping[str, Any]
    shape: Shape | None

    def __call__(self, picture: Image) -> Tensor:
        """Return the tensor (C, H, W), float32, of an RGB picture.

        Raises InputError for a picture that the transform can't take, or whose tensor has another
        shape than the others'.
        """
        try:  # not as foreign code, whose guards are not for threads
            tensor = self.transform(picture)
        except (OSError, ValueError, RuntimeError, MemoryError) as error:
            raise InputError(f"can't be transformed: {one_line(error)}") from error
        if self.shape not in (None, tuple(tensor.shape)):
            raise InputError(
                f"becomes {list(tensor.shape)}, and the first picture {list(self.shape or ())}",
                "--imagenet-val gives all the same size",
            )
        return tensor

    def pinned(self, picture: Image) -> "Preprocessing":
        """Return it with the shape of one picture, which all others must then have."""
        return replace(self, shape=tuple(self(picture).shape))


def imagenet_val() -> Preprocessing:
    """Return the recipe: resize to 256, crop the centre to 224, scale to 0..1, normalise."""
    transforms = _transforms()
    steps = [
        transforms.Resize(RESIZE),
        transforms.CenterCrop(CROP),
        transforms.ToTensor(),
        transforms.Normalize(MEAN, STD),
    ]
    description = {
        "name": "imagenet-val",
        "resize_size": RESIZE,
        "crop_size": CROP,
        "interpolation": "bilinear",
        "mean": list(MEAN),
        "std": list(STD),
    }
    return _preprocessing(transforms.Compose(steps), description)


def of_entry(entry: Any) -> Preprocessing:
    """Return the `transforms()` of weights that torchvision publishes.

    Raises UsageError for those of models that take clips or pairs of pictures.
    """
    transform = entry.transforms()
    kind = type(transform).__name__
    if kind in ("VideoClassification", "OpticalFlow"):
        takes = "clips" if kind == "VideoClassification" else "pairs of pictures"
        raise UsageError(
            f"{entry}: its model takes {takes}, not pictures", "take a model of pictures"
        )
    settings = {
        name: _plain(value)
        for name, value in vars(transform).items()
        if not name.startswith("_") and name != "training"
    }
    return _preprocessing(transform, {"name": str(entry), "type": kind, **settings})


def of_timm(name: str, model: nn.Module) -> Preprocessing:
    """Return the evaluation transform of a timm model's own data configuration."""
    with foreign_code(name):
        config = timm().data.resolve_model_data_config(model)
        transform = timm().data.create_transform(**config, is_training=False)
    settings = {key: _plain(value) for key, value in config.items()}
    return _preprocessing(transform, {"name": name, **settings})


def fitting_entry(name: str, model: nn.Module) -> Any:
    """Return the published weights whose transforms suit a model with other weights: DEFAULT.

    A vision transformer is built for one size, which not all of its entries have. None if there are
    no entries.
    """
    entries = torchvision().models.get_model_weights(name)
    size = getattr(model, "image_size", None)
    ordered = sorted(entries, key=lambda entry: entry != entries.DEFAULT)
    fitting = (entry for entry in ordered if _crop(entry) in (size, None))
    return next(iter(ordered), None) if size is None else next(fitting, entries.DEFAULT)


def _crop(entry: Any) -> int | None:
    crop = getattr(entry.transforms(), "crop_size", None)
    return crop[0] if crop else None


def _transforms() -> Any:
    torchvision()
    from torchvision import transforms

    return transforms


def _preprocessing(transform: Transform, description: Mapping[str, Any]) -> Preprocessing:
    shapes = {tuple(transform(new("RGB", size)).shape) for size in _TWO_SIZES}
    return Preprocessing(transform, description, shapes.pop() if len(shapes) == 1 else None)


def _plain(value: Any) -> Any:
    """Return a setting as JSON can hold it."""
    if isinstance(value, Enum):
        return value.value
    return list(value) if isinstance(value, tuple) else value

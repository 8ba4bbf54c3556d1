"""The names that papers gave to layers of the VGG and ResNet architectures."""

from collections.abc import Iterator

from torch import nn

# Simonyan and Zisserman 2015, as their published Caffe models name the layers.
_CLASSIFIER = {"fc6": 0, "relu6": 1, "fc7": 3, "relu7": 4, "fc8": 6}
# c2 to c5: Lin et al. 2017 (feature pyramids). pool5: He et al. 2016, their published Caffe models.
_RESNET = {
    "pool1": "maxpool", "c2": "layer1", "c3": "layer2", "c4": "layer3", "c5": "layer4",
    "pool5": "avgpool", "gap": "avgpool",
}  # fmt: skip


def aliases(model: nn.Module) -> dict[str, str]:
    """Return {alias: module name} for torchvision's VGGs and ResNets, empty for other models."""
    if _is(model, "torchvision.models.vgg", "VGG"):
        return dict(_of_vgg(model))
    if _is(model, "torchvision.models.resnet", "ResNet"):
        return _RESNET
    return {}


def _is(model: nn.Module, module: str, name: str) -> bool:
    """Tell whether a model is of a class of torchvision, which needn't be imported for that."""
    return any((cls.__module__, cls.__name__) == (module, name) for cls in type(model).__mro__)


def _of_vgg(model: nn.Module) -> Iterator[tuple[str, str]]:
    """Yield conv1_1, relu1_1 and so on, counted in `features`, and the names of `classifier`."""
    block, convolution = 1, 0
    for index, layer in enumerate(model.get_submodule("features").children()):
        name = f"features.{index}"
        match layer:
            case nn.Conv2d():
                convolution += 1
                yield f"conv{block}_{convolution}", name
            case nn.BatchNorm2d():
                yield f"bn{block}_{convolution}", name
            case nn.ReLU():
                yield f"relu{block}_{convolution}", name
            case nn.MaxPool2d():
                yield f"pool{block}", name
                block, convolution = block + 1, 0
    for alias, index in _CLASSIFIER.items():
        yield alias, f"classifier.{index}"

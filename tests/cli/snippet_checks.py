"""What has to hold of the names that a recipe's code leaves behind, by the recipe's number."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

Names = dict[str, Any]


def _tensors(names: Names) -> None:
    x = names["x"]
    assert names["pixels"].shape == (3, 4, 6)
    assert names["half"].dtype is torch.float16
    assert names["back"].size == (6, 4)
    assert torch.equal(names["mirrored"][:, 0], x[:, -1])
    assert torch.equal(names["shuffled"].sort(dim=0).values, x)
    assert (names["longer"].shape, names["deeper"].shape) == ((6, 4), (2, 3, 4))


def _one_hot(names: Names) -> None:
    assert names["one_hot"].tolist() == [[0, 0, 1, 0], [1, 0, 0, 0], [0, 1, 0, 0]]
    assert names["labels"].tolist() == [2, 0, 1]


def _matrices(names: Names) -> None:
    apart = names["x"][:, None] - names["y"]
    torch.testing.assert_close(names["distances"], apart.norm(dim=2))
    assert len(names["places"]) == len(names["rows"])


def _moving_average(names: Names) -> None:
    mean = names["model"][1].mean
    assert mean.abs().sum() > 0
    assert not mean.requires_grad
    assert torch.equal(names["ema"].module[1].mean, mean), "the first update copies"


def _label_smoothing(names: Names) -> None:
    assert names["as_in_the_recipe"].label_smoothing == 0.1 * 10 / 9


def _features(names: Names) -> None:
    assert names["features"]["avgpool"].shape == (2, 512, 1, 1)
    assert names["features"]["layer4.0.conv1"].min() < 0, "not what the ReLU made of it"


def _fine_tune(names: Names) -> None:
    assert sum(parameter.numel() for parameter in names["trainable"]) == 5130


def _resume(names: Names) -> None:
    assert {path.name for path in Path().glob("last*")} == {"last.pt", "last-best.pt"}
    code = torch.load("last.pt", weights_only=True)
    assert (code["epoch"], code["best_metric"]) == (10, 0.9)


def _l1(names: Names) -> None:
    assert len(names["weights"]) == 2, "the convolution's and the linear layer's"


def _cv2_picture(names: Names) -> None:
    assert names["batch"].shape == (1, 3, 24, 32)
    red = names["batch"][0, :, 12, 16]
    assert red[0] > 0.9 > 0.1 > red[2], "the picture is red, not blue"


def _seeds(names: Names) -> None:
    assert sorted(index for batch in names["order"] for index in batch) == list(range(8))
    assert torch.are_deterministic_algorithms_enabled()


def _conv_size(names: Names) -> None:
    assert names["size"] == (1, 64, 56, 56)


def _sample_tsn(names: Names) -> None:
    assert names["middle"] == [18, 56, 93, 131, 168, 206, 243, 281]
    assert len(names["within"]) == 8


def _training_loop(names: Names) -> None:
    assert names["accuracy"] > 0.9


def _read_rate(names: Names) -> None:
    assert names["rates"] == [0.1]


CHECKS: dict[int, Callable[[Names], None]] = {
    2: _seeds,
    5: _tensors,
    6: _one_hot,
    7: _matrices,
    8: _conv_size,
    12: _moving_average,
    19: _sample_tsn,
    20: _features,
    22: _fine_tune,
    25: _training_loop,
    26: _label_smoothing,
    28: _l1,
    34: _read_rate,
    36: _resume,
    40: _cv2_picture,
}

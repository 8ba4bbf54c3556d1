"""Blocks move, not too far, and no pixel is lost."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from pttool.recipes import region_confusion


def _by_loop(x: Tensor, num_blocks: int, neighbour: int, generator: torch.Generator) -> Tensor:
    """Cut, shuffle and join block by block, as the paper tells it."""
    drawn = [torch.rand(len(x), num_blocks, num_blocks, generator=generator) for _ in range(2)]
    rows, columns = ((2 * jitter - 1) * neighbour for jitter in drawn)
    pictures = []
    for n, picture in enumerate(x):
        blocks = [
            list(torch.chunk(row, num_blocks, dim=2))
            for row in torch.chunk(picture, num_blocks, dim=1)
        ]
        for j in range(num_blocks):
            keys = [i + rows[n, j, i] for i in range(num_blocks)]
            order = sorted(range(num_blocks), key=keys.__getitem__)
            column = [blocks[i][j] for i in order]
            for i in range(num_blocks):
                blocks[i][j] = column[i]
        for i in range(num_blocks):
            keys = [j + columns[n, i, j] for j in range(num_blocks)]
            order = sorted(range(num_blocks), key=keys.__getitem__)
            blocks[i] = [blocks[i][j] for j in order]
        pictures.append(torch.cat([torch.cat(row, dim=2) for row in blocks], dim=1))
    return torch.stack(pictures)


def _old_recipe(x: Tensor, num_blocks: int, neighbour: int) -> Tensor:
    """The copy that goes around, given one picture (C, H, W) as its indices want it."""
    steps = torch.arange(num_blocks)
    jitter = torch.randint(-neighbour, neighbour, (num_blocks, num_blocks))
    order = torch.argsort(
        steps[:, None].expand(num_blocks, num_blocks) + jitter, dim=0, stable=True
    )
    blocks = [torch.chunk(row, num_blocks, dim=2) for row in torch.chunk(x, num_blocks, dim=1)]
    moved = [[blocks[order[i, j]][j] for j in range(num_blocks)] for i in range(num_blocks)]
    return torch.cat([torch.cat(row, dim=2) for row in moved], dim=1)


SIZES = st.tuples(
    st.integers(1, 3), st.integers(1, 3), st.integers(1, 6), st.integers(1, 3), st.integers(1, 3)
)


@given(sizes=SIZES, neighbour=st.integers(1, 7), seed=st.integers(0, 2**32))
def test_equals_the_loop_and_keeps_every_pixel(
    sizes: tuple[int, int, int, int, int], neighbour: int, seed: int
) -> None:
    n, c, num_blocks, h, w = sizes
    count = n * c * num_blocks * h * num_blocks * w
    x = torch.arange(count).reshape(n, c, num_blocks * h, num_blocks * w)
    y = region_confusion(x, num_blocks, neighbour, torch.Generator().manual_seed(seed))
    assert torch.equal(y, _by_loop(x, num_blocks, neighbour, torch.Generator().manual_seed(seed)))
    assert torch.equal(y.flatten(1).sort().values, x.flatten(1))


@given(neighbour=st.integers(1, 4), seed=st.integers(0, 2**32))
def test_a_block_moves_at_most_2k_minus_1_places(neighbour: int, seed: int) -> None:
    blocks = 12
    places = torch.arange(blocks)
    rows, columns = places[:, None].expand(blocks, blocks), places.expand(blocks, blocks)
    x = torch.stack([rows, columns])[None]
    y = region_confusion(x, blocks, neighbour, torch.Generator().manual_seed(seed))
    assert int((y - x).abs().max()) <= 2 * neighbour - 1


def test_neighbour_1_moves_blocks_and_by_the_old_recipe_never() -> None:
    x = torch.arange(49.0).reshape(1, 1, 7, 7)
    assert all(torch.equal(_old_recipe(x[0], 7, 1), x[0]) for _ in range(20))
    assert not torch.equal(region_confusion(x, 7, 1), x)


def test_the_old_recipe_takes_channels_for_rows() -> None:
    x = torch.rand(2, 3, 4, 4)
    with pytest.raises(IndexError):
        _old_recipe(x, 4, 2)  # (N, C, H, W): 3 channels aren't cut into 4
    assert region_confusion(x, 4, 2).shape == x.shape


def test_each_picture_is_shuffled_in_its_own_way_and_gradients_pass() -> None:
    x = torch.arange(64.0).reshape(1, 1, 8, 8).repeat(2, 1, 1, 1).requires_grad_()
    y = region_confusion(x, 8, 2, torch.Generator().manual_seed(0))
    assert not torch.equal(y[0], y[1])
    (gradient,) = torch.autograd.grad((y * y.detach()).sum(), x)
    assert torch.equal(gradient, x)


@pytest.mark.parametrize(
    ("shape", "num_blocks", "neighbour", "said"),
    [
        ((3, 8, 8), 2, 1, "takes"),
        ((1, 3, 7, 8), 2, 1, "divide 7 x 8"),
        ((1, 3, 8, 7), 2, 1, "divide 8 x 7"),
        ((1, 3, 8, 8), 2, 0, "1 or more"),
        ((1, 3, 8, 8), 0, 1, "1 or more"),
    ],
)
def test_what_makes_no_sense_is_refused(
    shape: tuple[int, ...], num_blocks: int, neighbour: int, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        region_confusion(torch.zeros(shape), num_blocks, neighbour)

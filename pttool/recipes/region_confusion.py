"""The region confusion mechanism: shuffle the blocks of pictures, each among its neighbours."""

import torch
from torch import Tensor


def region_confusion(
    x: Tensor, num_blocks: int, neighbour: int, generator: torch.Generator | None = None
) -> Tensor:
    """Return pictures (N, C, H, W) cut into num_blocks x num_blocks, with the blocks shuffled.

    In each column of blocks they are sorted by their row plus a jitter from U(-neighbour,
    neighbour), then in each row by their column plus another: no block moves more than
    2 * neighbour - 1 places up, down, left or right. Each picture is shuffled in its own way; every
    pixel is kept. The paper takes neighbour from 1 to num_blocks - 1.

    Raises ValueError for another shape, an H or W that num_blocks doesn't divide, and num_blocks or
    neighbour below 1.

    Source: Chen et al., Destruction and Construction Learning for Fine-grained Image Recognition,
    CVPR 2019, section 3.1.
    """
    if x.dim() != 4:
        raise ValueError(f"region_confusion takes (N, C, H, W), not {tuple(x.shape)}")
    if num_blocks < 1 or neighbour < 1:
        raise ValueError(f"num_blocks {num_blocks} and neighbour {neighbour} must be 1 or more")
    pictures, channels, height, width = x.shape
    if height % num_blocks or width % num_blocks:
        raise ValueError(f"{num_blocks} blocks don't divide {height} x {width} pixels")
    rows = _jittered_order(x, num_blocks, neighbour, generator)
    columns = _jittered_order(x, num_blocks, neighbour, generator)
    from_row = rows.transpose(1, 2).gather(2, columns)
    size = (height // num_blocks, width // num_blocks)
    cut = x.reshape(pictures, channels, num_blocks, size[0], num_blocks, size[1])
    blocks = cut.permute(0, 2, 4, 1, 3, 5)
    picture = torch.arange(pictures, device=x.device)[:, None, None]
    shuffled = blocks[picture, from_row, columns]
    return shuffled.permute(0, 3, 1, 4, 2, 5).reshape(x.shape)


def _jittered_order(
    x: Tensor, num_blocks: int, neighbour: int, generator: torch.Generator | None
) -> Tensor:
    """Return (N, num_blocks, num_blocks): along dimension 2, places in the order to take them."""
    device = x.device if generator is None else generator.device
    jitter = torch.rand(len(x), num_blocks, num_blocks, device=device, generator=generator)
    places = torch.arange(num_blocks, device=device) + (2 * jitter - 1) * neighbour
    # Stable: rounding may make two that are 2 * neighbour apart equal, and they must not swap.
    return places.argsort(dim=2, stable=True).to(x.device)

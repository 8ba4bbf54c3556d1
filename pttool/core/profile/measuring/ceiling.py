"""The most multiply-accumulates per second that this machine reaches: its best matrix product."""

from functools import partial

import torch

from pttool.core.profile.measuring.timing import time_calls

SIZES = (256, 512, 1024, 2048, 4096, 8192)
LARGE = 1024
LONGEST_S = 0.01


def matmul_ceiling(*, device: str, dtype: torch.dtype, min_time_s: float) -> float:
    """Return MACs/s of the fastest product of two square matrices, of whatever size that is.

    Sizes double from 256, each timed for `min_time_s`, until one of 1024 or more takes 10 ms:
    larger ones are no faster. Threads, dtype and settings (TF32, …) are those that a model has
    here. A model can pass it where a convolution does fewer multiplications than its definition has
    (Winograd's algorithm).
    """
    generator = torch.Generator(device).manual_seed(0)  # the caller's own draws stay as they were
    best = 0.0
    for size in SIZES:
        matrix = torch.rand(size, size, device=device, dtype=dtype, generator=generator)
        product = partial(torch.mm, matrix, matrix)
        fastest = time_calls(product, device=device, min_time_s=min_time_s).at(0)
        best = max(best, size**3 / fastest)
        if size >= LARGE and fastest > LONGEST_S:
            break
    return best

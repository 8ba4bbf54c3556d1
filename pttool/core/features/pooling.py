"""--pool: what is kept of an output, as a rule on its shape."""

from torch import Tensor

from pttool.core.features.types import Pool
from pttool.errors import UsageError


def pooled(output: Tensor, pool: Pool, *, square: bool, layer: str) -> Tensor:
    """Return an output (B, ...) pooled: `gap` and `cls` give (B, C), `flatten` gives (B, N).

    `gap` is the mean over height and width of (B, C, H, W), or of (B, H, W, C) where the pictures
    are `square` and only that makes height and width equal, as inside Swin and ConvNeXt; it is the
    mean over the tokens of (B, N, C), and leaves (B, C) as it is. `cls` is token 0 of (B, N, C).

    Raises UsageError for an output of other dimensions.
    """
    match pool, output.ndim:
        case (Pool.NONE, _) | (Pool.GAP, 2):
            return output
        case Pool.FLATTEN, _:
            return output.flatten(1) if output.ndim > 1 else output[:, None]
        case Pool.GAP, 3:
            return output.mean(1)
        case Pool.GAP, 4:
            return output.mean(_space(output, square=square))
        case Pool.CLS, 3:
            return output[:, 0]
    wanted = "B, tokens, C" if pool is Pool.CLS else "B, C, H, W or B, tokens, C"
    raise UsageError(
        f"--pool {pool}: {layer} gives {list(output.shape)}, not {wanted}",
        "--pool none or --pool flatten take any output",
    )


def _space(output: Tensor, *, square: bool) -> tuple[int, int]:
    _, first, second, third = output.shape
    channels_last = square and first == second != third
    return (1, 2) if channels_last else (2, 3)

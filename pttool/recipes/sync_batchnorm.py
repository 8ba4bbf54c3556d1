"""The way back from SyncBatchNorm, for a model that leaves its process group."""

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

# How torch's Module names what it keeps of forward and backward hooks.
HOOKS = ("_forward_", "_backward_", "_is_full_backward_")


class AnyBatchNorm(nn.BatchNorm2d):
    """Batch normalisation of inputs (N, C, ...) of any dimension, as SyncBatchNorm's.

    A BatchNorm2d, so that what looks for those still finds it.
    """

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2 dimensions, got {input.dim()}")


def revert_sync_batchnorm(
    module: nn.Module, batch_norm: type[_BatchNorm] = AnyBatchNorm
) -> nn.Module:
    """Replace each SyncBatchNorm inside a module, and return the module, or what replaces it.

    The inverse of `torch.nn.SyncBatchNorm.convert_sync_batchnorm`, which is right for the way
    there. Parameters and buffers are the same tensors afterwards, so that optimizers keep theirs;
    train or eval mode and forward and backward hooks are kept too; `convert_sync_batchnorm` drops
    hooks, so `freeze` after it. A SyncBatchNorm doesn't know which class it was: say
    `batch_norm=torch.nn.BatchNorm1d` (or 2d, 3d) where all were of one and the class matters.
    """
    return _reverted(module, batch_norm, {})


def _reverted(
    module: nn.Module, batch_norm: type[_BatchNorm], done: dict[nn.Module, nn.Module]
) -> nn.Module:
    """Replace in the children too; `done` has each module once, as others may share it."""
    if module not in done:
        if isinstance(module, nn.SyncBatchNorm):
            done[module] = _plain(module, batch_norm)
        else:
            done[module] = module
        for name, child in module._modules.items():
            if child is not None:
                module._modules[name] = _reverted(child, batch_norm, done)
    return done[module]


def _plain(sync: nn.SyncBatchNorm, batch_norm: type[_BatchNorm]) -> nn.Module:
    plain = batch_norm(
        sync.num_features,
        sync.eps,
        sync.momentum,
        sync.affine,
        sync.track_running_stats,
        device="meta",  # whatever is built here is replaced
    )
    plain._parameters.update(sync._parameters)
    plain._buffers.update(sync._buffers)
    plain.training = sync.training
    hooks = {name: kept for name, kept in vars(sync).items() if name.startswith(HOOKS)}
    vars(plain).update(hooks)
    return plain

"""Which layers are normalisation layers, whatever their class."""

from torch import nn
from torch.nn.modules.batchnorm import _NormBase

NORMS = (_NormBase, nn.GroupNorm, nn.LayerNorm, nn.RMSNorm)

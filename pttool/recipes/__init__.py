"""Training recipes to import: each a function that does what its widely copied version gets wrong.

`pttool recipes` lists them beside the commands and torch's own one-liners.
"""

from pttool.recipes.bilinear_pool import bilinear_pool
from pttool.recipes.checkpoints import Progress, load_checkpoint, save_checkpoint
from pttool.recipes.freeze import Frozen, freeze
from pttool.recipes.init_weights import init_weights
from pttool.recipes.load_matching import Matching, load_matching
from pttool.recipes.param_groups import param_groups
from pttool.recipes.region_confusion import region_confusion
from pttool.recipes.seed_everything import Seeded, seed_everything
from pttool.recipes.sync_batchnorm import AnyBatchNorm, revert_sync_batchnorm
from pttool.recipes.warmup_cosine import WarmupCosine, warmup_cosine

__all__ = [
    "AnyBatchNorm",
    "Frozen",
    "Matching",
    "Progress",
    "Seeded",
    "WarmupCosine",
    "bilinear_pool",
    "freeze",
    "init_weights",
    "load_checkpoint",
    "load_matching",
    "param_groups",
    "region_confusion",
    "revert_sync_batchnorm",
    "save_checkpoint",
    "seed_everything",
    "warmup_cosine",
]

"""State dicts and training checkpoints, as the common programs save them."""

import argparse
import datetime
import importlib.util
import pathlib
from collections import OrderedDict
from typing import Any

import numpy as np
import torch
from torch import nn

from tests.core.ckpt.corpus_kinds import PICKLE_WAYS, TORCH_WAYS, ZIP_AND_LEGACY, Theme

THEME = Theme()


def small_net() -> nn.Module:
    """Return a convolution, a batch norm and a linear layer: 9 entries in its state dict."""
    layers = {"conv": nn.Conv2d(1, 2, 3), "bn": nn.BatchNorm2d(2), "fc": nn.Linear(2, 3)}
    return nn.Sequential(OrderedDict(layers))


def parallel() -> nn.Module:
    """Return the small net in DataParallel."""
    return nn.DataParallel(small_net())


def adamw(net: nn.Module) -> dict[str, object]:
    """Return the state of an optimizer that has made one step."""
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.05)
    for parameter in net.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    return optimizer.state_dict()


def prefixed(prefix: str, net: nn.Module | None = None) -> "OrderedDict[str, torch.Tensor]":
    """Return the small net's state dict with a prefix before each key."""
    state = (net or small_net()).state_dict()
    return OrderedDict((prefix + key, tensor) for key, tensor in state.items())


@THEME.saved("state_dict", {**TORCH_WAYS, **PICKLE_WAYS})
def _state_dict() -> object:
    return small_net().state_dict()


@THEME.saved("data_parallel", TORCH_WAYS)
def _data_parallel() -> object:
    return parallel().state_dict()


@THEME.saved("training", TORCH_WAYS)
def _training() -> object:
    net = parallel()
    args = argparse.Namespace(lr=0.1, device="cuda:0", gpus=[0, 1], milestones=None)
    return {
        "epoch": 7,
        "arch": "resnet50",
        "state_dict": net.state_dict(),
        "ema": prefixed("module."),
        "optimizer": adamw(net),
        "best_acc1": torch.tensor(76.5),
        "args": args,
        "fitness": np.float64(0.5),
        "classes": np.arange(5),
        "device": torch.device("cuda:0"),
        "size": torch.Size([3, 4]),
        "note": "module.conv.weight",
        "map": "cuda:0",
    }


@THEME.saved("lightning", {**ZIP_AND_LEGACY, "cuda0.ckpt": TORCH_WAYS["cuda0.pt"]})
def _lightning() -> object:
    net = small_net()
    best = {"best_model_score": torch.tensor(0.25), "dirpath": "/runs/1"}
    hyper = {"lr": 1e-3, "data": pathlib.PosixPath("/data"), "ns": argparse.Namespace(a=1)}
    return {
        "epoch": 1,
        "global_step": 10,
        "pytorch-lightning_version": "2.4.0",
        "state_dict": prefixed("model._orig_mod.", net),
        "loops": {"fit_loop": {"state_dict": {}, "epoch_progress": {"total": {"ready": 1}}}},
        "callbacks": {"ModelCheckpoint{'monitor': None, 'mode': 'min'}": best},
        "optimizer_states": [adamw(net)],
        "lr_schedulers": [{"last_epoch": 1, "_last_lr": [1e-3]}],
        "hparams_name": "kwargs",
        "hyper_parameters": hyper,
        "saved_at": datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=datetime.UTC),
    }


if importlib.util.find_spec("omegaconf"):

    @THEME.saved("omegaconf")
    def _omegaconf() -> object:
        config: Any = importlib.import_module("omegaconf").OmegaConf
        hyper = config.create({"net": {"width": [1, 2]}, "lr": "${net.width}"})
        return {"state_dict": small_net().state_dict(), "hyper_parameters": hyper}


@THEME.saved("compiled")
def _compiled() -> object:
    return prefixed("_orig_mod.")


@THEME.saved("compiled_parallel", ZIP_AND_LEGACY)
def _compiled_parallel() -> object:
    return prefixed("_orig_mod.module.")


@THEME.saved("collision")
def _collision() -> object:
    return {"module.a.weight": torch.ones(1), "a.weight": torch.zeros(1)}


@THEME.saved("partly_prefixed")
def _partly_prefixed() -> object:
    return {"module.a.weight": torch.ones(1), "b.weight": torch.zeros(1)}


@THEME.saved("prefix_inside")
def _prefix_inside() -> object:
    return {"features.module.0.weight": torch.ones(1), "classifier.1.weight": torch.zeros(1)}


@THEME.saved("prefix_look_alikes")
def _prefix_look_alikes() -> object:
    names = ("module", "module.", "modules.0.weight", "my_module.weight", "module.module.weight")
    return {name: torch.full((2,), float(at)) for at, name in enumerate(names)}


@THEME.saved("fsdp", ZIP_AND_LEGACY)
def _fsdp() -> object:
    wrapped = "_fsdp_wrapped_module.layers.0._checkpoint_wrapped_module."
    names = [wrapped + "weight", wrapped + "bias"]
    model = {name: torch.randn(2) for name in names}
    states = {
        name: {"step": torch.tensor(1.0), "exp_avg": torch.ones(2), "exp_avg_sq": torch.ones(2)}
        for name in names
    }
    group = {"lr": 1e-3, "betas": (0.9, 0.999), "params": names}
    return {"model": model, "optim": {"state": states, "param_groups": [group]}}


@THEME.saved("many", ZIP_AND_LEGACY)
def _many() -> object:
    """More tensors than a one-byte memo index can count."""
    return {f"module.layers.{at}.weight": torch.full((1,), float(at)) for at in range(300)}

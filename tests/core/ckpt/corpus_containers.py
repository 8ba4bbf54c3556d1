"""The formats that are not torch.save's."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn

from pttool.core.ckpt.types import Format
from tests.core.ckpt.corpus_kinds import PICKLE_WAYS, Theme, zipped
from tests.core.ckpt.corpus_state_dicts import adamw, small_net
from tests.core.ckpt.corpus_tensors import FLOATING, SMALL_FLOATS, WHOLE, of_type

THEME = Theme()
NUMBERS = ("f8", "f4", "f2", "c16", "c8", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?")
IN_SAFETENSORS = (
    *(*WHOLE, *FLOATING[:4], "complex64", "uint64", "uint32", "uint16"),
    *SMALL_FLOATS,
)


class Attributed(nn.Module):
    """What TorchScript saves beside parameters and buffers: attributes and a tied layer."""

    def __init__(self) -> None:
        super().__init__()
        self.net = small_net()
        self.scale = torch.tensor([2.0])
        self.sizes = [1, 2]
        self.register_buffer("temporary", torch.ones(2), persistent=False)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return anything that uses the attributes."""
        return images * self.scale + self.sizes[0] + torch.tensor([1.5])


@THEME.kind("safetensors/state_dict.safetensors", Format.SAFETENSORS)
def _safetensors(path: Path) -> None:
    save_file(small_net().state_dict(), path, metadata={"format": "pt", "note": "module.日本"})


@THEME.kind("safetensors/dtypes.safetensors", Format.SAFETENSORS)
def _safetensors_dtypes(path: Path) -> None:
    odd = {"scalar": torch.tensor(1.0), "empty": torch.empty(0, 3)}
    save_file({**{name: of_type(name) for name in IN_SAFETENSORS}, **odd}, path)


@THEME.kind("safetensors/no_tensors.safetensors", Format.SAFETENSORS)
def _safetensors_empty(path: Path) -> None:
    save_file({}, path)


@THEME.kind("safetensors/out_of_order.safetensors", Format.SAFETENSORS)
def _safetensors_out_of_order(path: Path) -> None:
    """A header that names its tensors in another order than their bytes are in, unpadded."""
    header = {
        "module.b": {"dtype": "F32", "shape": [2], "data_offsets": [4, 12]},
        "__metadata__": {"format": "pt"},
        "module.a": {"dtype": "F16", "shape": [2, 1], "data_offsets": [0, 4]},
    }
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(range(12)))


def _shards(path: Path, pattern: str) -> dict[str, dict[str, torch.Tensor]]:
    """Write the index of a state dict in two shards and return what each holds."""
    state = small_net().state_dict()
    names = [pattern.format(at) for at in (1, 2)]
    weight_map = {key: names[key.startswith("fc")] for key in state}
    total = sum(tensor.nbytes for tensor in state.values())
    path.write_text(json.dumps({"metadata": {"total_size": total}, "weight_map": weight_map}))
    return {name: {k: v for k, v in state.items() if weight_map[k] == name} for name in names}


@THEME.kind("sharded_safetensors/model.safetensors.index.json", Format.SHARDED)
def _sharded_safetensors(path: Path) -> None:
    for name, state in _shards(path, "model-0000{}-of-00002.safetensors").items():
        save_file(state, path.with_name(name), metadata={"format": "pt"})


@THEME.kind("sharded_torch/pytorch_model.bin.index.json", Format.SHARDED)
def _sharded_torch(path: Path) -> None:
    for name, state in _shards(path, "pytorch_model-0000{}-of-00002.bin").items():
        torch.save(state, path.with_name(name))


@THEME.kind("script/traced.pt", Format.TORCHSCRIPT)
def _traced(path: Path) -> None:
    net = small_net().get_submodule("conv").eval()
    trace: Any = torch.jit.trace
    torch.jit.save(trace(net, torch.ones(1, 1, 4, 4)), path)


@THEME.kind("script/scripted.jit", Format.TORCHSCRIPT)
def _scripted(path: Path) -> None:
    torch.jit.save(torch.jit.script(Attributed()), path, _extra_files={"labels.txt": "cat"})


@THEME.kind("script/mobile.ptl", Format.TORCHSCRIPT)
def _mobile(path: Path) -> None:
    scripted: Any = torch.jit.script(Attributed())
    scripted._save_for_lite_interpreter(str(path))


@THEME.kind("export/program.pt2", Format.EXPORTED)
def _exported(path: Path) -> None:
    program = torch.export.export(Attributed().eval(), (torch.ones(1, 1, 4, 4),))
    torch.export.save(program, path)


@THEME.kind("distributed", Format.DISTRIBUTED)
def _distributed(path: Path) -> None:
    _save_distributed(path)


@THEME.kind("distributed_files", Format.DISTRIBUTED)
def _distributed_files(path: Path) -> None:
    """A file for each tensor."""
    _save_distributed(path, single_file_per_rank=False)


def _save_distributed(path: Path, single_file_per_rank: bool = True) -> None:
    from torch.distributed.checkpoint import filesystem, state_dict_saver

    net = small_net()
    state: dict[str, Any] = {"model": net.state_dict(), "optim": adamw(net), "epoch": 3}
    writer = filesystem.FileSystemWriter(path, single_file_per_rank)
    state_dict_saver.save(state, storage_writer=writer, no_dist=True)


@THEME.kind("numpy/arrays.npz", Format.NPZ)
def _npz(path: Path) -> None:
    np.savez(path, **_numbers())


@THEME.kind("numpy/compressed.npz", Format.NPZ)
def _npz_compressed(path: Path) -> None:
    np.savez_compressed(path, **_numbers())


@THEME.kind("numpy/array.npy", Format.NPY)
def _npy(path: Path) -> None:
    np.save(path, np.asfortranarray(np.arange(6.0).reshape(2, 3)))


def _numbers() -> dict[str, Any]:
    named = {f"of_{np.dtype(code).name}": np.ones((2, 3), code) for code in NUMBERS}
    odd = {"fortran": np.ones((2, 3), order="F"), "scalar": np.array(1.5), "empty": np.ones((0, 2))}
    return {**named, **odd, "big_endian": np.array([1, 2, 3], dtype=">i4")}


@THEME.saved("numpy/arrays", {**PICKLE_WAYS, "pt": zipped(), "p5.pt": zipped(5)})
def _arrays() -> object:
    odd = {
        "strided": np.arange(12).reshape(3, 4)[:, ::2],
        "records": np.zeros(2, dtype=[("x", "<f4"), ("y", "<i8", (2,))]),
        "texts": np.array(["a", "bcd"]),
        "bytes": np.array([b"a"]),
        "objects": np.array([1, "a", None], dtype=object),
        "when": np.array(["2024-01-02"], dtype="datetime64[D]"),
    }
    scalars = [np.float64(0.5), np.int64(3), np.bool_(True), np.float32(0.25), np.str_("a")]
    return {"params": {**_numbers(), **odd}, "scalars": scalars, "dtype": np.dtype("f4")}


@THEME.kind("numpy/numpy_1.pkl", Format.PICKLE)
def _numpy_1(path: Path) -> None:
    """As numpy wrote it before 2.0, from the package that it has since renamed."""
    data = pickle.dumps({"a": np.arange(3.0), "b": np.float64(2)}, protocol=2)
    path.write_bytes(data.replace(b"cnumpy._core.", b"cnumpy.core."))

"""From what is asked for to what is needed for it: layers, a loaded model, inputs, a manifest."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import PIL
import torch

from pttool.core.features.batches import of_one_shape
from pttool.core.features.inputs import Inputs, list_inputs
from pttool.core.features.loading import Loaded, Plan, load, plan, seeded
from pttool.core.features.manifest import Manifest
from pttool.core.features.naming import Chosen, choose
from pttool.core.features.parts import Layout, default_size, folder_of
from pttool.core.features.pooling import pooled
from pttool.core.features.preprocessing import Preprocessing
from pttool.core.features.probe import probe
from pttool.core.features.requests import Request
from pttool.core.features.types import Layer, Pool, Wanted
from pttool.core.model.spec import FileModel, InputSpec, ModelSpec, TimmModel
from pttool.errors import UsageError


@dataclass(frozen=True, slots=True)
class Prepared:
    """All that parts are made of. The module is on the CPU; `device` is "cpu" or "cuda"."""

    request: Request
    device: str
    inputs: Inputs
    preprocessing: Preprocessing
    wanted: tuple[Wanted, ...]
    loaded: Loaded
    manifest: Manifest
    notes: tuple[str, ...]


def prepare(request: Request, device: str) -> Prepared:
    """Return what is needed to extract features on a device.

    Layers are chosen and a picture is read before weights are fetched. Raises UsageError for no
    layers, and as `loading.plan`, `loading.load`, `inputs.list_inputs` and `naming.choose` do.
    """
    model, running, reading = request.model, request.running, request.reading
    if not request.layers:
        hint = f"-l NAME; pttool features layers {model.name} lists them"
        raise UsageError("no layer is given", hint)
    with seeded(model.seed):  # a file may make its model when it is read
        planned = plan(
            model.spec,
            model.keywords,
            name=model.name,
            weights=model.weights,
            imagenet_val=model.imagenet_val,
            trust_pickle=model.trust_pickle,
        )
    inputs = list_inputs(request.paths, root=request.root, frames=reading.frames)
    preprocessing = of_one_shape(planned.preprocessing, inputs, reading)
    chosen, layers = _chosen(request, planned, preprocessing)
    loaded = load(planned, seed=model.seed, dtype=running.dtype)
    size = request.part_size or default_size(len(inputs), running.batch_size)
    configuration = {
        "model": _model(loaded, model.spec),
        "layers": {one.layer: asdict(one) for one in chosen.wanted},
        "preprocessing": {**preprocessing.description, "shape": preprocessing.shape},
        "images": asdict(reading),
        "running": {**asdict(running), "device": device},
        "part_size": size,
        "inputs": {"count": len(inputs), "sha256": _hash(inputs)},
        "versions": _versions(model.spec, has_videos=reading.frames is not None),
    }
    manifest = Manifest(configuration, Layout(len(inputs), size), layers)
    notes = (*planned.notes, *inputs.notes, *chosen.notes)
    wanted = chosen.wanted
    return Prepared(request, device, inputs, preprocessing, wanted, loaded, manifest, notes)


def _chosen(
    request: Request, planned: Plan, preprocessing: Preprocessing
) -> tuple[Chosen, Mapping[str, Mapping[str, Any]]]:
    """Return the tensors to take, and what the manifest says of each before any is there."""
    shape = preprocessing.shape
    assert shape is not None
    found = probe(planned.resolved, [InputSpec(shape)])
    if found.failure is not None:
        raise found.failure
    chosen = choose(found.layers, request.layers, model=request.model.name)
    layers = {layer.name: layer for layer in found.layers}
    described = {
        one.layer: {
            "folder": folder_of(one.layer),
            "shape": _row(one, layers[one.module], request.running.pool, shape[-2:]),
            "dtype": None,
        }
        for one in chosen.wanted
    }
    return replace(chosen, notes=(*found.notes, *chosen.notes)), described


def _row(one: Wanted, layer: Layer, pool: Pool, size: tuple[int, ...]) -> list[int]:
    """Return the shape for each picture; raises UsageError for a layer that can't be pooled so."""
    part = layer.outputs[one.call].part(one.keys)
    assert part is not None
    whole = torch.empty(part.shape, device="meta")
    return list(pooled(whole, pool, square=size[0] == size[1], layer=one.layer).shape[1:])


def _model(loaded: Loaded, spec: ModelSpec) -> dict[str, Any]:
    """Return what is known of a model; files go by their names and hashes, wherever they are."""
    code = spec.path.read_bytes() if isinstance(spec, FileModel) else None
    return {
        **loaded.description,
        "model": Path(loaded.name).name,
        "source": Path(loaded.description["source"]).name,
        "weights": Path(loaded.description["weights"]).name,
        "code_sha256": None if code is None else hashlib.sha256(code).hexdigest(),
    }


def _hash(inputs: Inputs) -> str:
    digest = hashlib.sha256()
    for one in inputs.ids():
        digest.update(f"{one}\n".encode())
    return digest.hexdigest()


def _versions(spec: ModelSpec, *, has_videos: bool) -> dict[str, str]:
    """Return the versions of what computes features: others may give other bits."""
    packages = ["torchvision"]
    packages += ["timm"] if isinstance(spec, TimmModel) else []
    packages += ["av"] if has_videos else []
    found = {package: version(package) for package in packages}
    return {"torch": str(torch.__version__), "pillow": PIL.__version__, **found}

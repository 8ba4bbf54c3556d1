"""Weights: published ones from a cache, files, random ones; and their absence, told at once."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import pytest
import safetensors.torch
import timm
import torch
from torch import Tensor, nn
from torchvision import models

from pttool.core.features.fetching import check_reachable
from pttool.core.features.loading import Loaded, load, plan
from pttool.core.features.preprocessing import imagenet_val
from pttool.core.model.spec import parse_model
from pttool.errors import InputError, PttoolError, UnavailableError, UsageError
from tests.core.ckpt.real_files import NotThereError, fetch
from tests.core.features import mtcnn
from tests.core.features.reference import captured, chosen, cloned, found_in

SMALL = "squeezenet1_1"
ENTRY = models.SqueezeNet1_1_Weights.IMAGENET1K_V1

MTCNN = str(Path(mtcnn.__file__))


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Empty caches, and a proxy that nobody answers for."""
    for name in ("https_proxy", "http_proxy", "HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hf"))


def _loaded(model: str, weights: str, **options: Any) -> Loaded:
    return load(plan(parse_model(model), {}, name=model, weights=weights), **options)


def _refusal(error: type[PttoolError], model: str, weights: str) -> tuple[str, str]:
    with pytest.raises(error) as caught:
        _loaded(model, weights)
    return caught.value.message, caught.value.hint or ""


def _assert_same(module: nn.Module, other: nn.Module) -> None:
    ours, theirs = module.state_dict(), other.state_dict()
    assert list(ours) == list(theirs)
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)


def _model(seed: int = 7) -> nn.Module:
    torch.manual_seed(seed)
    model: nn.Module = models.squeezenet1_1()
    return model


@pytest.mark.parametrize("weights", ["DEFAULT", "IMAGENET1K_V1"])
def test_published_weights_are_taken_from_the_cache_of_torch_hub(
    weights: str, tmp_path: Path
) -> None:
    cache = tmp_path / "torch" / "hub" / "checkpoints"
    cache.mkdir(parents=True)
    torch.save(_model().state_dict(), cache / Path(ENTRY.url).name)
    loaded = _loaded(SMALL, weights)
    _assert_same(loaded.module, models.squeezenet1_1(weights=ENTRY))
    _assert_same(loaded.module, _model())
    assert not loaded.module.training
    assert loaded.description["weights"] == "IMAGENET1K_V1"
    assert loaded.description["seed"] is None


def test_timm_weights_are_taken_from_the_cache_of_the_hub(tmp_path: Path) -> None:
    torch.manual_seed(7)
    model: Any = timm.create_model("test_resnet", pretrained=False)
    hub_id = model.pretrained_cfg["hf_hub_id"]
    repository = tmp_path / "hf" / f"models--{hub_id.replace('/', '--')}"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("0" * 40)
    (repository / "snapshots" / ("0" * 40)).mkdir(parents=True)
    file = repository / "snapshots" / ("0" * 40) / "model.safetensors"
    safetensors.torch.save_file(model.state_dict(), file)
    loaded = _loaded("timm:test_resnet", "DEFAULT")
    _assert_same(loaded.module, model)
    assert loaded.description["weights"] == model.pretrained_cfg["tag"]


@pytest.mark.parametrize(
    ("model", "host"),
    [(SMALL, "download.pytorch.org"), ("timm:test_resnet", "huggingface.co")],
)
def test_without_a_network_it_says_so(model: str, host: str) -> None:
    message, hint = _refusal(UnavailableError, model, "DEFAULT")
    assert f"{host} can't be reached: URLError" in message
    assert "--weights FILE or none" in hint


@pytest.fixture
def silent_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/weights.pth"


def test_a_host_that_never_answers_is_given_up(silent_server: str) -> None:
    with pytest.raises(UnavailableError, match=r"resnet: .*127.0.0.1 can't be reached"):
        check_reachable(silent_server, "resnet", seconds=0.2)


def test_random_weights_are_those_of_the_seed() -> None:
    loaded = _loaded(SMALL, "none", seed=7)
    _assert_same(loaded.module, _model(7))
    assert loaded.description["seed"] == 7
    other = _loaded(SMALL, "none", seed=8)
    assert other.description["weights_sha256"] != loaded.description["weights_sha256"]
    again = _loaded(SMALL, "none", seed=7)
    assert again.description == loaded.description
    notes = plan(parse_model(SMALL), {}, name=SMALL, weights="none").notes
    assert "random weights" in notes[0]


def _save(tensors: dict[str, Tensor], path: Path) -> str:
    torch.save(tensors, path)
    return str(path)


def test_a_file_of_weights(tmp_path: Path) -> None:
    tensors = _model().state_dict()
    plain = _save(tensors, tmp_path / "plain.pth")
    nested = tmp_path / "train.ckpt"
    torch.save({"epoch": 3, "state_dict": tensors}, nested)
    safe = tmp_path / "model.safetensors"
    safetensors.torch.save_file(tensors, safe)
    hashes = set()
    for file in (plain, str(nested), str(safe)):
        loaded = _loaded(SMALL, file)
        _assert_same(loaded.module, _model())
        hashes.add(loaded.description["weights_sha256"])
    assert len(hashes) == 1


def test_keys_that_do_not_fit_are_listed(tmp_path: Path) -> None:
    tensors = _model().state_dict()
    tensors["extra.weight"] = tensors.pop("features.0.bias")
    tensors["classifier.1.bias"] = torch.zeros(10)
    message, hint = _refusal(InputError, SMALL, _save(tensors, tmp_path / "w.pth"))
    assert "missing: features.0.bias" in message
    assert "unexpected: extra.weight" in message
    assert "of another shape: classifier.1.bias [10] for [1000]" in message
    assert f"pttool ckpt match {tmp_path / 'w.pth'} {SMALL}" in hint


def test_the_prefix_of_data_parallel_is_named(tmp_path: Path) -> None:
    tensors = nn.DataParallel(_model()).state_dict()
    message, hint = _refusal(InputError, SMALL, _save(tensors, tmp_path / "ddp.pth"))
    assert "unexpected: module.features.0.weight" in message
    assert "pttool ckpt strip-dataparallel" in hint


def test_a_file_that_holds_more_than_weights_is_not_run(tmp_path: Path) -> None:
    torch.save(_model(), tmp_path / "whole.pt")
    message, hint = _refusal(InputError, SMALL, str(tmp_path / "whole.pt"))
    assert "can run any code" in message
    assert "pttool ckpt extract" in hint


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file"),
        (b"", "is empty"),
        (b"hello there", "nothing that torch saved"),
        (b'\x40\0\0\0\0\0\0\0{"a":', "header is damaged"),
    ],
)
def test_files_that_are_no_weights(tmp_path: Path, content: bytes | None, words: str) -> None:
    file = tmp_path / "w.pt"
    if content is not None:
        file.write_bytes(content)
    assert words in _refusal(InputError, SMALL, str(file))[0]


def test_a_cut_safetensors_file(tmp_path: Path) -> None:
    file = tmp_path / "w.safetensors"
    safetensors.torch.save_file(_model().state_dict(), file)
    file.write_bytes(file.read_bytes()[:-1])
    assert "are not all there" in _refusal(InputError, SMALL, str(file))[0]


def test_wrong_words_for_weights(tmp_path: Path) -> None:
    assert "it has IMAGENET1K_V1" in _refusal(UsageError, SMALL, "IMAGENET1K_V9")[1]
    assert "r160_in1k" in _refusal(UsageError, "timm:test_resnet", "V1")[1]
    assert "is no file" in _refusal(UsageError, f"{MTCNN}:PNet", "V1")[0]
    assert "quantized" in _refusal(UsageError, "quantized_resnet18", "DEFAULT")[0]
    file = _save(_model().state_dict(), tmp_path / "w.pth")
    message, hint = _refusal(InputError, file, "DEFAULT")
    assert "is a state dict" in message
    assert f"--weights {file}" in hint


def test_a_pickled_model_brings_its_weights_if_it_is_trusted(tmp_path: Path) -> None:
    file = tmp_path / "whole.pt"
    torch.save(_model(), file)
    trusted = plan(parse_model(str(file)), {}, name=str(file), trust_pickle=True)
    loaded = load(trusted, dtype="bfloat16")
    _assert_same(loaded.module, _model().to(torch.bfloat16))
    assert "the weights that it comes with" in trusted.notes[0]


@pytest.mark.parametrize(("net", "size"), [("PNet", 24), ("RNet", 24), ("ONet", 48)])
def test_real_pretrained_networks_from_files(net: str, size: int) -> None:
    try:
        weights = fetch(f"{net.lower()}.pt")
    except NotThereError as reason:
        pytest.skip(str(reason))
    loaded = _loaded(f"{MTCNN}:{net}", str(weights))
    stored = torch.load(weights, weights_only=True)
    assert all(torch.equal(value, stored[key]) for key, value in loaded.module.state_dict().items())
    x = torch.randn(2, 3, size, size, generator=torch.Generator().manual_seed(1))
    reference = cloned(loaded.module, x)
    wanted = chosen(loaded.module, x, "*").wanted
    assert {one.module for one in wanted} == {name for name in reference if name}
    taken = captured(loaded.module, x, "*")
    assert all(torch.equal(taken[one.layer], found_in(reference, one)) for one in wanted)


def test_a_model_of_ones_own_gets_the_recipe_and_a_note() -> None:
    planned = plan(parse_model(f"{MTCNN}:PNet"), {}, name="net.py:PNet")
    assert planned.preprocessing.description == imagenet_val().description
    assert "no preprocessing of its own" in planned.notes[-1]

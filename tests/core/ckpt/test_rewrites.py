"""Converted and stripped checkpoints load in torch as the originals do, but for what changed."""

import pickle
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pttool.core.ckpt.convert_cpu import convert_cpu
from pttool.core.ckpt.editing.renaming import Renaming
from pttool.core.ckpt.pickles.edits import applied, edits, padded
from pttool.core.ckpt.pickles.traces import Tracer
from pttool.core.ckpt.reading import read
from pttool.core.ckpt.strip_dataparallel import strip_dataparallel
from pttool.core.ckpt.types import Format
from pttool.errors import InputError
from tests.core.ckpt import oracle
from tests.core.ckpt.corpus import KINDS
from tests.core.ckpt.oracle_tensors import OracleTensor
from tests.core.ckpt.real_files import REAL_FILES

EDITABLE = (Format.TORCH_ZIP, Format.TORCH_LEGACY, Format.TORCH_TAR)
NAMES = [name for name, kind in KINDS.items() if kind.format in EDITABLE]
CASES = Path(__file__).parents[2] / "cases" / "ckpt"


@pytest.mark.parametrize("name", NAMES)
def test_a_converted_file_holds_the_same_on_the_cpu(
    name: str, corpus: dict[str, Path], tmp_path: Path
) -> None:
    source, made = corpus[name], tmp_path / "made"
    convert_cpu(source, made)
    assert {tensor.device for tensor in read(made).tensors} <= {"cpu", "meta", "xla:0"}
    assert_loads_alike(source, made)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "collision.pt"])
def test_a_stripped_file_holds_the_same_under_new_names(
    name: str, corpus: dict[str, Path], tmp_path: Path
) -> None:
    source, made = corpus[name], tmp_path / "made"
    strip_dataparallel(source, made, Renaming(partial=True))
    assert_loads_alike(source, made)


@pytest.mark.parametrize("name", NAMES)
def test_added_prefixes_are_taken_away_again(
    name: str, corpus: dict[str, Path], tmp_path: Path
) -> None:
    """Longer names don't fit where the old ones were, so the file is written anew."""
    source, longer, made = corpus[name], tmp_path / "longer", tmp_path / "made"
    adding = Renaming(prefix="", added="quite.a.long.prefix.", wrappers=())
    if KINDS[name].format is Format.TORCH_TAR:
        with pytest.raises(InputError, match="longer"):
            strip_dataparallel(source, longer, adding)
        return
    strip_dataparallel(source, longer, adding)
    assert_loads_alike(source, longer)
    strip_dataparallel(longer, made, Renaming(prefix=adding.added, wrappers=()))
    assert_loads_alike(source, made)
    assert [tensor.path for tensor in oracle.tensors(made)] == [
        tensor.path for tensor in oracle.tensors(source)
    ]


def assert_loads_alike(source: Path, made: Path) -> None:
    """Assert that torch reads the same bits from both, and is as ready to."""
    before, after = oracle.tensors(source), oracle.tensors(made)
    assert list(map(_facts, before)) == list(map(_facts, after))
    for old, new in zip(before, after, strict=True):
        assert _bits(old.value) == _bits(new.value), old.path
    is_loadable = oracle.loads_weights_only(source)
    assert is_loadable == oracle.loads_weights_only(made)
    if is_loadable and zipfile.is_zipfile(made):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of protocol 3, which torch reads all the same
            torch.load(made, weights_only=True, map_location="cpu", mmap=True)
    if zipfile.is_zipfile(made) and zipfile.ZipFile(source).testzip() is None:
        assert zipfile.ZipFile(made).testzip() is None


def _facts(tensor: OracleTensor) -> tuple[Any, ...]:
    return (
        tensor.dtype,
        tensor.shape,
        tensor.stride,
        tensor.storage_offset,
        tensor.storage_bytes,
        tensor.requires_grad,
        tensor.storage,
    )


def _bits(value: Any) -> Any:
    if not isinstance(value, torch.Tensor) or value.is_meta:
        return None
    if value.layout is not torch.strided or value.is_quantized or value.is_nested:
        return None
    return (
        torch.empty(0, dtype=torch.uint8).set_(value.detach().untyped_storage()).numpy().tobytes()
    )


def test_a_gap_of_any_length_is_padded(tmp_path: Path) -> None:
    """The new pickle keeps its length, so that nothing else in the file moves."""
    value = {"weight": (1, 2.5, ()), "other": ["a", "a"]}
    pickle_ = pickle.dumps(value, protocol=2)
    for gap in range(40):
        longer = padded(pickle_, len(pickle_) + gap)
        assert longer is not None
        assert len(longer) == len(pickle_) + gap
        assert pickle.loads(longer) == value


@given(
    keys=st.lists(st.text(max_size=8), min_size=1, max_size=6),
    changed=st.sets(st.integers(0, 30)),
    protocol=st.integers(0, 5),
    new=st.text(max_size=10),
)
@settings(max_examples=300, derandomize=True, deadline=None)
def test_one_use_of_a_shared_text_changes_alone(
    keys: list[str], changed: set[int], protocol: int, new: str
) -> None:
    """Texts are fetched from the memo again and again; each use is changed, or not, by itself."""
    texts = [keys[index % len(keys)] for index in range(12)]
    raw = pickle.dumps(texts, protocol=protocol)
    trace = Tracer(raw, 0, "test")
    uses = trace.walk().items
    changes = {use.at: new for index, use in enumerate(uses) if index in changed}
    made = applied(raw, 0, len(raw), edits(trace, changes))
    wanted = [new if index in changed else text for index, text in enumerate(texts)]
    assert pickle.loads(made) == wanted


def test_the_case_of_a_gpu_checkpoint_on_a_cpu_box(tmp_path: Path) -> None:
    for name in ("train_cuda.pt", "train_cuda_legacy.pt", "train_cuda_p4.pt"):
        made = tmp_path / name
        report = convert_cpu(CASES / "02-cuda-on-cpu-box" / name, made)
        assert report.summary["storages"] == 37
        assert report.summary["device_objects"] == 1
        loaded = torch.load(made, weights_only=False)
        assert loaded["args"].device == "cuda:0"
        assert loaded["dev"] == torch.device("cuda:0")
        convert_cpu(made, tmp_path / f"{name}.objects", device_objects=True)
        changed = torch.load(tmp_path / f"{name}.objects", weights_only=False)["dev"]
        assert changed == torch.device("cpu")


def test_the_case_of_a_data_parallel_prefix(tmp_path: Path) -> None:
    case = CASES / "01-dp-prefix"
    report = strip_dataparallel(case / "dp.pt", tmp_path / "made.pt", Renaming())
    assert (report.summary["renamed"], report.summary["keys"]) == (9, 9)
    made = torch.load(tmp_path / "made.pt", weights_only=True, map_location="cpu")
    plain = torch.load(case / "plain.pt", weights_only=True)
    assert list(made) == list(plain)
    assert all(torch.equal(made[name], plain[name]) for name in plain)
    assert set(made._metadata) == {"", "conv", "bn", "fc"}


def test_the_case_of_a_compiled_module_in_a_lightning_checkpoint(tmp_path: Path) -> None:
    case = CASES / "03-orig-mod-nesting"
    strip_dataparallel(case / "orig_module.pt", tmp_path / "made.pt", Renaming())
    assert list(torch.load(tmp_path / "made.pt", weights_only=True)) == ["a", "b"]
    report = strip_dataparallel(case / "lightning.ckpt", tmp_path / "made.ckpt", Renaming())
    assert report.summary["renamed"] == 9
    before = torch.load(case / "lightning.ckpt", weights_only=False)
    after = torch.load(tmp_path / "made.ckpt", weights_only=False)
    assert list(after["state_dict"]) == [
        name.replace("_orig_mod.", "") for name in before["state_dict"]
    ]
    for part in ("optimizer_states", "callbacks", "hyper_parameters"):
        assert str(after[part]) == str(before[part])


def test_names_that_would_become_one_are_refused_by_name(
    corpus: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"a\.weight"):
        strip_dataparallel(corpus["collision.pt"], tmp_path / "made.pt", Renaming())
    assert not (tmp_path / "made.pt").exists()


@pytest.mark.parametrize("name", REAL_FILES)
def test_a_real_file_loads_on_a_machine_without_its_gpu(
    name: str, real_file: Callable[[str], Path], tmp_path: Path
) -> None:
    """With no map_location: lpips and resemblyzer were saved on cuda:0."""
    if REAL_FILES[name].format not in EDITABLE:
        pytest.skip("its devices aren't in a pickle that can be edited")
    source, made = real_file(name), tmp_path / "made"
    convert_cpu(source, made)
    torch.load(made, weights_only=True)
    assert_loads_alike(source, made)
    assert len(oracle.tensors(made)) == REAL_FILES[name].tensors

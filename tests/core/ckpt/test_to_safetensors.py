"""`to_safetensors` and `to_torch`: read by safetensors and torch, equal to the original."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_model, save_file, save_model
from torch import nn

from pttool.core.ckpt.cast import cast
from pttool.core.ckpt.editing.safetensors_names import rename, tensor_names
from pttool.core.ckpt.extract import extract
from pttool.core.ckpt.shard import shard
from pttool.core.ckpt.to_safetensors import to_safetensors
from pttool.core.ckpt.to_torch import to_torch
from pttool.errors import InputError, UnavailableError, UsageError
from tests.core.ckpt import oracle
from tests.core.ckpt.written import expected, loaded, loaded_safetensors, same, state_dicts

# What the format has no type for.
WITHOUT_TYPE = ("dtypes", "new_dtypes", "numpy/arrays", "numpy/compressed")


class Tied(nn.Module):
    """A head that is the embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(5, 3)
        self.norm = nn.BatchNorm1d(3)
        self.head = nn.Linear(3, 5, bias=False)
        self.head.weight = self.embedding.weight


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize("name", [n for n in state_dicts() if not n.startswith(WITHOUT_TYPE)])
def test_every_kind_there_and_back(name: str, corpus: dict[str, Path], tmp_path: Path) -> None:
    wanted = expected(name, corpus[name])
    to_safetensors(corpus[name], tmp_path / "out.safetensors")
    found, metadata = loaded_safetensors(tmp_path / "out.safetensors")
    tied = {key: found[kept] for key, kept in metadata.items() if kept in found}
    assert metadata["format"] == "pt"
    assert all(same(tensor, wanted[key]) for key, tensor in {**found, **tied}.items())
    to_torch(tmp_path / "out.safetensors", tmp_path / "back.pt")
    back = loaded(tmp_path / "back.pt")
    assert back.keys() == found.keys() | tied.keys()
    assert all(same(back[key], wanted[key]) for key in back)


def test_tied_weights_are_kept_once_as_the_library_does(tmp_path: Path) -> None:
    model = Tied()
    torch.save(model.state_dict(), tmp_path / "in.pt")
    report = to_safetensors(tmp_path / "in.pt", tmp_path / "out.safetensors")
    save_model(Tied(), str(tmp_path / "theirs.safetensors"), metadata={"format": "pt"})
    found, metadata = loaded_safetensors(tmp_path / "out.safetensors")
    theirs, wanted = loaded_safetensors(tmp_path / "theirs.safetensors")
    assert found.keys() == theirs.keys()
    assert metadata == wanted == {"format": "pt", "head.weight": "embedding.weight"}
    assert report.notes == ("head.weight is embedding.weight again: kept once",)
    fresh = Tied()
    missing, unexpected = load_model(fresh, tmp_path / "out.safetensors")
    assert (len(missing), len(unexpected)) == (0, 0)
    assert torch.equal(fresh.head.weight, model.head.weight)

    to_torch(tmp_path / "out.safetensors", tmp_path / "back.pt")
    back = loaded(tmp_path / "back.pt")
    assert back["head.weight"].data_ptr() == back["embedding.weight"].data_ptr()
    Tied().load_state_dict(back)


def test_tied_names_of_a_safetensors_file_are_never_lost(tmp_path: Path) -> None:
    """The library keeps only one of them, and says so in the metadata."""
    path, out = tmp_path / "in.safetensors", tmp_path / "out.pt"
    model = Tied()
    save_model(model, str(path), metadata={"step": "7"})
    wanted = model.state_dict()

    extract(path, out)
    assert loaded(out).keys() == wanted.keys()
    cast(path, "float32", out)
    found = loaded(out)
    assert all(same(found[key], wanted[key]) for key in wanted)
    assert found["head.weight"].data_ptr() == found["embedding.weight"].data_ptr()
    shard(path, tmp_path / "shards", max_size=1000, safetensors=False)
    (only,) = (tmp_path / "shards").glob("*.bin")
    assert loaded(only).keys() == wanted.keys()
    extract(path, out, filter="head*")
    assert same(loaded(out)["head.weight"], wanted["head.weight"])

    to_safetensors(path, tmp_path / "again.safetensors", filter="head*")
    found, metadata = loaded_safetensors(tmp_path / "again.safetensors")
    assert found.keys() == {"head.weight"}
    assert metadata == {"format": "pt", "step": "7"}


def test_tied_names_are_renamed_with_the_others(tmp_path: Path) -> None:
    path, out = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    save_model(nn.DataParallel(Tied()), str(path), metadata={"step": "module.embedding"})
    names = tensor_names(path)
    assert names[-1] == "module.head.weight"
    rename(path, out, {name: name.removeprefix("module.") for name in names})
    assert loaded_safetensors(out)[1] == {
        "step": "module.embedding", "head.weight": "embedding.weight"
    }  # fmt: skip
    missing, unexpected = load_model(Tied(), out)
    assert not missing
    assert not unexpected


@pytest.mark.parametrize(
    ("new", "error", "said"),
    [
        ("__metadata__", InputError, "can't become '__metadata__'"),
        ("norm.bias", InputError, "is taken"),
        ("\ud800", UsageError, "isn't Unicode"),
        ("a" * 100_000_000, InputError, "the format allows 100,000,000"),
    ],
    ids=["metadata", "taken", "surrogate", "long"],
)
def test_a_name_that_the_format_cannot_hold_is_refused(
    new: str, error: type[Exception], said: str, tmp_path: Path
) -> None:
    path, out = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    save_model(Tied(), str(path))
    with pytest.raises(error, match=said):
        rename(path, out, {"norm.weight": new})
    assert not out.exists()


def test_elements_are_aligned(tmp_path: Path) -> None:
    """As the library does: the widest first, so that none begins within another's step."""
    state = {
        "a": torch.ones(3).half(),
        "b": torch.ones(3),
        "c": torch.tensor(1),
        "d": torch.ones(1),
    }
    torch.save(state, tmp_path / "in.pt")
    to_safetensors(tmp_path / "in.pt", tmp_path / "out.safetensors")
    content = (tmp_path / "out.safetensors").read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    assert start % 8 == 0
    wanted = [state[name].numpy().tobytes() for name in "cbda"]
    assert content[start:] == b"".join(wanted)


def test_views_that_overlap_get_copies_and_it_is_said(tmp_path: Path) -> None:
    whole = torch.arange(12.0).view(3, 4)
    state = {"whole": whole, "row": whole[1], "columns": whole.t()}
    torch.save(state, tmp_path / "in.pt")
    report = to_safetensors(tmp_path / "in.pt", tmp_path / "out.safetensors")
    found, _ = loaded_safetensors(tmp_path / "out.safetensors")
    assert all(same(found[key], state[key]) for key in state)
    assert report.notes == ("whole, row, columns share elements: each has a copy of its own",)


def test_a_transposed_tensor_is_read_in_parts(tmp_path: Path) -> None:
    """Larger than a block, in an order that can't be cut along the first dimension alone."""
    tensor = torch.arange(2_000_000, dtype=torch.int32).view(1, 1000, 2000).transpose(1, 2)
    torch.save({"a": tensor}, tmp_path / "in.pt")
    to_safetensors(tmp_path / "in.pt", tmp_path / "out.safetensors")
    assert same(loaded_safetensors(tmp_path / "out.safetensors")[0]["a"], tensor)


@pytest.mark.parametrize("name", ["sparse.pt", "quantized.pt", "meta.pt", "dtypes.pt"])
def test_what_the_format_cannot_hold_is_refused_by_name(
    name: str, corpus: dict[str, Path], tmp_path: Path
) -> None:
    key = {"sparse.pt": "coo", "quantized.pt": "per_tensor", "meta.pt": "meta"}
    with pytest.raises(InputError, match=f"{corpus[name]}: {key.get(name, 'complex128')} is "):
        to_safetensors(corpus[name], tmp_path / "out.safetensors")
    assert list(tmp_path.iterdir()) == []


def test_a_tensor_that_claims_to_be_huge_is_refused(tmp_path: Path) -> None:
    torch.save({"a": torch.zeros(1).expand(1 << 30, 1 << 30)}, tmp_path / "in.pt")
    with pytest.raises(UnavailableError, match="bytes, and"):
        to_safetensors(tmp_path / "in.pt", tmp_path / "out.safetensors")
    assert [path.name for path in tmp_path.iterdir()] == ["in.pt"]


def test_metadata_is_kept(corpus: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "out.safetensors"
    save_file(oracle.load(corpus["training.pt"])["ema"], out, metadata={"step": "7"})
    to_safetensors(out, tmp_path / "again.safetensors", filter="*fc*")
    found, metadata = loaded_safetensors(tmp_path / "again.safetensors")
    assert metadata == {"format": "pt", "step": "7"}
    assert found.keys() == {"module.fc.weight", "module.fc.bias"}

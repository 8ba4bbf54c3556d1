"""NumPy's files: what numpy says of its own, and headers that lie."""

import io
import random
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pttool.core.ckpt.containers.numpy_files import open_npy, open_npz
from pttool.core.ckpt.files.payload import read_record
from pttool.core.ckpt.types import Format, Tensor
from pttool.errors import InputError

ARRAYS: dict[str, NDArray[Any]] = {
    **{kind: np.arange(24).astype(kind).reshape(2, 3, 4)
       for kind in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8",
                    "c8", "c16")},
    "number": np.array(3.5),
    "empty": np.zeros((0, 3)),
    "fortran": np.asfortranarray(np.arange(24.0).reshape(2, 3, 4)),
    "transposed": np.arange(6).reshape(2, 3).T,
    "fortran empty": np.zeros((2, 0, 3), order="F"),
}  # fmt: skip


def _npy(array: NDArray[Any], **options: Any) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, **options)
    return stream.getvalue()


def _open(tmp_path: Path, content: bytes) -> Tensor:
    path = tmp_path / "x.npy"
    path.write_bytes(content)
    (tensor,) = open_npy(path).tensors
    return tensor


def _message(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        (open_npz if path.suffix == ".npz" else open_npy)(path)
    assert caught.value.hint
    assert "\n" not in caught.value.message
    assert caught.value.message.startswith(f"{path}: ")
    return caught.value.message


def _assert_same(tensor: Tensor, array: NDArray[Any]) -> None:
    expected = torch.from_numpy(array)
    assert f"torch.{tensor.dtype}" == str(expected.dtype)
    assert tensor.shape == tuple(expected.shape)
    if array.size:
        assert tensor.stride == tuple(expected.stride())
    assert tensor.storage is not None
    assert tensor.storage.record is not None
    raw = read_record(tensor.storage.record, 1 << 20)
    elements = np.frombuffer(raw, array.dtype, array.size, tensor.offset * array.itemsize)
    assert elements.tobytes() == array.tobytes("A")


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_is_as_torch_takes_it_from_numpy(tmp_path: Path, name: str) -> None:
    tensor = _open(tmp_path, _npy(ARRAYS[name]))
    assert tensor.path == ()
    _assert_same(tensor, ARRAYS[name])


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed], ids=["stored", "deflated"])
def test_an_archive_is_as_torch_takes_it_from_numpy(tmp_path: Path, save: Any) -> None:
    path = tmp_path / "x.npz"
    save(path, **ARRAYS)
    checkpoint = open_npz(path)
    assert checkpoint.format is Format.NPZ
    assert checkpoint.warnings == ()
    assert checkpoint.facts == {"byteorder": "little"}
    assert [record.name for record in checkpoint.records] == [f"{name}.npy" for name in ARRAYS]
    found = {tensor.path[0]: tensor for tensor in checkpoint.tensors}
    assert found.keys() == ARRAYS.keys()
    for name, tensor in found.items():
        _assert_same(tensor, ARRAYS[name])


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_versions_of_the_header(tmp_path: Path, version: tuple[int, int]) -> None:
    array = np.arange(3.0)
    _assert_same(_open(tmp_path, _npy(array, version=version)), array)


def test_types_that_torch_lacks_keep_numpys_name(tmp_path: Path) -> None:
    record = np.zeros(2, [("é", "<f4"), ("b", "<i8", (2, 3)), ("c", [("d", ">u2")])])
    for array, name in (
        (np.array(["abc", "é"]), "<U3"),
        (np.array([b"ab"]), "|S2"),
        (np.array(["2020"], "M8[D]"), "<M8[D]"),
        (np.zeros(2, np.longdouble), np.dtype(np.longdouble).str),
        (np.zeros(2, "V7"), "|V7"),
        (record, "[('é','<f4'),('b','<i8',(2,3)),('c',[('d','>u2')])]"),
    ):
        tensor = _open(tmp_path, _npy(array))
        assert tensor.dtype == name
        assert tensor.storage is not None
        assert tensor.storage.size_bytes == array.nbytes


def test_byte_order_is_said(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, big=np.zeros(2, ">f4"), byte=np.zeros(2, "u1"))
    checkpoint = open_npz(path)
    assert [tensor.dtype for tensor in checkpoint.tensors] == ["float32", "uint8"]
    assert checkpoint.facts == {"byteorder": "mixed"}
    assert checkpoint.warnings == ("'big.npy' is big-endian",)
    (tmp_path / "x.npy").write_bytes(_npy(np.zeros(2, ">i8")))
    assert open_npy(tmp_path / "x.npy").facts == {"byteorder": "big"}


def test_objects_are_listed_and_never_unpickled(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(_npy(np.array([{"a": 1}, None], object)))
    checkpoint = open_npy(path)
    (tensor,) = checkpoint.tensors
    assert (tensor.dtype, tensor.shape) == ("object", (2,))
    assert checkpoint.warnings == ("'x.npy' is an object array, a pickle: not read",)
    assert tensor.storage is not None
    assert tensor.storage.record is not None
    assert read_record(tensor.storage.record, 9999).startswith(b"\x80")
    fields = np.zeros(1, [("a", "f4"), ("b", "O")])
    assert _open(tmp_path, _npy(fields)).dtype == "object"


def test_a_header_of_python_2_is_read(tmp_path: Path) -> None:
    content = _npy(np.zeros((3, 4), "f4")).replace(b"(3, 4), }  ", b"(3L, 4L), }")
    assert _open(tmp_path, content).shape == (3, 4)


def test_arrays_that_follow_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(_npy(np.zeros(2)) + _npy(np.zeros(2)))
    assert open_npy(path).warnings == ("144 bytes follow the array in 'x.npy'",)


def _headed(text: str, content: bytes = b"", version: bytes = b"\1\0") -> bytes:
    raw = text.encode("latin-1")
    width = "<H" if version == b"\1\0" else "<I"
    return b"\x93NUMPY" + version + struct.pack(width, len(raw)) + raw + content


HEADER = "{{'descr': {}, 'fortran_order': {}, 'shape': {}}}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "damaged header"),
        ("[]", "damaged header"),
        ("{[]: 1}", "damaged header"),
        ("__import__('os').getcwd()", "damaged header"),
        ("-" * 9000 + "1", "damaged header"),
        ("(" * 9000, "damaged header"),
        ("1+" * 4500 + "1", "damaged header"),
        ("'\\d'", "damaged header"),
        (HEADER.format("'<f4'", "0", "(2,)"), "damaged header"),
        (HEADER.format("'<f4'", "False", "2"), "damaged header"),
        (HEADER.format("'<f4'", "False", "(-2,)"), "damaged header"),
        (HEADER.format("'<f4'", "False", "(True,)"), "damaged header"),
        (HEADER.format("'<f4'", "False", "(1e3,)"), "damaged header"),
        (HEADER.format("'<f4'", "False", "(4611686018427387904,) * 9"), "damaged header"),
        (HEADER.format("'<f4'", "False", "(4611686018427387904, 4)"), "damaged header"),
        (HEADER.format("'<q9'", "False", "(2,)"), "damaged header"),
        (HEADER.format("[('a',)]", "False", "(2,)"), "damaged header"),
        (HEADER.format("[('a', '<f4', 'x')]", "False", "(2,)"), "damaged header"),
        (HEADER.format("[('a', '<f4', 999999999)]", "False", "(2,)"), "damaged header"),
        (HEADER.format("5", "False", "(2,)"), "damaged header"),
        (HEADER.format("'<f4'", "False", "(2,)"), "cut short: 4 bytes of 'x.npy' are missing"),
        (HEADER.format("'<f4'", "False", "(1 << 40,)"), "damaged header"),
        (HEADER.format("'<f4'", "False", "(1099511627776,)"), "4,398,046,511,100 bytes"),
    ],
)
def test_headers_that_lie_are_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(_headed(text, b"\0\0\0\0"))
    assert words in _message(path)


def test_a_header_that_claims_too_much_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(_headed(" " * 10_001))
    assert "claims a header of 10,001 bytes; numpy allows 10,000" in _message(path)
    path.write_bytes(_headed(" " * 99, version=b"\2\0").replace(b"c\0\0\0", b"\xff\xff\xff\xff"))
    assert "claims a header of 4,294,967,295 bytes" in _message(path)
    path.write_bytes(_headed(" " * 99, version=b"\4\0"))
    assert "is of .npy version 4.0, not 1 to 3" in _message(path)


def test_a_file_cut_at_any_byte_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    whole = _npy(np.arange(9.0))
    for stop in range(len(whole)):
        path.write_bytes(whole[:stop])
        assert "cut short" in _message(path) or stop < 6


def test_a_member_that_is_no_array_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", b"hello, I am a text")
    assert "'a.npy' doesn't start as a NumPy array does" in _message(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", _npy(np.zeros(9))[:150])
    assert "cut short: 50 bytes of 'a.npy' are missing" in _message(path)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed], ids=["stored", "deflated"])
def test_mutated_archives_are_read_or_refused(tmp_path: Path, save: Any) -> None:
    path = tmp_path / "x.npz"
    save(path, a=np.arange(50.0), b=np.asfortranarray(np.ones((2, 3))))
    whole = path.read_bytes()
    rng = random.Random(3)
    for _ in range(1500):
        mutant = bytearray(whole[: rng.choice((len(whole), rng.randrange(len(whole))))])
        for _ in range(rng.randint(0, 5)):
            mutant[rng.randrange(len(mutant)) if mutant else 0 :][:1] = rng.randbytes(1)
            if mutant:
                mutant[rng.randrange(len(mutant))] = rng.randrange(256)
        path.write_bytes(mutant)
        _assert_read_or_refused(path)


def _assert_read_or_refused(path: Path) -> None:
    message = ""
    try:
        (open_npz if path.suffix == ".npz" else open_npy)(path)
    except InputError as error:
        message = error.message
    assert "\n" not in message


@settings(
    derandomize=True,
    max_examples=400,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.one_of(
        st.text(st.characters(max_codepoint=255), max_size=200),
        st.builds(
            HEADER.format,
            st.one_of(
                st.from_regex(r"'[<>|=]?[a-zA-Z][0-9]{0,12}(\[[a-z]\])?'", fullmatch=True),
                st.from_regex(r"\[(\('[a-z]', '<f4'(, [0-9(),]{1,5})?\),?){0,3}\]", fullmatch=True),
            ),
            st.sampled_from(["True", "False", "1"]),
            st.lists(st.integers(-1, 1 << 70), max_size=5).map(lambda shape: str(tuple(shape))),
        ),
    ),
    st.binary(max_size=20),
)
@example(
    "{'descr': '<f4', 'fortran_order': False, 'shape': (" + "4611686018427387904," * 400 + ")}", b""
)
@example(
    "{'descr': " + "[('a'," * 90 + "'f4'" + ")]" * 90 + ", 'fortran_order': True, 'shape': ()}", b""
)
def test_any_header_is_read_or_refused(tmp_path: Path, text: str, content: bytes) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(_headed(text, content))
    _assert_read_or_refused(path)

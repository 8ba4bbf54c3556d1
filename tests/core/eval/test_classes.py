"""Class names from every kind of file that they are kept in."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pttool.core.eval.classes.names import read_classes
from pttool.errors import InputError

CAT_AND_DOG = {0: "cat", 1: "dog"}
KINDS = [
    ("names.txt", "cat\ndog\n"),
    ("names.txt", "\ufeffcat\r\ndog\r\n\r\n"),
    ("names.json", '["cat", "dog"]'),
    ("names", '{"dog": 1, "cat": 0}'),
    ("index.json", '{"0": ["n02123045", "cat"], "1": ["n02084071", "dog"]}'),
    ("labels.json", '{"1": "dog", "0": "cat"}'),
    ("config.json", '{"model_type": "vit", "id2label": {"0": "cat", "1": "dog"}}'),
    ("data.yaml", "nc: 2  # classes\nnames: ['cat', dog]\n"),
    ("data.yaml", 'names:\n  - cat  # tabby\n  - "dog"\nval: images/val\n'),
    ("data.yaml", "path: x\nnames:\n- cat\n- dog\n"),
    ("data.yml", "names:\n  1: dog\n  0: 'cat'\n"),
    ("data.yaml", "names: [\n  cat,\n  dog,\n]\n"),
]


@pytest.mark.parametrize(("name", "text"), KINDS)
def test_kinds_of_files(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8", newline="")

    assert read_classes(path) == CAT_AND_DOG


def test_names_keep_what_is_in_them(tmp_path: Path) -> None:
    path = tmp_path / "names.txt"
    path.write_text("猫\nhorse, zebra\n=1+1\na: b # c\n", encoding="utf-8")

    assert read_classes(path) == {0: "猫", 1: "horse, zebra", 2: "=1+1", 3: "a: b # c"}


def test_a_folder_of_class_folders(tmp_path: Path) -> None:
    for name in ("dog", "cat"):
        (tmp_path / name).mkdir()
    (tmp_path / "README").touch()

    assert read_classes(tmp_path) == CAT_AND_DOG


def test_numbers_may_have_gaps(tmp_path: Path) -> None:
    path = tmp_path / "names.json"
    path.write_text('{"person": 1, "bicycle": 3}')

    assert read_classes(path) == {1: "person", 3: "bicycle"}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.txt", "", "holds no class names"),
        ("a.txt", "cat\n\ndog\n", "line 2 is empty"),
        ("a.txt", "c\0t", "is no text"),
        ("a.json", "[", "is no JSON"),
        ("a.json", '{"cat": 0, "dog": 0}', "class 0 has two names, 'cat' and 'dog'"),
        ("a.json", '{"cat": -1}', "-1 is no class number"),
        ("a.json", '{"cat": "dog"}', "'cat' is no class number"),
        ("a.json", "[1, 2]", "class 0 has the name 1"),
        ("a.json", "7", "holds a int"),
        ("a.yaml", "nc: 2\n", "has no `names:`"),
        ("a.yaml", "names: *others\n", "line 1 is not understood: *others"),
        ("a.yaml", "names:\n  0: cat\n  - dog\n", "line 3 is not understood"),
    ],
)
def test_what_is_refused(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(text)

    with pytest.raises(InputError) as caught:
        read_classes(path)

    assert message in caught.value.message
    assert str(path) in caught.value.message


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9\n")

    with pytest.raises(InputError, match="is no UTF-8 text"):
        read_classes(tmp_path / "latin.txt")
    with pytest.raises(InputError, match="No such file"):
        read_classes(tmp_path / "nope.txt")
    with pytest.raises(InputError, match="has no class folders"):
        read_classes(tmp_path)


@given(st.sampled_from(KINDS), st.integers(0, 60), st.integers(0, 4), st.text(max_size=4))
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_file_is_read_or_refused(
    tmp_path: Path, kind: tuple[str, str], place: int, length: int, other: str
) -> None:
    name, text = kind
    path = tmp_path / name
    changed = text[:place] + other + text[place + length :]
    path.write_bytes(changed.encode("utf-8", "surrogatepass"))

    names, message = read_or_refused(path)

    assert "\n" not in message
    assert message or all(number >= 0 and name for number, name in names.items())


def read_or_refused(path: Path) -> tuple[dict[int, str], str]:
    try:
        return read_classes(path), ""
    except InputError as error:
        return {}, error.message


@pytest.mark.parametrize(
    ("text", "key"), [('{"cat": 0, "dog": 1, "cat": 2}', "'cat'"), ('{"0": "a", "0": "b"}', "'0'")]
)
def test_a_key_that_stands_twice_in_json_is_refused(tmp_path: Path, text: str, key: str) -> None:
    path = tmp_path / "names.json"
    path.write_text(text)
    with pytest.raises(InputError, match=f"the key {key} stands there 2 times"):
        read_classes(path)

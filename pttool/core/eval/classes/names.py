"""The names of classes, from the kinds of files that they are kept in."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pttool.core.eval.classes.yaml import names_in_yaml
from pttool.core.eval.reading.text_files import json_fault
from pttool.errors import InputError

LARGEST_FILE = 1 << 28
LARGEST_NUMBER = (1 << 24) - 1
JSON = re.compile(r"\s*(\[.*\]|\{.*\})\s*", re.DOTALL)
FORMS = 'one name per line, ["cat", "dog"], {"cat": 0} or {"0": "cat"}'


def read_classes(path: Path) -> dict[int, str]:
    """Return the name of each class number.

    Read are a text file with one name per line; JSON as a list, {name: number}, {"0": name},
    {"0": [id, name]} or a config.json with id2label; a .yaml with `names:`; a folder of class
    folders, numbered in sorted order as torchvision's ImageFolder does.
    Raises InputError for any other content, a number twice, or no names at all.
    """
    if path.is_dir():
        names = _from_folder(path)
    else:
        text = _read(path)
        if path.suffix.lower() in (".yaml", ".yml"):
            names = _from_pairs(path, names_in_yaml(path, text))
        elif path.suffix.lower() == ".json" or re.fullmatch(JSON, text):
            names = _from_json(path, text)
        else:
            names = _from_lines(path, text)
    if not names:
        raise InputError(f"{path}: holds no class names", f"give {FORMS}")
    return dict(sorted(names.items()))


def _read(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            content = stream.read(LARGEST_FILE + 1)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", "check the path of the file") from error
    if len(content) > LARGEST_FILE:
        raise InputError(f"{path}: is larger than {LARGEST_FILE} bytes", "is it the classes file?")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"{path}: is no UTF-8 text: byte {error.start}"
        raise InputError(message, "save it as UTF-8") from error
    if "\0" in text:
        raise InputError(f"{path}: is no text", f"give {FORMS}")
    return text


def _from_folder(path: Path) -> dict[int, str]:
    try:
        folders = sorted(entry.name for entry in path.iterdir() if entry.is_dir())
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", "check its permissions") from error
    if not folders:
        raise InputError(f"{path}: has no class folders", "give the folder above them")
    return dict(enumerate(folders))


def _from_lines(path: Path, text: str) -> dict[int, str]:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").rstrip().split("\n")
    names = [line.strip() for line in lines]
    if names == [""]:
        return {}
    if "" in names:
        raise InputError(
            f"{path}: line {names.index('') + 1} is empty",
            "one name per line, without gaps: the first has number 0",
        )
    return dict(enumerate(names))


def _from_json(path: Path, text: str) -> dict[int, str]:
    try:
        found = json.loads(text, object_pairs_hook=partial(_once, path))
    except (ValueError, RecursionError) as error:
        message = f"{path}: is no JSON: {json_fault(error)}"
        raise InputError(message, f"give {FORMS}") from error
    if isinstance(found, dict):
        for key in ("id2label", "class_to_idx", "label2id"):
            if isinstance(found.get(key), dict | list):
                found = found[key]
                break
    if isinstance(found, list):
        return _from_pairs(path, enumerate(found))
    if not isinstance(found, Mapping):
        raise InputError(f"{path}: holds a {type(found).__name__}, no names", f"give {FORMS}")
    if all(_is_number(value) for value in found.values()):
        return _from_pairs(path, ((number, name) for name, number in found.items()))
    return _from_pairs(path, ((key, _last(value)) for key, value in found.items()))


def _once(path: Path, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object. Raises InputError for a key twice, of which the last would win."""
    found = dict(pairs)
    if len(found) < len(pairs):
        key, times = Counter(key for key, _ in pairs).most_common(1)[0]
        message = f"{path}: the key {_shown(key)} stands there {times} times"
        raise InputError(message, "give each name or number once")
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _last(value: Any) -> Any:
    """Return the name of Keras's imagenet_class_index.json: {"0": ["n01440764", "tench"]}."""
    if isinstance(value, list) and len(value) == 2:
        return value[1]
    return value


def _from_pairs(path: Path, pairs: Iterable[tuple[Any, Any]]) -> dict[int, str]:
    names: dict[int, str] = {}
    for key, name in pairs:
        number = _number(path, key)
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"{path}: class {number} has the name {_shown(name)}", f"give {FORMS}")
        if number in names:
            raise InputError(
                f"{path}: class {number} has two names, {_shown(names[number])} and {_shown(name)}",
                "give each class number once",
            )
        names[number] = name.strip()
    return names


def _number(path: Path, key: Any) -> int:
    if not re.fullmatch(r"[0-9]{1,12}", str(key)) or int(key) > LARGEST_NUMBER:
        raise InputError(
            f"{path}: {_shown(key)} is no class number (0 to {LARGEST_NUMBER})", f"give {FORMS}"
        )
    return int(key)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + "..."

"""What the user typed: a model, its inputs, its keyword arguments. Pure text, without torch."""

import ast
import os
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from pttool.errors import InputError, UsageError

Shape = tuple[int, ...]

# What can be written for a dtype, and torch's name for it.
DTYPES = {
    "float32": "float32", "float": "float32", "f32": "float32", "fp32": "float32",
    "float16": "float16", "half": "float16", "f16": "float16", "fp16": "float16",
    "bfloat16": "bfloat16", "bf16": "bfloat16",
    "float64": "float64", "double": "float64", "f64": "float64", "fp64": "float64",
    "int64": "int64", "long": "int64", "i64": "int64",
    "int32": "int32", "int": "int32", "i32": "int32",
    "int16": "int16", "short": "int16", "int8": "int8", "uint8": "uint8", "bool": "bool",
    "complex64": "complex64", "complex128": "complex128",
}  # fmt: skip
LARGEST_NUMEL = 2**62
SAVED_SUFFIXES = (".pt", ".pth", ".pt2", ".ckpt", ".bin", ".tar", ".safetensors")


@dataclass(frozen=True, slots=True)
class PublishedModel:
    """A model that torchvision publishes, by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class FileModel:
    """A class, factory or module in a Python file."""

    path: Path
    attribute: str


@dataclass(frozen=True, slots=True)
class ImportedModel:
    """A class, factory or module in an importable Python module."""

    module: str
    attribute: str


@dataclass(frozen=True, slots=True)
class TimmModel:
    """A model of timm, by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class SavedModel:
    """A file that torch saved."""

    path: Path


ModelSpec = PublishedModel | FileModel | ImportedModel | TimmModel | SavedModel


@dataclass(frozen=True, slots=True)
class InputSpec:
    """One input: its shape without the batch dimension, dtype (None: the model's) and keyword.

    `batch` is the batch size that it comes with; it counts unless another than 1 is asked for.
    """

    shape: Shape
    dtype: str | None = None
    name: str | None = None
    batch: int | None = None


def parse_model(text: str) -> ModelSpec:
    """Return what MODEL names.

    Raises UsageError for a word that can't name a model, InputError for a folder.
    """
    if text.startswith("timm:"):
        return TimmModel(text.removeprefix("timm:"))
    source, colon, attribute = text.rpartition(":")
    if colon:
        return _parse_attribute(text, source, attribute)
    if not text:
        raise UsageError("MODEL is empty", "give a torchvision name or FILE.py:ATTR")
    path = Path(text)
    if re.fullmatch(r"[\w-]+", text):
        return PublishedModel(text)
    if path.is_dir():
        raise InputError(f"{text}: is a folder", "name a class or function in it: FILE.py:ATTR")
    if path.suffix == ".py":
        raise UsageError(f"{text}: which class or function?", f"{text}:{_first_name(path)}")
    if path.exists() or path.suffix.lower() in SAVED_SUFFIXES:
        return SavedModel(path)
    raise UsageError(
        f"{text!r} names no model",
        "give a torchvision name, timm:NAME, FILE.py:ATTR, package.module:ATTR or FILE.pt",
    )


def parse_input(text: str) -> InputSpec:
    """Return the input that `[NAME:][DTYPE:]D1,D2,...` describes.

    Raises UsageError for a dimension that is no positive integer, an unknown dtype, or a name that
    can't be a keyword.
    """
    *labels, dimensions = text.split(":")
    name, dtype = _parse_labels(text, labels)
    shape = tuple(_parse_dimension(text, part) for part in dimensions.split(","))
    if prod(shape) > LARGEST_NUMEL:
        raise UsageError(f"input {text!r}: too many elements", "give smaller dimensions")
    return InputSpec(shape, dtype, name)


def parse_space(text: str) -> Shape:
    """Return the size in space that `H`, `H,W`, `C,H,W` or `C,D,H,W` gives.

    Raises UsageError as parse_input does.
    """
    shape = tuple(_parse_dimension(text, part) for part in text.split(","))
    if len(shape) > 4:
        raise UsageError(f"input {text!r}: has too many dimensions", "H,W or C,H,W or C,D,H,W")
    return shape[1:] if len(shape) > 2 else shape


def parse_keywords(texts: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of several `NAME=LITERAL`. Raises UsageError also for a name twice."""
    keywords: dict[str, Any] = {}
    for text in texts:
        name, value = parse_keyword(text)
        if name in keywords:
            raise UsageError(f"--kw {name}: is given twice", "give each argument once")
        keywords[name] = value
    return keywords


def parse_keyword(text: str) -> tuple[str, Any]:
    """Return the name and value of `NAME=LITERAL`. Nothing is evaluated but Python literals.

    Raises UsageError for anything else.
    """
    name, equals, literal = text.partition("=")
    if not (equals and name.isidentifier()):
        raise UsageError(f"--kw {text!r}: is not NAME=VALUE", "--kw num_classes=10")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return name, ast.literal_eval(literal)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        raise UsageError(
            f"--kw {name}: {literal!r} is no Python literal",
            f"numbers, True, None, lists; text in quotes: --kw '{name}=\"text\"'",
        ) from error


def _parse_attribute(text: str, source: str, attribute: str) -> ModelSpec:
    if not all(part.isidentifier() for part in attribute.split(".")):
        raise UsageError(f"{text!r}: {attribute!r} can't name a class or function", "FILE.py:Net")
    path = Path(source)
    if source.endswith(".py") or os.sep in source or path.is_file():
        return FileModel(path, attribute)
    if path.is_dir() and not (path / "__init__.py").exists():
        raise InputError(f"{source}: is a folder", "name a class or function in it: FILE.py:ATTR")
    if all(part.isidentifier() for part in source.split(".")):
        return ImportedModel(source, attribute)
    raise UsageError(
        f"{text!r}: {source!r} is neither a .py file nor a module", "FILE.py:Net or package.mod:Net"
    )


def _first_name(path: Path) -> str:
    """Return the first class or function that a Python file defines, found without running it."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, ValueError, SyntaxError, MemoryError, RecursionError):
        return "Net"
    named = [node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    return named[0].name if named else "Net"


def _parse_labels(text: str, labels: list[str]) -> tuple[str | None, str | None]:
    """Return (name, dtype) of an input; one label alone is a dtype if it can be one."""
    if len(labels) == 1 and labels[0] in DTYPES:
        return None, DTYPES[labels[0]]
    name = labels[0] if labels else None
    if len(labels) > 2:
        raise UsageError(f"input {text!r}: too many colons", "[NAME:][DTYPE:]D1,D2,...")
    if name is not None and not name.isidentifier():
        raise UsageError(f"input {text!r}: {name!r} can't be a keyword", "ids:int64:128")
    if len(labels) < 2:
        return name, None
    if labels[1] not in DTYPES:
        known = ", ".join(dict.fromkeys(DTYPES.values()))
        raise UsageError(f"input {text!r}: unknown dtype {labels[1]!r}", f"one of {known}")
    return name, DTYPES[labels[1]]


def _parse_dimension(text: str, part: str) -> int:
    if not re.fullmatch(r"\s*[0-9]{1,18}\s*", part):
        raise UsageError(
            f"input {text!r}: {part!r} is not a dimension", "whole numbers with commas: 3,224,224"
        )
    if int(part) == 0:
        raise UsageError(f"input {text!r}: a dimension is 0", "every dimension is at least 1")
    return int(part)

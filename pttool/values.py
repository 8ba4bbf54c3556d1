"""Turn raw values into the text of a cell or of JSON, whatever characters a name holds."""

import json
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from pttool.core.printable import printable as printable


def raw_cell(value: Any) -> str:
    """Return a data cell: text as it is, unknown empty, all else as JSON without spaces."""
    plain = _plain(value)
    if plain is None:
        return ""
    if isinstance(plain, str):
        return plain
    return json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def json_text(value: Any, *, ascii_only: bool = False) -> str:
    """Return value as strict JSON on one line; NaN and infinities are null (RFC 8259 has none)."""
    plain = _plain(value)
    text = json.dumps(plain, ensure_ascii=ascii_only, allow_nan=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate, as in the name of a file that is not UTF-8
        text = json.dumps(plain, allow_nan=False)
    return text


def _plain(value: Any) -> Any:
    match value:
        case float():
            return value if isfinite(value) else None
        case Mapping():
            return {str(key): _plain(element) for key, element in value.items()}
        case list() | tuple():
            return [_plain(element) for element in value]
        case Path():
            return str(value)
        case _ if hasattr(value, "item") and hasattr(value, "dtype"):
            return _plain(value.item())  # a numpy scalar
        case _ if is_dataclass(value) and not isinstance(value, type):
            return _plain(asdict(value))
    return value

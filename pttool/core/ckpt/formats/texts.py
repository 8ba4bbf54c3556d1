"""Texts in the place of a checkpoint: pointers, web pages, errors of servers, source code."""

import codecs
import json
import re
from pathlib import Path
from typing import Any

from pttool.core.ckpt.files.words import excerpt
from pttool.errors import InputError

# Of what has an end, so many characters are looked through: a text may begin it at every place.
# What no text holds: control characters but tab, line ends, form feed and escape.
_NOT_TEXT = re.compile("[\0-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")
_POINTER = re.compile(r"version https://(git-lfs\.github\.com|hawser\.github\.com)/spec/")
_PAGE = re.compile(r"(<!--.{0,1000}?-->\s*)?<(!doctype\s+html|html|head|body)\b", re.I | re.S)
_TITLE = re.compile(r"<title[^>]{0,100}>(.{0,500}?)</title>", re.I | re.S)
_XML = re.compile(r"<[?!A-Za-z]")
_XML_MESSAGE = re.compile(r"<(Message|Code|message)>(.{0,500}?)</\1>", re.S)
_PYTHON = re.compile(r"^(#!.*python|import \w+|from [\w.]+ import |def \w+\(|class \w+[(:])", re.M)
_RAW_FILE = (
    "download the file itself, not its page: on GitHub the Raw link, on Hugging Face resolve in "
    "place of blob; log in first where the site asks for it"
)
_SERVER = "if it was downloaded: check the address, and whether it needs a login or a token"


def refused_text(path: Path, head: bytes, size: int) -> InputError | None:
    """Return what to say of a text, or None for bytes that are no text.

    Source of the pointer's form: https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md.
    """
    text = as_text(head)
    if text is None:
        return None
    text = text.lstrip()
    if _POINTER.match(text):
        return _pointer(path, text)
    if _PAGE.match(text):
        title = _TITLE.search(text)
        said = f" titled {excerpt(title[1])}" if title else ""
        return InputError(f"{path}: is an HTML page{said}, not a checkpoint", _RAW_FILE)
    if _XML.match(text):
        return _with_message(path, "an XML text", _XML_MESSAGE.search(text))
    if text.startswith(("{", "[")):
        return _json(path, text, is_whole=len(head) == size)
    if _PYTHON.search(text):
        hint = "give the file that torch.save wrote, not the program"
        return InputError(f"{path}: is Python source code, not a checkpoint", hint)
    return InputError(f"{path}: is a text that begins {excerpt(text)}, not a checkpoint", _SERVER)


def as_text(head: bytes) -> str | None:
    """Return the start of a file as text, or None. Its last character may be cut."""
    try:
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(head)
    except UnicodeDecodeError:
        return None
    return None if _NOT_TEXT.search(text) else text


def _pointer(path: Path, text: str) -> InputError:
    size = re.search(r"^size (\d{1,18})$", text, re.M)
    of = f" to a file of {int(size[1]):,} bytes" if size else ""
    return InputError(
        f"{path}: is a Git LFS pointer{of}, not the file itself",
        "fetch the file: git lfs install, then git lfs pull in its repository",
    )


def _with_message(path: Path, what: str, message: re.Match[str] | None) -> InputError:
    said = f" that says {excerpt(message[2])}" if message else ""
    return InputError(f"{path}: is {what}{said}, not a checkpoint", _SERVER)


def _json(path: Path, text: str, *, is_whole: bool) -> InputError:
    message = _message(text) if is_whole else None
    if message:
        said = f"{path}: is a JSON text that says {excerpt(message)}, not a checkpoint"
        return InputError(said, _SERVER)
    return InputError(
        f"{path}: is JSON without a weight_map, so no index of a sharded checkpoint",
        "give the weights, or the *.index.json beside them",
    )


def _message(text: str) -> str | None:
    """Return what a server's error says, in the keys that servers use."""
    try:
        document: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    for key in ("error", "message", "detail", "msg"):
        found = document.get(key) if isinstance(document, dict) else None
        found = found.get("message") if isinstance(found, dict) else found
        if isinstance(found, str) and found:
            return found
    return None

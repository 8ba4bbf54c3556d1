"""The `names:` of a data.yaml, the one part of YAML that is read here."""

import re
from collections.abc import Iterator
from pathlib import Path

from pttool.errors import InputError

UNDERSTOOD = "names: [cat, dog], or below it lines of `- cat` or `0: cat`; else give a text file"


def names_in_yaml(path: Path, text: str) -> list[tuple[str, str]]:
    """Return (number, name) for `names:` as a list in brackets, a block list or a block mapping.

    Raises InputError for any other way to write it.
    """
    lines = list(enumerate(text.splitlines(), 1))
    starts = [place for place, (_, line) in enumerate(lines) if re.match(r"names\s*:(\s|$)", line)]
    if len(starts) != 1:
        times = "no" if not starts else str(len(starts))
        raise InputError(f"{path}: has {times} `names:` at the start of a line", UNDERSTOOD)
    number, first = lines[starts[0]]
    inline = _without_comment(first.partition(":")[2]).strip()
    rest = lines[starts[0] + 1 :]
    if not inline:
        return list(_block(path, rest))
    while "]" not in inline and "}" not in inline and rest:
        number, line = rest.pop(0)
        inline += " " + _without_comment(line).strip()
    if not re.fullmatch(r"\[.*\]", inline):
        raise _not_understood(path, number, inline)
    names = _scalars(path, number, inline[1:-1])
    return [(str(place), name) for place, name in enumerate(names)]


def _block(path: Path, lines: list[tuple[int, str]]) -> Iterator[tuple[str, str]]:
    place, indent, form = 0, None, None
    for number, line in lines:
        bare = _without_comment(line).rstrip()
        if not bare:
            continue
        item = re.fullmatch(r"( *)(-|['\"]?[0-9]+['\"]?\s*:)\s+(.+)", bare)
        depth = len(bare) - len(bare.lstrip(" "))
        if depth == 0 and not bare.startswith("- "):
            return
        kind = item and ("-" if item[2] == "-" else ":")
        indent, form = (depth, kind) if indent is None else (indent, form)
        if item is None or depth != indent or kind != form:
            raise _not_understood(path, number, bare)
        key = str(place) if kind == "-" else item[2].rstrip(": \t").strip("'\"")
        yield key, _scalar(path, number, item[3].strip())
        place += 1


def _scalars(path: Path, number: int, text: str) -> Iterator[str]:
    """Yield the entries between brackets; a comma after the last is allowed, as in YAML."""
    entry = r"\s*('(?:[^']|'')*'|\"(?:[^\"\\]|\\.)*\"|[^,'\"\[\]{}]+)\s*(,|$)"
    place = 0
    while text[place:].strip():
        match = re.compile(entry).match(text, place)
        if not match:
            raise _not_understood(path, number, text[place:])
        yield _scalar(path, number, match[1].strip())
        place = match.end()


def _scalar(path: Path, number: int, text: str) -> str:
    if re.fullmatch(r"'(?:[^']|'')*'", text):
        return text[1:-1].replace("''", "'")
    if re.fullmatch(r'"[^"\\]*"', text):
        return text[1:-1]
    if re.match(r"['\"\[\]{}&*!|>%@`]", text) or ": " in text:
        raise _not_understood(path, number, text)
    return text


def _without_comment(line: str) -> str:
    """Return a line up to a # that starts a comment: after a space and outside quotes."""
    quote = ""
    for place, mark in enumerate(line):
        if quote:
            quote = "" if mark == quote else quote
        elif mark in "'\"" and not line[:place].rstrip()[-1:].isalnum():
            quote = mark
        elif mark == "#" and (place == 0 or line[place - 1].isspace()):
            return line[:place]
    return line


def _not_understood(path: Path, number: int, text: str) -> InputError:
    shown = text.strip()[:60]
    return InputError(f"{path}: line {number} is not understood: {shown}", UNDERSTOOD)

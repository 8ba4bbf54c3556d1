"""Text on one line, whatever characters a name holds."""

import unicodedata

# They reorder the text of a terminal, so that one name could show as another (CVE-2021-42574).
BIDI_CONTROLS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def printable(text: str, kept: str = "") -> str:
    """Return text on one line, with control characters and lone surrogates as backslash escapes.

    Characters in `kept` stay as they are.
    """
    if text.isprintable():
        return text
    return "".join(c if c in kept else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    hidden = unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")
    if hidden or character in BIDI_CONTROLS:
        return character.encode("unicode_escape").decode("ascii")
    return character

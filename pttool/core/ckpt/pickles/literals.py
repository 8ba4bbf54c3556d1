"""What the opcodes of a pickle that push a literal do to a Walker: numbers, texts and bytes.

Source: CPython's Lib/pickletools.py, whose names these functions bear.
"""

from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING

from pttool.core.ckpt.pickles.budget import NUMBER

if TYPE_CHECKING:
    from pttool.core.ckpt.pickles.walker import Walker

U2, U4, U8 = Struct("<H"), Struct("<I"), Struct("<Q")
I4, F8 = Struct("<i"), Struct(">d")


class Malformed(Exception):
    """What is wrong with a pickle; `Walker.walk` says where."""


# Constants and numbers.


def none(walker: "Walker") -> None:
    walker.stack.append(None)


def newtrue(walker: "Walker") -> None:
    walker.stack.append(True)


def newfalse(walker: "Walker") -> None:
    walker.stack.append(False)


def int_(walker: "Walker") -> None:
    line = walker.line()
    booleans = {b"00": False, b"01": True}
    walker.stack.append(booleans[line] if line in booleans else int(line))


def binint(walker: "Walker") -> None:
    walker.make(walker.number(I4), NUMBER)


def binint1(walker: "Walker") -> None:
    walker.stack.append(walker.byte())


def binint2(walker: "Walker") -> None:
    walker.make(walker.number(U2), NUMBER)


def long(walker: "Walker") -> None:
    walker.make(int(walker.line().removesuffix(b"L")))


def long1(walker: "Walker") -> None:
    walker.long(walker.byte())


def long4(walker: "Walker") -> None:
    walker.long(walker.number(I4))


def float_(walker: "Walker") -> None:
    walker.make(float(walker.line()))


def binfloat(walker: "Walker") -> None:
    walker.make(walker.number(F8), NUMBER)


# Texts and bytes.


def string(walker: "Walker") -> None:
    start, stop = walker.next_line()
    first, last = walker.buffer[start : start + 1], walker.buffer[stop - 1 : stop]
    if stop - start < 2 or first not in (b"'", b'"') or last != first:
        raise Malformed("a string has no quotes")
    walker.escaped(start + 1, stop - 1, "unicode_escape")


def binstring(walker: "Walker") -> None:
    walker.old_text(walker.number(I4))


def short_binstring(walker: "Walker") -> None:
    walker.old_text(walker.byte())


def unicode(walker: "Walker") -> None:
    walker.escaped(*walker.next_line(), "raw_unicode_escape")


def binunicode(walker: "Walker") -> None:
    walker.text(walker.number(U4))


def short_binunicode(walker: "Walker") -> None:
    walker.text(walker.byte())


def binunicode8(walker: "Walker") -> None:
    walker.text(walker.number(U8))


def binbytes(walker: "Walker") -> None:
    walker.bytes(walker.number(U4))


def short_binbytes(walker: "Walker") -> None:
    walker.bytes(walker.byte())


def binbytes8(walker: "Walker") -> None:
    walker.bytes(walker.number(U8))


def next_buffer(walker: "Walker") -> None:
    raise Malformed("its buffers lie outside of it")


def readonly_buffer(walker: "Walker") -> None:
    return


LITERALS: dict[bytes, Callable[["Walker"], None]] = {
    b"N": none, b"\x88": newtrue, b"\x89": newfalse,
    b"I": int_, b"J": binint, b"K": binint1, b"M": binint2,
    b"L": long, b"\x8a": long1, b"\x8b": long4, b"F": float_, b"G": binfloat,
    b"S": string, b"T": binstring, b"U": short_binstring,
    b"V": unicode, b"X": binunicode, b"\x8c": short_binunicode, b"\x8d": binunicode8,
    b"B": binbytes, b"C": short_binbytes, b"\x8e": binbytes8, b"\x96": binbytes8,
    b"\x97": next_buffer, b"\x98": readonly_buffer,
}  # fmt: skip

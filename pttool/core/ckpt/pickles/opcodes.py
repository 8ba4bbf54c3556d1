"""What each opcode of a pickle does to a Walker; those that push literals are in `literals`.

Source: CPython's Lib/pickletools.py, whose names these functions bear.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from pttool.core.ckpt.pickles.budget import CONTAINER, PAIR
from pttool.core.ckpt.pickles.literals import LITERALS, U4, U8, Malformed
from pttool.core.ckpt.pickles.nodes import Dict, List, Set

if TYPE_CHECKING:
    from pttool.core.ckpt.pickles.walker import Walker

STOP = ord(".")


def unknown(walker: "Walker") -> None:
    raise Malformed(f"there is no opcode 0x{walker.buffer[walker.at]:02x}")


def proto(walker: "Walker") -> None:
    walker.protocol = walker.byte()


def frame(walker: "Walker") -> None:
    walker.frame(walker.number(U8))


# Containers.


def empty_tuple(walker: "Walker") -> None:
    walker.stack.append(())


def tuple_(walker: "Walker") -> None:
    walker.make(tuple(walker.since_mark()))


def tuple1(walker: "Walker") -> None:
    walker.make((walker.stack.pop(),))


def tuple2(walker: "Walker") -> None:
    second = walker.stack.pop()
    walker.make((walker.stack.pop(), second))


def tuple3(walker: "Walker") -> None:
    third, second = walker.stack.pop(), walker.stack.pop()
    walker.make((walker.stack.pop(), second, third))


def empty_list(walker: "Walker") -> None:
    walker.make(List(), CONTAINER)


def list_(walker: "Walker") -> None:
    walker.make(List(walker.since_mark()), CONTAINER)


def append(walker: "Walker") -> None:
    item = walker.stack.pop()
    walker.add_items([item])


def appends(walker: "Walker") -> None:
    walker.add_items(walker.since_mark())


def empty_dict(walker: "Walker") -> None:
    walker.make(Dict(), CONTAINER)


def dict_(walker: "Walker") -> None:
    pairs = walker.pairs_since_mark()
    walker.make(Dict(pairs), CONTAINER + PAIR * len(pairs))


def setitem(walker: "Walker") -> None:
    value = walker.stack.pop()
    key = walker.stack.pop()
    walker.set_pairs([(key, value)])


def setitems(walker: "Walker") -> None:
    walker.set_pairs(walker.pairs_since_mark())


def empty_set(walker: "Walker") -> None:
    walker.make(Set(), CONTAINER)


def additems(walker: "Walker") -> None:
    walker.add_items(walker.since_mark())


def frozenset_(walker: "Walker") -> None:
    walker.make(Set(walker.since_mark()), CONTAINER)


# Objects: what would be imported and called.


def global_(walker: "Walker") -> None:
    module = walker.line().decode("utf-8", "replace")
    walker.find(module, walker.line().decode("utf-8", "replace"))


def stack_global(walker: "Walker") -> None:
    name = walker.stack.pop()
    walker.find(walker.stack.pop(), name)


def extension(walker: "Walker") -> None:
    width = {0x82: 1, 0x83: 2, 0x84: 4}[walker.buffer[walker.at]]
    code = int.from_bytes(walker.take(width), "little")
    walker.find("copyreg extension", str(code))


def reduce(walker: "Walker") -> None:
    args = walker.stack.pop()
    walker.call(walker.stack.pop(), args)


def newobj(walker: "Walker") -> None:
    args = walker.stack.pop()
    walker.call(walker.stack.pop(), args)


def newobj_ex(walker: "Walker") -> None:
    kwargs, args = walker.stack.pop(), walker.stack.pop()
    walker.call(walker.stack.pop(), args, kwargs)


def inst(walker: "Walker") -> None:
    module = walker.line().decode("utf-8", "replace")
    args = tuple(walker.since_mark())
    walker.find(module, walker.line().decode("utf-8", "replace"))
    walker.call(walker.stack.pop(), args)


def obj(walker: "Walker") -> None:
    function, *args = walker.since_mark()
    walker.call(function, tuple(args))


def build(walker: "Walker") -> None:
    walker.set_state(walker.stack.pop())


def persid(walker: "Walker") -> None:
    walker.persistent(walker.line().decode("utf-8", "replace"))


def binpersid(walker: "Walker") -> None:
    walker.persistent(walker.stack.pop())


# The stack and the memo.


def mark(walker: "Walker") -> None:
    walker.mark()


def pop(walker: "Walker") -> None:
    if walker.stack:
        walker.stack.pop()
    else:
        walker.since_mark()


def pop_mark(walker: "Walker") -> None:
    walker.since_mark()


def dup(walker: "Walker") -> None:
    walker.stack.append(walker.stack[-1])


def put(walker: "Walker") -> None:
    walker.put(int(walker.line()))


def binput(walker: "Walker") -> None:
    walker.put(walker.byte())


def long_binput(walker: "Walker") -> None:
    walker.put(walker.number(U4))


def memoize(walker: "Walker") -> None:
    walker.put(len(walker.memo))


def get(walker: "Walker") -> None:
    walker.get(int(walker.line()))


def binget(walker: "Walker") -> None:
    walker.get(walker.byte())


def long_binget(walker: "Walker") -> None:
    walker.get(walker.number(U4))


_BY_CODE: dict[bytes, Callable[["Walker"], None]] = {
    **LITERALS,
    b"\x80": proto, b"\x95": frame,
    b")": empty_tuple, b"t": tuple_, b"\x85": tuple1, b"\x86": tuple2, b"\x87": tuple3,
    b"]": empty_list, b"l": list_, b"a": append, b"e": appends,
    b"}": empty_dict, b"d": dict_, b"s": setitem, b"u": setitems,
    b"\x8f": empty_set, b"\x90": additems, b"\x91": frozenset_,
    b"c": global_, b"\x93": stack_global,
    b"\x82": extension, b"\x83": extension, b"\x84": extension,
    b"R": reduce, b"\x81": newobj, b"\x92": newobj_ex, b"i": inst, b"o": obj, b"b": build,
    b"P": persid, b"Q": binpersid,
    b"(": mark, b"0": pop, b"1": pop_mark, b"2": dup,
    b"p": put, b"q": binput, b"r": long_binput, b"\x94": memoize,
    b"g": get, b"h": binget, b"j": long_binget,
}  # fmt: skip

HANDLERS = [_BY_CODE.get(bytes([code]), unknown) for code in range(256)]

"""From what the user types after -l to the tensors to take: exact names, aliases, globs, keys."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase

from pttool.core.features.types import Keys, Kind, Layer, Output, Part, Wanted, written
from pttool.errors import UsageError

MOST_SHOWN = 8
# A comma outside of brackets: `layer1,features[0,1]`.
_COMMA = re.compile(r",(?![^\[\]]*\])")
_NAME = re.compile(r"(?P<name>.+?)(?::(?P<call>[0-9]+))?(?P<keys>(?:\[[^\[\]]+\])*)")


@dataclass(frozen=True, slots=True)
class Chosen:
    """The tensors to take, each once and in the order asked for; what globs left out is noted."""

    wanted: tuple[Wanted, ...]
    notes: tuple[str, ...] = ()


def choose(layers: Sequence[Layer], texts: Sequence[str], *, model: str) -> Chosen:
    """Return what `texts` name: NAME, NAME:CALL, NAME[KEY], an alias, a glob, several with commas.

    Calls count from 0. `model` may stand before a name, as in `vgg16:relu5_3`. A glob is matched
    against whole names (`*` crosses dots) and takes each call and each tensor of what it matches,
    leaving out what gives no row for a picture.

    Raises UsageError, naming the choices, for an unknown name (the three nearest), a module never
    called, one called several times without a call, an output of several tensors without a key, and
    one without a row for each picture.
    """
    known = _Known(layers)
    wanted: dict[str, Wanted] = {}
    notes: list[str] = []
    for text in texts:
        for part in _parts(text, known):
            own = part.removeprefix(f"{model}:") if part not in known.by_name else part
            if not own:
                raise UsageError(f"-l {text!r}: a name is empty", "-l NAME, -l NAME,NAME")
            found, note = _found(own, known)
            wanted |= {one.layer: one for one in found}
            notes += [note] if note else []
    return Chosen(tuple(wanted.values()), tuple(notes))


class _Known:
    """The layers by every name that leads to them."""

    def __init__(self, layers: Sequence[Layer]) -> None:
        self.layers = layers
        aliased = {alias: layer for layer in layers for alias in layer.aliases}
        self.by_name = {**aliased, **{layer.name: layer for layer in layers}}

    def around(self, name: str) -> list[str]:
        """Return what can be taken of the nearest layer around a name of which anything can."""
        while name:
            name = name.rpartition(".")[0]
            layer = self.by_name.get(name)
            if layer and (names := [wanted.layer for wanted in _all(layer, None)]):
                return names
        return []

    def nearest(self, name: str) -> str:
        """Return, as a hint, the three names that look most like one."""
        names = get_close_matches(name, list(self.by_name), 3, 0.0)
        return f"nearest: {', '.join(names)}" if names else "the model has no layers"


def _parts(text: str, known: _Known) -> list[str]:
    return [text] if text in known.by_name else [part.strip() for part in _COMMA.split(text)]


def _found(text: str, known: _Known) -> tuple[Sequence[Wanted], str | None]:
    name, call, keys = _read(text, known)
    if name in known.by_name:
        return [_one(text, known, known.by_name[name], call, keys)], None
    if set(text) & set("*?["):
        return _matching(text, known)
    raise UsageError(f"-l {text}: there is no such layer", known.nearest(name))


def _read(text: str, known: _Known) -> tuple[str, int | None, Keys]:
    """Return name, call and keys; a module's own name may contain what else would separate them."""
    match = _NAME.fullmatch(text)
    if text in known.by_name or match is None:
        return text, None, ()
    call = None if match["call"] is None else int(match["call"])
    return match["name"], call, tuple(re.findall(r"\[([^\[\]]+)\]", match["keys"]))


def _one(text: str, known: _Known, layer: Layer, call: int | None, keys: Keys) -> Wanted:
    if not layer.calls:
        raise UsageError(
            f"-l {text}: {layer.name} is never called, so that it has no output",
            _elsewhere(known, layer),
        )
    if call is None and layer.calls > 1:
        raise UsageError(
            f"-l {text}: {layer.name} is called {layer.calls} times",
            f"name one call: {_listed([f'{layer.name}:{k}' for k in range(layer.calls)])}",
        )
    if call is not None and call >= layer.calls:
        raise UsageError(
            f"-l {text}: {layer.name} has no call {call}, it is called {layer.calls} time(s)",
            f"calls count from 0: {layer.name}:0 to {layer.name}:{layer.calls - 1}",
        )
    _check_part(text, known, layer, call or 0, keys)
    return Wanted(text, layer.name, call or 0, keys)


def _check_part(text: str, known: _Known, layer: Layer, call: int, keys: Keys) -> None:
    output = layer.outputs[call]
    part = output.part(keys)
    choices = [_name(layer, call, part) for part in output.parts if part.bytes_per_image]
    if part is None:
        raise UsageError(
            f"-l {text}: {layer.name} gives {_described(output)}",
            f"name one tensor of it: {_listed(choices)}" if choices else _elsewhere(known, layer),
        )
    if part.bytes_per_image is None:
        raise UsageError(
            f"-l {text}: gives no row for each picture: for one it is {list(part.shape)}",
            f"of {layer.name}: {_listed(choices)}" if choices else _elsewhere(known, layer),
        )


def _matching(pattern: str, known: _Known) -> tuple[Sequence[Wanted], str | None]:
    name, colon, call = pattern.rpartition(":")
    name, only = (name, int(call)) if colon and call.isdecimal() else (pattern, None)
    layers = [layer for layer in known.layers if fnmatchcase(layer.name, name)]
    found = [one for layer in layers for one in _all(layer, only)]
    taken = {one.module for one in found}
    left = [layer.name for layer in layers if layer.name not in taken]
    if not found:
        raise UsageError(
            f"-l {pattern}: matches no layer that gives a row for each picture",
            known.nearest(pattern),
        )
    note = f"-l {pattern} leaves out {len(left)} that give no row for each picture: {_listed(left)}"
    return found, note if left else None


def _all(layer: Layer, only: int | None) -> Iterator[Wanted]:
    for call, output in enumerate(layer.outputs):
        for part in output.parts:
            if only in (None, call) and part.bytes_per_image:
                yield Wanted(_name(layer, call, part), layer.name, call, part.keys)


def _name(layer: Layer, call: int, part: Part) -> str:
    """Return the name by which a tensor is asked for."""
    return layer.name + (f":{call}" if layer.calls > 1 else "") + written(part.keys)


def _described(output: Output) -> str:
    match output.kind:
        case Kind.TENSOR:
            return "one tensor, which has no keys"
        case Kind.OTHER:
            return "no tensor"
    return f"a {output.kind}"


def _elsewhere(known: _Known, layer: Layer) -> str:
    around = known.around(layer.name)
    if not around:
        return "pttool features layers MODEL lists what each layer gives"
    return f"around it is {_listed(around)}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_SHOWN} more" if len(names) > MOST_SHOWN else ""
    return ", ".join(names[:MOST_SHOWN]) + more

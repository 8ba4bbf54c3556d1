"""What a kind of file of the torture set is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.core.video.encoding import FRAMES, Change, Film, copy, encode, encoded


@dataclass(frozen=True)
class Kind:
    """How a file is made, and which frames of the film it shows.

    `numbers` is None where damage leaves it to the decoder what is shown.
    """

    make: Callable[[Path], object]
    numbers: Sequence[int] | None = range(FRAMES)


def film(what: Film, *, form: str | None = None, **muxer: str) -> Kind:
    """Return the kind of a film as it is encoded."""
    return Kind(lambda path: encode(path, what, form=form, **muxer), what.numbers)


def copied(
    what: Film,
    form: str,
    change: Callable[[], Change],
    numbers: Sequence[int] | None,
    **muxer: str,
) -> Kind:
    """Return the kind of a film whose packets are copied, changed, out of a file of `form`."""
    return Kind(lambda path: copy(encoded(what, form), path, change(), **muxer), numbers)


def written(content: Callable[[], bytes], numbers: Sequence[int] | None) -> Kind:
    """Return the kind of a file of these bytes."""
    return Kind(lambda path: path.write_bytes(content()), numbers)

"""How far a batch is, on one line of stderr, where that is a terminal."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

SECONDS_BETWEEN = 0.1
CLEAR = "\r\x1b[K"


@contextlib.contextmanager
def counting(what: str, *, paced: bool = False) -> Iterator[Callable[[int, int, int], None]]:
    """Yield a function that shows how many are done, how many there are, and how many failed.

    `paced` adds how many are done in a second since its first call, and the time left. The line is
    cleared in the end. Nothing is shown where stderr is no terminal, or for one alone.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda done, total, failed: None
        return
    shown_at = 0.0
    first: tuple[float, int] | None = None

    def show(done: int, total: int, failed: int) -> None:
        nonlocal shown_at, first
        now = time.monotonic()
        first = first or (now, done)
        if total > 1 and (done == total or now - shown_at >= SECONDS_BETWEEN):
            shown_at = now
            told = f", {failed} failed" if failed else ""
            told += _pace(now - first[0], done - first[1], total - done) if paced else ""
            _write(f"{CLEAR}{done:,} of {total:,} {what}{told}")

    try:
        yield show
    finally:
        if shown_at:
            _write(CLEAR)


def _pace(seconds: float, done: int, left: int) -> str:
    if not (done and seconds):
        return ""
    rate = done / seconds
    minutes, rest = divmod(round(left / rate), 60)
    return f", {rate:.1f} a second, {minutes}:{rest:02} left"


def _write(text: str) -> None:
    with contextlib.suppress(OSError):  # nobody watches: no reason to stop
        sys.stderr.write(text)
        sys.stderr.flush()

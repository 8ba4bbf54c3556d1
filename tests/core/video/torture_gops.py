"""Torture: what a decoder has to begin with, and files that begin in the middle."""

import itertools
from collections.abc import Callable, Sequence

from tests.core.video.encoding import FRAMES, X264, Change, Film, Packet, encoded
from tests.core.video.kinds import Kind, copied, film, written
from tests.core.video.torture_codecs import H264, HEVC, MPEG2

OPEN = Film(options={**X264, "g": "10", "x264-params": "open-gop=1:scenecut=0"})
X265 = "log-level=none:info=0:keyint=10:min-keyint=10:bframes=4:open-gop=1:scenecut=0:pools=1"
HEVC_OPEN = Film("libx265", {"preset": "veryfast", "x265-params": f"{X265}:frame-threads=1"})
# A column of each picture is coded anew, and no picture but the first is whole.
REFRESH = Film(options={**X264, "bf": "0", "intra-refresh": "1"})
LONG = range(130)


def from_keyframe() -> Change:
    """Return a change that loses the packets before the second keyframe."""
    keyframes = 0

    def change(packet: Packet) -> bool:
        nonlocal keyframes
        keyframes += packet.is_keyframe
        return keyframes > 1

    return change


def from_sixth() -> Change:
    """Return a change that loses the first five packets."""
    numbers = itertools.count()
    return lambda _: next(numbers) >= 5


def _beginning(
    name: str, what: Film, change: Callable[[], Change], numbers: Sequence[int]
) -> dict[str, Kind]:
    """Return the kinds of a film that begins anywhere, by container."""
    return {
        f"{name}.{suffix}": copied(what, "mpegts", change, numbers)
        for suffix in ("mp4", "mkv", "ts")
    }


def _twice(what: Film, form: str) -> Kind:
    """Return the kind of two films in one file, whose clock starts anew in the middle."""
    return written(lambda: 2 * encoded(what, form), [*what.numbers, *what.numbers])


KINDS: dict[str, Kind] = {
    "one_gop.mp4": film(Film(options={**X264, "g": "250"}, numbers=LONG)),
    "all_intra.mp4": film(Film(options={**X264, "g": "1", "bf": "0"})),
    "pyramid.mkv": film(Film(options={**X264, "bf": "7", "refs": "5", "g": "32"})),
    **{f"open_gop.{suffix}": film(OPEN) for suffix in ("mp4", "mkv", "ts")},
    **{f"hevc_open_gop.{suffix}": film(HEVC_OPEN) for suffix in ("mp4", "mkv", "ts")},
    **{f"intra_refresh.{suffix}": film(REFRESH) for suffix in ("mp4", "mkv", "ts")},
    # The pictures shown before the first keyframe refer to what isn't there.
    **_beginning("open_gop_cut", OPEN, from_keyframe, range(10, FRAMES)),
    **_beginning("hevc_open_gop_cut", HEVC_OPEN, from_keyframe, range(10, FRAMES)),
    **_beginning("mid_gop", H264, from_sixth, range(12, FRAMES)),
    **_beginning("hevc_mid_gop", HEVC, from_sixth, range(12, FRAMES)),
    **_beginning("mid_refresh", REFRESH, from_sixth, range(18, FRAMES)),
    "twice.ts": _twice(H264, "mpegts"),
    "twice.mpg": _twice(MPEG2, "mpeg"),
    "twice.264": _twice(H264, "h264"),
}

"""Torture: files that were cut short, or changed in the middle, and are still videos."""

import itertools
import random
from collections.abc import Callable

from tests.core.video.encoding import Change, Film, encoded
from tests.core.video.kinds import Kind, copied, written
from tests.core.video.torture_codecs import AV1, H264, HEVC, MPEG2, MPEG4, VP9

Content = Callable[[], bytes]


def cut(content: Content, share: float = 0.6) -> Kind:
    """Return the kind of a file of which only the beginning is there."""

    def kept() -> bytes:
        whole = content()
        return whole[: int(len(whole) * share)]

    return written(kept, None)


def flipped(content: Content, count: int = 20) -> Kind:
    """Return the kind of a file with `count` wrong bytes in its middle third."""

    def changed() -> bytes:
        whole = bytearray(content())
        chosen = random.Random(1)
        for _ in range(count):
            whole[chosen.randrange(len(whole) // 3, len(whole) * 2 // 3)] ^= 0xFF
        return bytes(whole)

    return written(changed, None)


def zeroed(content: Content) -> Kind:
    """Return the kind of a file whose last fifth was never written, though it has its length."""

    def changed() -> bytes:
        whole = content()
        return whole[: len(whole) * 4 // 5] + bytes(len(whole) - len(whole) * 4 // 5)

    return written(changed, None)


def losing() -> Change:
    """Return a change that loses two packets in the middle."""
    numbers = itertools.count()
    return lambda _: next(numbers) not in (17, 18)


def _content(what: Film, form: str, **muxer: str) -> Content:
    return lambda: encoded(what, form, **muxer)


FAST_START = _content(H264, "mp4", movflags="faststart")
CONTENTS = {
    "h264.mp4": FAST_START,
    "h264.mkv": _content(H264, "matroska"),
    "h264.ts": _content(H264, "mpegts"),
    "hevc.mp4": _content(HEVC, "mp4", movflags="faststart"),
    "hevc.ts": _content(HEVC, "mpegts"),
    "vp9.webm": _content(VP9, "webm"),
    "av1.mkv": _content(AV1, "matroska"),
    "mpeg4.avi": _content(MPEG4, "avi"),
    "mpeg2.mpg": _content(MPEG2, "mpeg"),
}

KINDS: dict[str, Kind] = {
    **{f"cut_{name}": cut(content) for name, content in CONTENTS.items() if "avi" not in name},
    "cut_h264.264": cut(_content(H264, "h264")),
    "cut_to_one.mp4": cut(FAST_START, 0.42),
    **{f"flipped_{name}": flipped(content) for name, content in CONTENTS.items()},
    **{f"one_flip_{name}": flipped(content, 1) for name, content in CONTENTS.items()},
    "zeroed_h264.mp4": zeroed(FAST_START),
    "zeroed_h264.ts": zeroed(_content(H264, "mpegts")),
    **{
        f"lost_packets.{suffix}": copied(H264, "mp4", losing, None)
        for suffix in ("mp4", "mkv", "ts")
    },
}

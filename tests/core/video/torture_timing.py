"""Torture: what timestamps can be."""

from dataclasses import replace
from fractions import Fraction

from tests.core.video.encoding import FRAMES, X264, Change, Film, Packet
from tests.core.video.kinds import Kind, copied, film
from tests.core.video.torture_codecs import H264

FRAME = 512  # ticks of a frame of H264 in mp4
SECOND = 25 * FRAME
# At 10, then 30, then 60 frames a second, in ticks of 1/90000 s.
VFR = [
    9000 * min(i, 15) + 3000 * min(max(i - 15, 0), 15) + 1500 * max(i - 30, 0)
    for i in range(FRAMES)
]
DROPPED = [i for i in range(2 * FRAMES) if i % 20 < 13][:FRAMES]


def later(ticks: int) -> Change:
    """Return a change that moves every packet in time."""

    def change(packet: Packet) -> bool:
        assert packet.pts is not None
        assert packet.dts is not None
        packet.pts += ticks
        packet.dts += ticks
        return True

    return change


def in_pairs(packet: Packet) -> bool:
    """Give every second frame the pts of the one before it."""
    assert packet.pts is not None
    packet.pts += (packet.pts + FRAME) % (2 * FRAME)
    return True


def _moved(frames: int, first: int = 0, **muxer: str) -> Kind:
    """Return the kind of a film moved in time, whose frames before `first` are not shown."""
    return copied(H264, "mp4", lambda: later(frames * FRAME), range(first, FRAMES), **muxer)


KINDS: dict[str, Kind] = {
    "vfr.mp4": film(
        replace(H264, ticks=VFR, time_base=Fraction(1, 90000)), video_track_timescale="90000"
    ),
    "vfr.mkv": film(replace(H264, ticks=[t // 90 for t in VFR], time_base=Fraction(1, 1000))),
    "vfr_dropped.mp4": film(replace(H264, ticks=DROPPED)),
    "ntsc.mp4": film(replace(H264, rate=Fraction(30000, 1001))),
    "slow.mp4": film(Film(options={**X264, "g": "600"}, rate=Fraction(1))),
    "late.mp4": _moved(125),
    "late.ts": _moved(125),
    "edit_list.mp4": _moved(-5, first=5),
    # The first GOP lies before the edit list's beginning.
    "edit_list_gop.mp4": _moved(-17, first=17),
    "edit_list_end.mp4": _moved(-39, first=39),
    "negative_pts.mp4": _moved(-5, use_editlist="0", avoid_negative_ts="disabled"),
    # Matroska can't say these, and the packets come without a pts.
    "negative_pts.mkv": _moved(-5, avoid_negative_ts="disabled"),
    "paired_pts.mp4": copied(H264, "mp4", lambda: in_pairs, range(FRAMES)),
    "paired_pts.mkv": copied(H264, "mp4", lambda: in_pairs, range(FRAMES)),
    "paired_pts.ts": copied(H264, "mp4", lambda: in_pairs, range(FRAMES)),
    # The clock of a transport stream has 33 bits, at 90 kHz: it starts anew after a second.
    "wrapping.ts": copied(
        H264, "mp4", lambda: later((2**33 // 90000 - 1) * SECOND), range(FRAMES), mpegts_copyts="1"
    ),
}

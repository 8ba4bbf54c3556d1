"""The index of a video's frames: from its packets where they can be trusted, else by decoding."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import av
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from pttool.core.video.opening import Input, opened
from pttool.core.video.packets import Packets, every_packet
from pttool.core.video.types import FrameIndex
from pttool.errors import InputError

UNKNOWN_TIME_BASE = Fraction(1, 1_000_000)


@dataclass(frozen=True, slots=True)
class Decoded:
    """What a full sequential decode gave.

    `failures` are the places of the packets that couldn't be decoded, the last of those that could
    is at `last_place`; of them, `empty` hold nothing, as Theora's that repeat the frame before, and
    are no damage. `damaged` are the numbers of the frames that the decoder patched up. `first`
    is the first frame; `end_pts` that of the last packet, which may be cut short.
    """

    index: FrameIndex
    failures: tuple[int, ...]
    empty: frozenset[int]
    damaged: tuple[int, ...]
    first: VideoFrame
    last_place: int
    end_pts: int | None

    @property
    def damage(self) -> str | None:
        """What is damaged before the end of the file, if anything is."""
        broken = [place for place in self.failures if place not in self.empty]
        lost = [place for place in broken if place < self.last_place]
        patched = [number for number in self.damaged if self.index.pts[number] != self.end_pts]
        said = []
        if lost:
            said.append(f"{_counted(lost, 'packet')} can't be decoded, the first is {lost[0]}")
        if patched:
            said.append(f"{_counted(patched, 'picture')} damaged, the first is {patched[0]}")
        return f"corrupt: {'; '.join(said)}" if said else None


def _counted(numbers: Sequence[int], noun: str) -> str:
    return f"{len(numbers)} {noun}{'s' * (len(numbers) != 1)}"


def index_of(packets: Packets, time_base: Fraction | None) -> FrameIndex | None:
    """Return the frames that the packets tell, or None where only decoding can tell them.

    That is so where timestamps are missing or duplicate, a packet but the last is cut or damaged,
    or the first frames decoded aren't those which the packets promise. What is shown before the
    first frame that can be decoded, as leading pictures of an open GOP are, is left out.
    """
    known = [pts for pts in packets.shown if pts is not None]
    probed = [pts for pts in packets.probe.pts if pts is not None]
    if len(known) < len(packets.pts) - len(packets.hidden) or len(probed) < len(packets.probe.pts):
        return None
    if packets.probe.failed or not probed or packets.flawed - {len(packets.pts) - 1}:
        return None
    pts = sorted(known)
    pts = pts[bisect_left(pts, probed[0]) :]
    if len({*pts}) < len(pts) or probed != pts[: len(probed)]:
        return None
    keyframes = (bisect_left(pts, key) for key in packets.keyframes if key >= pts[0])
    return FrameIndex(
        tuple(pts), time_base or UNKNOWN_TIME_BASE, tuple(sorted(keyframes)), "packets"
    )


def ending(index: FrameIndex, end: Sequence[int], last: int | None) -> FrameIndex | None:
    """Return the index as far as its end was decoded, or None where that gave something else.

    `end` are the pts decoded, `last` is that of the last packet, which need not give a frame.
    """
    begins = len(index) - len(end)
    if index.pts[begins:] == tuple(end):
        return index
    pts = tuple(pts for pts in index.pts if pts != last)
    if pts[begins - 1 :] != tuple(end) or len(pts) != len(index) - 1:
        return None
    keyframes = tuple(number for number in index.keyframes if index.pts[number] != last)
    return replace(index, pts=pts, keyframes=keyframes)


def decoded(path: Path) -> Decoded:
    """Decode all of a file. Raises InputError where that gives no frame."""
    pts: list[int | None] = []
    keyframes, damaged, failures = [], [], []
    empty: set[int] = set()
    first: VideoFrame | None = None
    last_place, end_pts = -1, None
    with opened(path) as source:
        time_base = source.stream.time_base or UNKNOWN_TIME_BASE
        for place, packet in enumerate(every_packet(source)):
            if packet.size:
                end_pts = packet.pts
            frames = frames_of(packet)
            if frames is None:
                failures.append(place)
                if not packet.size:
                    empty.add(place)
                continue
            last_place = place if packet.size else last_place
            for number, frame in enumerate(frames, len(pts)):
                first = first or frame
                pts.append(frame.pts)
                if frame.key_frame:
                    keyframes.append(number)
                if frame.is_corrupt:
                    damaged.append(number)
    if first is None:
        raise InputError(
            f"{path}: none of its frames can be decoded", "download or copy the file again"
        )
    index = FrameIndex(tuple(pts), time_base, tuple(keyframes), "decoded")
    return Decoded(
        index, tuple(failures), frozenset(empty), tuple(damaged), first, last_place, end_pts
    )


def every_frame(source: Input) -> Iterator[VideoFrame | None]:
    """Yield the frames of a newly opened file: frame i of this is frame i of the video.

    None stands for a packet that can't be decoded, which is passed over as ffmpeg does.
    """
    for packet in every_packet(source):
        frames = frames_of(packet)
        yield from [None] if frames is None else frames


def frames_of(packet: "Packet[VideoStream]") -> list[VideoFrame] | None:
    """Return the frames that come out when a packet is decoded, None if it can't be."""
    try:
        return packet.decode()
    except av.FFmpegError:
        return None

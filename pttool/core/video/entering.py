"""Decode from keyframes on, to the frames that are wanted and not much further."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import av
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from pttool.core.video.opening import Input
from pttool.core.video.packets import EntryPoint, Packets, every_packet
from pttool.core.video.types import FrameIndex

# A seek costs about as much as to decode so many frames more.
FRAMES_OF_A_SEEK = 4
ENTRIES_TRIED = 3
SEEKS_TRIED = 4


class LostError(Exception):
    """Decoding doesn't give the frames that the packets promise; `is_damaged`: and says why."""

    def __init__(self, *, is_damaged: bool = False) -> None:
        super().__init__()
        self.is_damaged = is_damaged


@dataclass(frozen=True, slots=True)
class Entrance:
    """A way to frames by their timestamps `pts`, which tell them apart, and by keyframes."""

    source: Input
    packets: Packets
    pts: tuple[int, ...]

    def frames(self, ordinals: Sequence[int]) -> Iterator[VideoFrame]:
        """Yield frames, whose ordinals increase. Raises LostError where one doesn't come."""
        for run in self._runs(ordinals):
            yield from self._run(run)

    def end(self) -> list[int]:
        """Return the pts of the frames that come from the last keyframe on.

        The last packet is not that keyframe, and may give no frame or a damaged one. Raises
        LostError where another does.
        """
        last = len(self.packets.pts) - 1
        entries = [entry for entry in self.packets.entries if entry.place < last]
        if not entries:
            raise LostError
        found = []
        for place, packet in enumerate(self._known_packets(entries), entries[-1].place):
            try:
                frames = _decoded(packet, set(), may_skip=False)
            except LostError:
                if place < last:
                    raise
                continue
            for frame in frames:
                if frame.pts is None or (frame.is_corrupt and frame.pts != self.packets.pts[last]):
                    raise LostError(is_damaged=True)
                if frame.pts >= entries[-1].pts:
                    found.append(frame.pts)
        return found

    def _runs(self, ordinals: Sequence[int]) -> Iterator[list[int]]:
        """Yield the pts to decode at one go: those of one keyframe, and of the next if near."""
        starts = self._starts()
        run: list[int] = []
        previous = 0
        for ordinal in ordinals:
            pts = self.pts[ordinal]
            start = starts[max(bisect_right(starts, pts) - 1, 0)]
            is_far = bisect_left(self.pts, start) > previous + FRAMES_OF_A_SEEK
            if run and start > run[-1] and is_far:
                yield run
                run = []
            run.append(pts)
            previous = ordinal
        if run:
            yield run

    def _starts(self) -> list[int]:
        return [entry.pts for entry in self.packets.entries]

    def _run(self, run: Sequence[int]) -> Iterator[VideoFrame]:
        """Yield the frames of a run, from the keyframe before it or else from one before that."""
        rest = list(run)
        last = bisect_right(self._starts(), rest[0])
        for end in range(last, max(last - ENTRIES_TRIED, 0), -1):
            may_skip = end == last and self.packets.skips_unreferenced
            try:
                for frame in self._from(self.packets.entries[:end], tuple(rest), may_skip=may_skip):
                    del rest[0]
                    yield frame
            except LostError as error:
                if error.is_damaged:
                    raise
            else:
                return
        raise LostError

    def _from(
        self, entries: Sequence[EntryPoint], wanted: Sequence[int], *, may_skip: bool
    ) -> Iterator[VideoFrame]:
        """Yield the frames with the pts `wanted`, from the last of the entries on.

        With `may_skip`, frames to which no others refer aren't decoded unless wanted.
        """
        awaited, undecoded = list(reversed(wanted)), set(wanted)
        for packet in self._known_packets(entries):
            frames = _decoded(packet, undecoded, may_skip=may_skip)
            if any(frame.is_corrupt for frame in frames):
                raise LostError(is_damaged=True)
            for frame in frames:
                if frame.pts is None or frame.pts > awaited[-1]:
                    raise LostError
                if frame.pts == awaited[-1]:
                    awaited.pop()
                    yield frame
                    if not awaited:
                        return
            if not undecoded:
                break
        raise LostError

    def _known_packets(self, entries: Sequence[EntryPoint]) -> Iterator["Packet[VideoStream]"]:
        """Yield the packets from the last of the entries on, if they are those that are known."""
        for place, packet in enumerate(_packets_from(self.source, entries), entries[-1].place):
            # A timestamp that isn't in the file but made up by FFmpeg depends on the seek.
            if packet.size and packet.pts != self.packets.pts[place]:
                raise LostError
            yield packet


def entrance(
    source: Input, packets: Packets, index: FrameIndex, *, lost: int = 0
) -> Entrance | None:
    """Return the way to frames by keyframes, or None where timestamps don't tell frames apart.

    Nor is there one where a frame may be spread over two packets, one for each of its fields;
    `lost` packets give none.
    """
    starts = [entry.pts for entry in packets.entries]
    pts = tuple(pts for pts in index.pts if pts is not None)
    may_have_fields = index.source == "decoded" and len(packets.shown) != len(index) + lost
    if may_have_fields or len(pts) < len(index) or not starts:
        return None
    return Entrance(source, packets, pts) if _increase(starts) and _increase(pts) else None


def _increase(values: Sequence[int]) -> bool:
    return all(earlier < later for earlier, later in pairwise(values))


def _packets_from(source: Input, entries: Sequence[EntryPoint]) -> Iterator["Packet[VideoStream]"]:
    """Yield the packets from the last of the entries on; where a seek leads behind, seek before."""
    entry = entries[-1]
    for target in reversed(entries[-SEEKS_TRIED:]):
        time = target.pts if source.seeks_pts or target.dts is None else target.dts
        try:
            source.container.seek(time, stream=source.stream)
        except av.FFmpegError:
            continue
        packets = every_packet(source)
        for packet in packets:
            if packet.pts == entry.pts and packet.dts == entry.dts:
                yield packet
                yield from packets
                return
            if packet.dts is not None and entry.dts is not None and packet.dts > entry.dts:
                break
    raise LostError


def _decoded(
    packet: "Packet[VideoStream]", undecoded: set[int], *, may_skip: bool
) -> list[VideoFrame]:
    """Decode a packet; once none is undecoded, all frames come, not only those whose turn it is."""
    codec = packet.stream.codec_context
    is_wanted = packet.pts in undecoded
    codec.skip_frame = "NONREF" if may_skip and packet.size and not is_wanted else "DEFAULT"
    try:
        frames = packet.decode()
        if is_wanted and packet.pts is not None:
            undecoded.discard(packet.pts)
            if not undecoded:
                frames += codec.decode(None)
    except av.FFmpegError as error:
        raise LostError(is_damaged=True) from error
    return frames

"""Read the packets of a video, decode the first few, and gather what they tell."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import av
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from pttool.core.video.bitstreams import Traits, header_check_for, reader_for
from pttool.core.video.opening import Input

# The first frames are decoded to see that they are those which the packets promise: this many
# from the first keyframe on, within so many packets.
PROBED_FRAMES = 4
PROBED_PACKETS = 250


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """A packet at which decoding can start: its timestamps, and its place among all packets."""

    pts: int
    dts: int | None
    place: int


@dataclass(slots=True)
class Probe:
    """What came of decoding the first packets: the first frame, and the pts of all frames."""

    first: VideoFrame | None = None
    pts: list[int | None] = field(default_factory=list)
    failed: bool = False
    packets_left: int = PROBED_PACKETS

    def feed(self, packet: "Packet[VideoStream]", start: int | None) -> None:
        """Decode one more packet, unless enough is known; `start` is the first keyframe's pts."""
        self.packets_left -= 1
        try:
            frames = packet.decode()
        except av.FFmpegError:
            self.failed = True
            return
        for frame in frames:
            self.first = self.first or frame
            self.pts.append(frame.pts)
            self.failed |= frame.is_corrupt
        if start is not None:
            seen = [pts for pts in self.pts if pts is not None and pts >= start]
            if len(seen) >= PROBED_FRAMES:
                self.packets_left = 0


@dataclass(slots=True)
class Packets:
    """What all packets tell.

    `pts` are in the order of the file; `hidden` are the places of packets without a frame to show.
    `keyframes` are pts; `damaged` are the places of packets of which only decoding can tell what
    is in them, `cut` of those that are incomplete.
    `last_duration` is that of the frame shown last, at `last_pts`, in units of the time base.
    """

    probe: Probe = field(default_factory=Probe)
    pts: list[int | None] = field(default_factory=list)
    keyframes: list[int] = field(default_factory=list)
    entries: list[EntryPoint] = field(default_factory=list)
    damaged: list[int] = field(default_factory=list)
    cut: list[int] = field(default_factory=list)
    hidden: list[int] = field(default_factory=list)
    payload_bytes: int = 0
    last_pts: int | None = None
    last_duration: int | None = None
    skips_unreferenced: bool = False

    @property
    def shown(self) -> list[int | None]:
        """The pts of the frames to be shown, in the order of the file."""
        hidden = set(self.hidden)
        return [pts for place, pts in enumerate(self.pts) if place not in hidden]

    def add(self, packet: "Packet[VideoStream]", traits: Traits) -> None:
        """Note what a packet tells."""
        place, pts = len(self.pts), packet.pts
        self.pts.append(pts)
        self.payload_bytes += packet.size
        if packet.is_corrupt:
            self.cut.append(place)
        if traits.is_doubtful:
            self.damaged.append(place)
        if traits.is_entry and pts is not None:
            self.entries.append(EntryPoint(pts, packet.dts, place))
        if packet.is_discard or not traits.is_shown:
            self.hidden.append(place)
        elif pts is not None:
            if packet.is_keyframe:
                self.keyframes.append(pts)
            if self.last_pts is None or pts > self.last_pts:
                self.last_pts, self.last_duration = pts, packet.duration

    @property
    def flawed(self) -> set[int]:
        """The places of packets of which only decoding tells whether they give a frame."""
        return {*self.cut, *self.damaged}


def every_packet(source: Input) -> Iterator["Packet[VideoStream]"]:
    """Yield the packets, and in the end an empty one that makes the decoder give the rest.

    Where a file can't be read on, it ends.
    """
    try:
        yield from source.container.demux(source.stream)
    except av.FFmpegError:
        last: Packet[VideoStream] = Packet()  # type: ignore[assignment]
        last.stream = source.stream
        yield last


def read_packets(source: Input) -> Packets:
    """Read all packets of a newly opened file."""
    found = Packets()
    read = reader_for(source.stream)
    has_sound_headers = header_check_for(source.stream)
    for packet in every_packet(source):
        if found.probe.packets_left:
            found.probe.feed(packet, found.keyframes[0] if found.keyframes else None)
        if packet.size:
            found.add(packet, read(packet))
            if not has_sound_headers(packet):
                found.damaged.append(len(found.pts) - 1)
        elif packet.dts is not None:  # it ends the decoding, as the empty one at the end does
            found.damaged.append(len(found.pts))
    found.skips_unreferenced = read.skips_unreferenced
    return found

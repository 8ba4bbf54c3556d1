"""What the packets of a codec tell of their frames, without decoding them."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import av
from av.bitstream import BitStreamFilterContext
from av.packet import Packet
from av.video.stream import VideoStream

from pttool.core.video.nal_units import (
    H264_LENGTH_AT,
    HEVC_LENGTH_AT,
    START_CODE,
    length_bytes,
    recovers_at_once,
    unit_starts,
)

SEI_BYTES = 256
# In these a frame that is marked as a keyframe needs nothing before it, nor do those shown after.
PLAIN_KEYFRAMES = frozenset({
    "mpeg1video", "mpeg2video", "mpeg4", "h263", "h263p", "flv1", "msmpeg4v1", "msmpeg4v2",
    "msmpeg4v3", "wmv1", "wmv2", "wmv3", "vc1", "vp8", "vp9", "av1", "theora", "mjpeg", "prores",
    "dnxhd", "huffyuv", "ffvhuff", "ffv1", "rawvideo", "utvideo", "dvvideo", "hap", "magicyuv",
    "jpeg2000", "v210", "cfhd", "vvc",
})  # fmt: skip
# Their decoders tell by a frame's own header whether others refer to it, and then skip it without
# a trace in those.
SKIPS_UNREFERENCED = frozenset({"mpeg1video", "mpeg2video", "mpeg4"})
# FFmpeg can parse all headers of these, which costs little beside reading them.
PARSED_HEADERS = frozenset({"h264", "hevc", "vvc", "av1", "vp8", "vp9", "mpeg2video"})
HEADER_PARSER = "trace_headers"
# A frame of MPEG-4 that says only "as before" is not decoded to a picture; coded ones are longer.
LONGEST_EMPTY_MPEG4 = 19
JPEG_START, PRORES_START = b"\xff\xd8", b"icpf"
# Sequence header, temporal delimiter, frame header, tile group, metadata, frame, repeated header,
# tile list, padding (AV1, 6.2.2).
AV1_KINDS = frozenset({1, 2, 3, 4, 5, 6, 7, 8, 15})


class Traits(NamedTuple):
    """What a packet tells.

    is_shown: it holds a frame to be shown. is_entry: decoding may start at it, and every picture
    shown from it on is exact. is_doubtful: whether it gives a frame, only decoding tells.
    """

    is_shown: bool = True
    is_entry: bool = False
    is_doubtful: bool = False


FRAME = Traits()
ENTRY = Traits(is_entry=True)
HIDDEN = Traits(is_shown=False)
DOUBTFUL = Traits(is_doubtful=True)


class PacketReader(Protocol):
    """Tells the traits of each packet; `skips_unreferenced` is known once all were seen."""

    skips_unreferenced: bool

    def __call__(self, packet: "Packet[VideoStream]") -> Traits: ...


def reader_for(stream: VideoStream) -> PacketReader:
    """Return what reads the packets of a stream."""
    codec = stream.codec.canonical_name
    extradata = stream.codec_context.extradata
    match codec:
        case "h264":
            return _H264(length_bytes(extradata, H264_LENGTH_AT))
        case "hevc":
            return _Hevc(length_bytes(extradata, HEVC_LENGTH_AT))
        case "vp8":
            return _Plain(codec, _vp8)
        case "vp9":
            return _Plain(codec, _vp9)
        case "av1":
            return _Plain(codec, _av1)
        case "mpeg4":
            return _Plain(codec, _mpeg4)
        case "mjpeg":
            return _Plain(codec, lambda packet: _signed(packet, JPEG_START))
        case "prores":
            return _Plain(codec, lambda packet: _signed(packet[4:], PRORES_START))
    return _Plain(codec, lambda packet: FRAME)


def header_check_for(stream: VideoStream) -> Callable[["Packet[VideoStream]"], bool]:
    """Return what tells whether the headers in a packet are sound, and empties the packet."""
    if stream.codec.canonical_name not in PARSED_HEADERS:
        return lambda packet: True
    try:
        parser = BitStreamFilterContext(HEADER_PARSER, stream)
    except av.FFmpegError:  # the headers before all packets are damaged
        return lambda packet: False

    def has_sound_headers(packet: "Packet[VideoStream]") -> bool:
        try:
            parser.filter(packet)
        except av.FFmpegError:
            return False
        return True

    return has_sound_headers


class _Plain:
    """A codec whose keyframes are what they are marked to be, or never to be trusted."""

    def __init__(self, codec: str, read: Callable[[memoryview], Traits]) -> None:
        self.skips_unreferenced = codec in SKIPS_UNREFERENCED
        self._read = read
        self._has_entries = codec in PLAIN_KEYFRAMES

    def __call__(self, packet: "Packet[VideoStream]") -> Traits:
        traits = self._read(memoryview(packet))
        if traits is FRAME and packet.is_keyframe and self._has_entries:
            return ENTRY
        return traits


def _vp8(packet: memoryview) -> Traits:
    """Alternate reference frames stand in packets of their own (RFC 6386, 9.1)."""
    return FRAME if packet[0] & 0x10 else HIDDEN


def _vp9(packet: memoryview) -> Traits:
    """A superframe shows one of its frames; a lone one may be hidden (VP9, 6.2 and annex B)."""
    first = packet[0]
    if packet[-1] & 0xE0 == 0xC0 or first & 0x30 == 0x30:
        return FRAME
    shows_existing, shows = first & 0x08, first & 0x02
    return FRAME if shows_existing or shows else HIDDEN


def _av1(packet: memoryview) -> Traits:
    """A temporal unit holds a frame of type 6, or its header of 3, in units (AV1, 5.3 and 6.2)."""
    position, has_frame = 0, False
    while position < len(packet):
        header = packet[position]
        kind = header >> 3 & 15
        if header & 0x81 or kind not in AV1_KINDS:
            return DOUBTFUL
        has_frame |= kind in (3, 6)
        if not header & 2:  # without a size: up to the end
            break
        start = position + 1 + (header >> 2 & 1)
        size, start = _leb128(packet, start)
        position = start + size
    return FRAME if has_frame and position <= len(packet) else DOUBTFUL


def _leb128(octets: memoryview, position: int) -> tuple[int, int]:
    """Return a number of seven bits to the byte, and where it ends (AV1, 4.10.5)."""
    value = shift = 0
    for octet in octets[position : position + 8]:
        value |= (octet & 0x7F) << shift
        shift += 7
        position += 1
        if octet < 0x80:
            break
    return value, position


def _signed(packet: memoryview, signature: bytes) -> Traits:
    return FRAME if packet[: len(signature)] == signature else DOUBTFUL


def _mpeg4(packet: memoryview) -> Traits:
    return _signed(packet, START_CODE) if len(packet) > LONGEST_EMPTY_MPEG4 else DOUBTFUL


class _H264:
    """H.264 (ISO/IEC 14496-10, table 7-1): 1 and 5 begin a slice, 5 of an IDR picture; 6 is SEI."""

    skips_unreferenced = True

    def __init__(self, length_size: int | None) -> None:
        self._length_size = length_size

    def __call__(self, packet: "Packet[VideoStream]") -> Traits:
        return ENTRY if packet.is_keyframe and self._is_entry(memoryview(packet)) else FRAME

    def _is_entry(self, packet: memoryview) -> bool:
        for start in unit_starts(packet, self._length_size):
            kind = packet[start] & 31
            if kind == 5:
                return True
            if kind == 6 and recovers_at_once(bytes(packet[start + 1 : start + SEI_BYTES])):
                return True
            if kind == 1:
                return False
        return False


class _Hevc:
    """HEVC (ISO/IEC 23008-2, table 7-1): below 32 are slices, 16 to 21 of a picture to start at."""

    def __init__(self, length_size: int | None) -> None:
        self._length_size = length_size
        self.skips_unreferenced = True

    def __call__(self, packet: "Packet[VideoStream]") -> Traits:
        view = memoryview(packet)
        is_entry = False
        for start in unit_starts(view, self._length_size):
            kind = view[start] >> 1 & 63
            # After an end of sequence, or at a broken link, leading pictures are left out.
            if kind in (36, 37, 16, 17):
                return DOUBTFUL
            is_entry |= 16 <= kind <= 21
            layer = view[start + 1] & 7 if start + 1 < len(view) else 0
            if layer == 0:  # forbidden: it is the layer's number plus 1
                return DOUBTFUL
            if kind < 32 and layer > 1:
                # One of a higher temporal layer may refer to a picture that its own doesn't.
                self.skips_unreferenced = False
        return ENTRY if is_entry and packet.is_keyframe else FRAME

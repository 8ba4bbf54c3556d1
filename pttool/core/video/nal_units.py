"""The NAL units of an H.264 or HEVC packet: where they lie, and what some of them say."""

from collections.abc import Iterator

START_CODE = b"\0\0\1"
# An AVC or HEVC configuration record starts with its version, 1; Annex B with a start code.
CONFIGURATION_VERSION = 1
H264_LENGTH_AT, HEVC_LENGTH_AT = 4, 21
RECOVERY_POINT = 6
LONG_FORM, TRAILING_BITS = 0xFF, 0x80


def length_bytes(extradata: bytes | None, at: int) -> int | None:
    """Return the bytes of a unit's length, from byte `at` of the record; None for Annex B.

    ISO/IEC 14496-15, 5.3.3.1 and 8.3.3.1.
    """
    if not extradata or extradata[0] != CONFIGURATION_VERSION or len(extradata) <= at:
        return None
    return (extradata[at] & 3) + 1


def unit_starts(packet: memoryview, length_size: int | None) -> Iterator[int]:
    """Yield where the units of a packet begin, each after its length or after a start code."""
    if length_size is None:
        return _delimited(bytes(packet))
    return _sized(packet, length_size)


def _sized(packet: memoryview, length_size: int) -> Iterator[int]:
    position = 0
    while position + length_size < len(packet):
        start = position + length_size
        yield start
        position = start + int.from_bytes(packet[position:start], "big")


def _delimited(packet: bytes) -> Iterator[int]:
    position = packet.find(START_CODE)
    while 0 <= position < len(packet) - len(START_CODE):
        yield position + len(START_CODE)
        position = packet.find(START_CODE, position + len(START_CODE))


def recovers_at_once(sei: bytes) -> bool:
    """Whether an SEI unit says that all pictures shown from here on are exact (H.264, D.2.8)."""
    position = 0
    while position + 2 < len(sei) and sei[position] != TRAILING_BITS:
        kind, size = sei[position], sei[position + 1]
        if LONG_FORM in (kind, size):  # which a recovery point has no need of
            return False
        if kind == RECOVERY_POINT:
            # recovery_frame_cnt, the code for 0 of which is a single 1 bit (H.264, 9.1).
            return size > 0 and sei[position + 2] & 0x80 != 0
        position += 2 + size
    return False

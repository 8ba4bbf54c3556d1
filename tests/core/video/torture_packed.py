"""Torture: a frame and the B-frame before it in one packet, as old encoders packed them for AVI.

AVI has no way to say that frames are decoded in another order than they are shown: DivX and Xvid
put the two into one packet, and a packet without a picture in the place of the second.
"""

import io
from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

import av

from tests.core.video.encoding import encoded
from tests.core.video.kinds import Kind
from tests.core.video.torture_codecs import FINE, MPEG4

VOP = b"\x00\x00\x01\xb6"
# What tells a decoder that frames are packed ("p"), in the user data before the first frame.
DIVX = b"\x00\x00\x01\xb2DivX503b1393p"
# A frame that says it has no content, and so is no frame.
NOT_CODED = VOP + b"\x50\x60"


def pack(path: Path) -> None:
    """Write a film that has a B-frame between others, packed."""
    film = replace(MPEG4, options={**FINE, "bf": "1", "b_strategy": "0"})
    with av.open(io.BytesIO(encoded(film, "avi")), "r") as read, av.open(path, "w") as made:
        stream = made.add_stream_from_template(read.streams.video[0])
        contents = [bytes(packet) for packet in read.demux(read.streams.video[0]) if packet.size]
        for place, content in enumerate(_packed(contents)):
            packet = av.Packet(content)
            packet.pts = packet.dts = place
            packet.time_base = 1 / film.rate
            packet.is_keyframe = _kind(content) == "I"
            packet.stream = stream
            made.mux_one(packet)


def _packed(contents: list[bytes]) -> Iterator[bytes]:
    """Put each B-frame behind the frame that comes before it in the order of decoding."""
    for content, following in zip_longest(contents, contents[1:], fillvalue=b""):
        if _kind(content) == "B":
            yield NOT_CODED
        else:
            header, vop, picture = content.partition(VOP)
            signed = header + (DIVX if header else b"") + vop + picture
            yield signed + (following if _kind(following) == "B" else b"")


def _kind(content: bytes) -> str:
    place = content.find(VOP) + len(VOP)
    return "IPBS"[content[place] >> 6] if content else ""


KINDS: dict[str, Kind] = {"packed.avi": Kind(pack)}

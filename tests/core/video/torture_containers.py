"""Torture: what else is in a file, what its header leaves out, and what it is called."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import av
import cv2
import numpy as np
from av.audio.stream import AudioStream
from av.stream import Disposition

from tests.core.video.barcode import draw
from tests.core.video.encoding import Film, add_film, encoded, packets
from tests.core.video.kinds import Kind, film, written
from tests.core.video.torture_codecs import FINE, H264, HEVC, MPEG4, VP9

COVER = Film("mjpeg", {}, numbers=[9999], pix_fmt="yuvj420p", size=(320, 320))
RATE, SAMPLES = 16000, 1024


def together(path: Path, films: Sequence[Film], *, sound: bool = False) -> None:
    """Write films, COVER as a picture that stands for the file, and a tone of 1.6 s."""
    with av.open(path, "w") as container:
        streams = [add_film(container, what) for what in films]
        for stream, what in zip(streams, films, strict=True):
            if what is COVER:
                stream.disposition = Disposition.attached_pic
        tone = container.add_stream("aac", RATE, layout="mono") if sound else None
        container.start_encoding()
        for stream, what in zip(streams, films, strict=True):
            for packet in packets(stream, what):
                container.mux_one(packet)
        if isinstance(tone, AudioStream):
            for heard in _tone(tone):
                container.mux_one(heard)


def _tone(stream: AudioStream) -> "Iterator[av.Packet[AudioStream]]":
    wave = np.sin(np.arange(25 * SAMPLES) / 8).astype(np.float32)
    for start in range(0, len(wave), SAMPLES):
        samples = wave[None, start : start + SAMPLES]
        frame = av.AudioFrame.from_ndarray(samples, format="fltp", layout="mono")
        frame.sample_rate, frame.pts = RATE, start
        yield from stream.encode(frame)
    yield from stream.encode(None)


def sequence(name: Callable[[int], str], numbers: Sequence[int] = range(12)) -> Kind:
    """Return the kind of a folder of pictures, one for each frame."""

    def make(folder: Path) -> None:
        folder.mkdir()
        for place, number in enumerate(numbers):
            rgb = draw(number, *H264.size)
            av.VideoFrame.from_ndarray(rgb, format="rgb24").save(folder / name(place))

    return Kind(make, numbers)


def _attached(path: Path) -> None:
    """Write a film and COVER the way Matroska keeps it: as an attached file."""
    with av.open(path, "w") as container:
        stream = add_film(container, H264)
        container.add_attachment("cover.jpg", "image/jpeg", encoded(COVER, "mjpeg"))
        for packet in packets(stream, H264):
            container.mux_one(packet)


def _made(*films: Film, sound: bool = False) -> Kind:
    return Kind(lambda path: together(path, films, sound=sound))


def _joined_pngs() -> bytes:
    """Return PNG files one behind the other, as `ffmpeg -f image2pipe` writes them."""
    pngs = [cv2.imencode(".png", draw(number, *H264.size))[1] for number in range(12)]
    return b"".join(png.tobytes() for png in pngs)


KINDS: dict[str, Kind] = {
    "joined.bin": written(_joined_pngs, range(12)),
    "cover_first.mp4": _made(COVER, H264),
    "cover_last.mp4": _made(H264, COVER),
    "cover.mkv": Kind(_attached),
    "sound.mp4": _made(H264, sound=True),
    "sound.mkv": _made(H264, sound=True),
    "sound.ts": _made(H264, sound=True),
    "sound_cover.mp4": _made(COVER, H264, sound=True),
    "fragmented.mp4": film(H264, movflags="frag_keyframe+empty_moov+default_base_moof"),
    "fragmented_hevc.mp4": film(HEVC, movflags="frag_every_frame+empty_moov"),
    "fast_start.mp4": film(MPEG4, movflags="faststart"),
    "live.webm": film(VP9, live="1"),
    "live.mkv": film(H264, live="1"),
    "live.flv": film(Film("flv", FINE), flvflags="no_duration_filesize"),
    "one_frame.mp4": film(Film(numbers=[0])),
    "two_frames.mkv": film(Film(numbers=[0, 1])),
    "with two  spaces.mp4": film(H264),
    "кадр 映像 é.mkv": film(H264),
    "%03d.mp4": film(H264),
    "100%d [1-3] *?.mkv": film(H264),
    "unpadded": sequence(lambda place: f"img_{place + 1}.jpg"),
    "padded": sequence(lambda place: f"frame{place:05d}.png"),
    "gaps": sequence(lambda place: f"{place * 7}.jpg", range(5)),
}

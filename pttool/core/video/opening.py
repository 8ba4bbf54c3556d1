"""Open a file as a video, or say what it is instead."""

import contextlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import av
from av.container import InputContainer
from av.stream import Disposition
from av.video.stream import VideoStream

from pttool.errors import InputError, UnavailableError

PICTURES_OF_A_SONG = Disposition.attached_pic | Disposition.timed_thumbnails
# Demuxers that open the other files which a text names.
PLAYLISTS = frozenset({"hls", "dash", "concat", "imf", "sdp", "rtsp"})
ANIMATIONS = frozenset({"gif", "apng", "gif_pipe"})
HEAD_BYTES = 4096
# The first boxes of an ISO media file (ISO/IEC 14496-12).
ISO_BOXES = frozenset({b"ftyp", b"mdat", b"moov", b"free", b"skip", b"wide", b"styp", b"pnot"})
SIGNATURES = {
    b"PK\x03\x04": "a zip archive",
    b"\x1f\x8b": "a gzip archive",
    b"%PDF": "a PDF",
    b"\x80\x02": "a pickle",
    b"\x7fELF": "a program",
}

# Nothing in these tells how long a frame is, so that one cut short looks like any other.
WITHOUT_SIZES = frozenset({"mpegts", "mpeg"})
# AVFMT_NOTIMESTAMPS and AVFMT_SEEK_TO_PTS of libavformat/avformat.h.
NO_TIMESTAMPS, SEEK_TO_PTS = 0x80, 0x400_0000


@dataclass(frozen=True, slots=True)
class Input:
    """An open file, and the stream in it that is the video."""

    path: Path
    container: InputContainer
    stream: VideoStream

    @property
    def has_clock(self) -> bool:
        """Whether its container tells when a frame is shown."""
        return not self.container.format.flags & NO_TIMESTAMPS

    @property
    def ends_anywhere(self) -> bool:
        """Whether its container doesn't show that the last packet is cut short."""
        return self.container.format.name in WITHOUT_SIZES

    @property
    def seeks_pts(self) -> bool:
        """Whether a seek in its container goes by pts, not by dts."""
        return bool(self.container.format.flags & SEEK_TO_PTS)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Input]:
    """Open a file and choose its video stream, which one thread decodes; FFmpeg's log is silent.

    Nothing but the file itself is opened, whatever it names. Raises InputError, naming the kind,
    for what is not a video, and UnavailableError where FFmpeg has no decoder for it.
    """
    _check_readable(path)
    with _container(path) as container:
        stream = _video_stream(path, container)
        for other in container.streams:
            if other is not stream and other.type in ("video", "audio", "subtitle", "data"):
                other.discard = av.stream.Discard.all
        yield Input(path, container, stream)


def _check_readable(path: Path) -> None:
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{path}: {reason}", "check the path") from error
    if stat.S_ISDIR(status.st_mode):
        raise InputError(f"{path}: is a folder without images", "name a video or images in it")
    if not stat.S_ISREG(status.st_mode):
        raise InputError(
            f"{path}: is not a file", "videos are read anywhere in them: save it first"
        )
    if status.st_size == 0:
        raise InputError(f"{path}: empty file", "download or copy it again")
    if not os.access(path, os.R_OK):
        raise UnavailableError(f"{path}: no permission to read it", "chmod, or ask its owner")


@contextlib.contextmanager
def _container(path: Path) -> Iterator[InputContainer]:
    # The scheme keeps FFmpeg from taking the beginning of a name like "a:b.mp4" for one, and the
    # whitelist a playlist from reaching the network.
    options = {"protocol_whitelist": "file", "pattern_type": "none"}
    try:
        container = av.open(f"file:{path}", options=options, metadata_errors="replace")
    except (av.FFmpegError, ValueError) as error:
        raise _refusal(path, error) from error
    with container:
        yield container


def _refusal(path: Path, error: Exception) -> InputError:
    try:
        with path.open("rb") as stream:
            head = stream.read(HEAD_BYTES)
    except OSError as reason:
        return InputError(f"{path}: {reason.strerror}", "check that it is there, and stays there")
    if head[4:8] in ISO_BOXES:
        return InputError(
            f"{path}: no moov atom: a truncated download, or a recording cut short",
            "download it again",
        )
    kind = next((kind for start, kind in SIGNATURES.items() if head.startswith(start)), None)
    if kind is None and _is_text(head):
        kind = "text"
    if kind is None and not head.strip(b"\0"):
        kind = "nothing but zeros"
    said = f"not a video: {kind}" if kind else "not a video, or too damaged to be read as one"
    return InputError(f"{path}: {said}", "FFmpeg finds no container format that it knows in it")


def _is_text(head: bytes) -> bool:
    try:
        text = head.decode("utf-8", "strict" if len(head) < HEAD_BYTES else "ignore")
    except UnicodeDecodeError:
        return False
    return all(character.isprintable() or character in "\t\n\r\f" for character in text)


def _video_stream(path: Path, container: InputContainer) -> VideoStream:
    streams = container.streams
    found = [video for video in streams.video if not video.disposition & PICTURES_OF_A_SONG]
    name = container.format.name
    if name in PLAYLISTS:
        raise InputError(
            f"{path}: not a video: a playlist ({name})", "name the files that it names"
        )
    if found and _is_image(name) and not _has_several(path):
        raise InputError(
            f"{path}: not a video: a still image", "give the folder of an image sequence"
        )
    if not found:
        kind = "audio only" if streams.audio else "none that FFmpeg knows"
        cover = ", with a cover picture" if streams.video else ""
        raise InputError(f"{path}: no video stream: {kind}{cover}", "name a file with pictures")
    stream = found[0]
    if stream.codec_context is None:
        raise UnavailableError(
            f"{path}: FFmpeg as av carries it has no decoder for this video",
            "convert it first: ffmpeg -i FILE -c:v libx264 out.mp4",
        )
    stream.codec_context.thread_count = 1
    return stream


def _has_several(path: Path) -> bool:
    """Whether there is a second picture in a file of pictures, as in raw MJPEG."""
    with _container(path) as container:
        packets = (packet for packet in container.demux(video=0) if packet.size)
        try:
            return len(list(islice(packets, 2))) == 2
        except av.FFmpegError:
            return False


def _is_image(format_name: str) -> bool:
    return format_name not in ANIMATIONS and (
        format_name == "image2" or format_name.endswith("_pipe")
    )

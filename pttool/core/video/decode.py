"""From the numbers of frames to their pictures, exactly those of a full sequential decode."""

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import repeat
from pathlib import Path

from av.video.frame import VideoFrame

from pttool.core.video.entering import Entrance, LostError, entrance
from pttool.core.video.index import Decoded, decoded, ending, every_frame, index_of
from pttool.core.video.opening import Input, opened
from pttool.core.video.packets import Packets, read_packets
from pttool.core.video.sequences import ImageSequence, images_of
from pttool.core.video.types import FrameIndex, Picture, UnreadableFrameError, Video
from pttool.core.video.upright import rgb_of


@contextlib.contextmanager
def open_video(path: Path, *, rotate: bool = True) -> Iterator[Video]:
    """Open a file, a folder of images, or a pattern of their names; see `opened`, `images_of`.

    Pictures are upright, unless `rotate` is False.
    """
    images = images_of(path)
    if images is not None:
        yield ImageSequence(path, images, rotate=rotate)
        return
    with opened(path) as source:
        yield VideoFile(source, rotate=rotate)


class VideoFile:
    """An open file, whose packets are read when something about them is first asked.

    `decoded` is what a full decode gave, if there was one.
    """

    def __init__(self, source: Input, *, rotate: bool = True) -> None:
        self.source = source
        self.decoded: Decoded | None = None
        self._rotate = rotate

    @cached_property
    def packets(self) -> Packets:
        """What its packets tell."""
        return read_packets(self.source)

    @property
    def index(self) -> FrameIndex:
        """Its frames, told by the packets where those can be trusted, else by a full decode.

        Raises InputError where no frame can be decoded.
        """
        if self.decoded is None and self._told is not None:
            return self._told
        return self.decoded_index()

    @property
    def shortfall(self) -> str | None:
        """How many of the frames that the file claims can be read, if not all, as far as known."""
        readable, packets = len(self.index), self.packets
        count, header = len(packets.pts), 0 if self._reaches_its_end else self.source.stream.frames
        claimed = max(header, count) - len(packets.hidden)
        is_truncated = packets.cut or header > count
        # A decoder that is content makes fewer frames than packets of fields, two to a frame.
        is_short = self.decoded is None or self.decoded.failures or is_truncated
        if readable >= claimed or not is_short:
            return None
        said = f"{readable} of the {claimed} frames that the file claims can be read"
        return f"truncated: {said}" if is_truncated else said

    @property
    def _reaches_its_end(self) -> bool:
        """Whether its packets last as long as its header says: AVI's counts empty ones too."""
        last, length = self.packets.last_pts, self.source.stream.duration
        if last is None or length is None:
            return False
        return last + (self.packets.last_duration or 0) >= length + (
            self.source.stream.start_time or 0
        )

    @property
    def damage(self) -> str | None:
        """What is damaged before the end of the file, as far as it is known."""
        return None if self.decoded is None else self.decoded.damage

    def decoded_index(self) -> FrameIndex:
        """Return the frames that a full decode gives, by which `pictures` goes from then on."""
        if self.decoded is None:
            self.decoded = decoded(self.source.path)
        return self.decoded.index

    def pictures(self, ordinals: Sequence[int]) -> Iterator[Picture]:
        """Yield the pictures of frames, which never decrease; a repeated one comes again.

        Raises UnreadableFrameError where the index turns out not to be what decoding gives.
        """
        times = Counter(ordinals)
        for ordinal, frame in self._frames(sorted(times)):
            picture = Picture(ordinal, frame.pts, rgb_of(frame, rotate=self._rotate))
            yield from repeat(picture, times[ordinal])

    @cached_property
    def _told(self) -> FrameIndex | None:
        """The frames that the packets tell, if they can be trusted."""
        index = index_of(self.packets, self.source.stream.time_base)
        if index is None or not (self.source.ends_anywhere or self.packets.flawed):
            return index
        way = entrance(self.source, self.packets, index)
        try:
            return None if way is None else ending(index, way.end(), self.packets.pts[-1])
        except LostError:
            return None

    def _frames(self, ordinals: Sequence[int]) -> Iterator[tuple[int, VideoFrame]]:
        """Enter at keyframes; where that doesn't give the frames, decode from the beginning."""
        given = 0
        way = self._entrance()
        if way is not None:
            try:
                for frame in way.frames(ordinals):
                    yield ordinals[given], frame
                    given += 1
            except LostError as error:
                if error.is_damaged and self.decoded is None:
                    raise self._unreadable(ordinals[given]) from error
        if given < len(ordinals):
            yield from self._in_sequence(ordinals[given:])

    def _entrance(self) -> Entrance | None:
        if self.damage is not None:
            return None
        lost = 0 if self.decoded is None else len(self.decoded.failures)
        return entrance(self.source, self.packets, self.index, lost=lost)

    def _in_sequence(self, ordinals: Sequence[int]) -> Iterator[tuple[int, VideoFrame]]:
        """Yield the frames out of a decode from the beginning, which is compared to the index."""
        awaited = list(reversed(ordinals))
        pts = self.index.pts
        number = 0
        with opened(self.source.path) as source:
            for frame in every_frame(source):
                if self.decoded is None and (frame is None or frame.pts != pts[number]):
                    raise self._unreadable(awaited[-1])
                if frame is None:
                    continue
                if number == awaited[-1]:
                    yield awaited.pop(), frame
                    if not awaited:
                        return
                number += 1
        raise self._unreadable(awaited[-1])

    def _unreadable(self, ordinal: int) -> UnreadableFrameError:
        return UnreadableFrameError(
            f"{self.source.path}: frame {ordinal} can't be decoded", ordinal
        )

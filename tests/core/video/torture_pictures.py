"""Torture: what a picture can be, and how it is to be shown."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from tests.core.video.encoding import FRAMES, X264, Film, encoded
from tests.core.video.kinds import Kind, film, written
from tests.core.video.torture_codecs import AV1, H264, HEVC, VP9, VPX

TURNS: Mapping[str, int] = {"turned_90": 90, "turned_180": 180, "turned_270": 270}
WIDER = Film(size=(160, 112), numbers=range(FRAMES, FRAMES + 20))

KINDS: dict[str, Kind] = {
    **{f"{name}.mp4": film(replace(H264, turned=turn)) for name, turn in TURNS.items()},
    "turned_90.mkv": film(replace(H264, turned=90)),
    "wide_pixels.mp4": film(replace(H264, sample_aspect_ratio=Fraction(2, 1))),
    "narrow_pixels.mkv": film(replace(H264, sample_aspect_ratio=Fraction(8, 9))),
    "odd_size.mkv": film(replace(H264, size=(131, 97), pix_fmt="yuv444p")),
    "odd_size.webm": film(replace(VP9, size=(133, 99))),
    "cropped.mp4": film(replace(H264, size=(130, 98))),
    "h264_10_bit.mkv": film(replace(H264, pix_fmt="yuv420p10le")),
    "hevc_10_bit.mp4": film(replace(HEVC, pix_fmt="yuv420p10le")),
    "av1_10_bit.mkv": film(replace(AV1, pix_fmt="yuv420p10le")),
    "grey.mkv": film(replace(H264, pix_fmt="gray")),
    "rgb.mkv": film(replace(H264, codec="libx264rgb", pix_fmt="rgb24")),
    "full_range.mp4": film(replace(H264, pix_fmt="yuvj420p")),
    "interlaced.ts": film(Film(options={**X264, "x264-params": "interlaced=1"})),
    "alpha.webm": film(Film("libvpx-vp9", {**VPX, "auto-alt-ref": "0"}, pix_fmt="yuva420p")),
    "grows.ts": written(
        lambda: encoded(H264, "mpegts") + encoded(WIDER, "mpegts"), range(FRAMES + 20)
    ),
    "grows.264": written(
        lambda: encoded(H264, "h264") + encoded(WIDER, "h264"), range(FRAMES + 20)
    ),
}

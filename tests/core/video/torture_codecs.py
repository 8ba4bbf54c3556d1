"""Torture: every codec in every container that carries it."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from tests.core.video.encoding import X264, Film
from tests.core.video.kinds import Kind, film

H264_PLAIN = Film(options={**X264, "bf": "0"})
H264 = Film()
X265 = "log-level=none:info=0:keyint=12:bframes=3:pools=1:frame-threads=1"
HEVC = Film("libx265", {"preset": "ultrafast", "x265-params": X265})
VPX: Mapping[str, str] = {"deadline": "realtime", "cpu-used": "8", "g": "12", "b": "400k"}
VP9 = Film("libvpx-vp9", VPX)
# Frames that are never shown, kept in the packet of a shown one.
ALTREF: Mapping[str, str] = {"deadline": "good", "cpu-used": "5", "g": "20", "b": "400k"}
VP9_ALTREF = Film("libvpx-vp9", {**ALTREF, "lag-in-frames": "12", "auto-alt-ref": "1"})
AV1 = Film("libsvtav1", {"preset": "11", "g": "12", "crf": "35", "svtav1-params": "lp=1"})
FINE: Mapping[str, str] = {"g": "12", "flags": "+qscale", "global_quality": "354"}
MPEG4 = Film("mpeg4", {**FINE, "bf": "2"})
MPEG2 = Film("mpeg2video", {**FINE, "bf": "2"})
MJPEG = Film("mjpeg", {}, pix_fmt="yuvj420p")

_FILMS = {
    "h264_plain.mp4": H264_PLAIN,
    **{f"h264.{suffix}": H264 for suffix in ("mp4", "mov", "mkv", "ts", "flv", "avi", "264")},
    **{f"hevc.{suffix}": HEVC for suffix in ("mp4", "mov", "mkv", "ts", "flv", "265")},
    **{f"vp9.{suffix}": VP9 for suffix in ("webm", "mp4", "mkv", "avi", "flv", "ivf")},
    "vp9_altref.webm": VP9_ALTREF,
    "vp8.webm": replace(VP9, codec="libvpx"),
    **{f"av1.{suffix}": AV1 for suffix in ("mkv", "mp4", "webm", "avi", "flv", "ivf", "obu")},
    **{f"mpeg4.{suffix}": MPEG4 for suffix in ("mp4", "mkv", "avi", "ts", "m4v")},
    **{f"mpeg2.{suffix}": MPEG2 for suffix in ("mpg", "ts", "m2v")},
    "mpeg1.mpg": replace(MPEG2, codec="mpeg1video"),
    **{f"mjpeg.{suffix}": MJPEG for suffix in ("avi", "mov", "mjpeg")},
    "flv1.flv": Film("flv", FINE),
    "wmv2.asf": Film("wmv2", FINE),
    "animated.gif": Film("gif", {}, pix_fmt="rgb8", rate=Fraction(10)),
    "animated.apng": Film("apng", {}, pix_fmt="rgb24"),
    "ffv1.mkv": Film("ffv1", {}),
    "huffyuv.avi": Film("huffyuv", {}, pix_fmt="rgb24"),
    "prores.mov": Film("prores", {}, pix_fmt="yuv422p10le"),
    "uncompressed.avi": Film("rawvideo", {}, pix_fmt="bgr24"),
    "uncompressed.y4m": Film("wrapped_avframe", {}),
}

KINDS: dict[str, Kind] = {
    **{name: film(what) for name, what in _FILMS.items()},
    "h264.mpg": film(H264, form="vob"),
    "hevc.mpg": film(HEVC, form="vob"),
    "mpeg4.mpg": film(MPEG4, form="vob"),
}

"""Every kind of picture file that turns up in data sets, with the pixels that it must give.

The pixels come from the numbers that are written, by the rules of each kind, in numpy.
"""

import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Rgb = NDArray[np.uint8]  # (H, W, 3)
HEIGHT, WIDTH = 60, 80
_rows, _columns = np.mgrid[:HEIGHT, :WIDTH]
# Smooth, so that JPEG keeps it, and like no turn or mirror image of itself.
SMOOTH: Rgb = np.stack([3 * _columns, 4 * _rows, _columns + _rows], axis=2).astype(np.uint8)
GRAY = SMOOTH[..., 0]
GRAY16 = (_columns * 800 + _rows).astype(np.uint16)
COVER = (_rows * 4).astype(np.uint8)
FLAT = (SMOOTH // 64 * 85).astype(np.uint8)  # of 64 colours, for a palette


@dataclass(frozen=True)
class Kind:
    """How a file is made, and the pixels in it, each as far off as it may be; None is refused."""

    make: Callable[[Path], object]
    pixels: Rgb | None
    tolerance: int = 0


def make_all(folder: Path) -> Mapping[str, Kind]:
    """Write one file of each kind into a folder."""
    for name, kind in KINDS.items():
        kind.make(folder / name)
    return KINDS


def save(picture: NDArray[Any], mode: str | None = None, **options: Any) -> Callable[[Path], None]:
    """Return what writes an array by Pillow, as the format of its suffix."""

    def make(path: Path) -> None:
        image = Image.fromarray(picture)
        (image if mode is None else image.convert(mode)).save(path, **options)

    return make


def gray(values: NDArray[Any]) -> Rgb:
    """Return gray as RGB."""
    return np.repeat(values[..., None], 3, axis=2).astype(np.uint8)


def over_white(colours: NDArray[Any], cover: NDArray[Any]) -> Rgb:
    """Return colours that cover white, to 255ths."""
    part = cover[..., None] / 255
    mixed: Rgb = np.rint(colours * part + 255 * (1 - part)).astype(np.uint8)
    return mixed


def turned(orientation: int) -> Image.Exif:
    """Return EXIF that tells how a picture is turned."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


def png(picture: NDArray[np.uint16], colour: int, *chunks: tuple[bytes, bytes]) -> bytes:
    """Return a PNG of 16 bits, which Pillow writes of gray only; the chunks go before the data."""
    height, width = picture.shape[:2]
    rows = (b"\0" + row.astype(">u2").tobytes() for row in picture)
    header = struct.pack(">2I5B", width, height, 16, colour, 0, 0, 0)
    data = zlib.compress(b"".join(rows))
    every = ((b"IHDR", header), *chunks, (b"IDAT", data), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*chunk) for chunk in every)


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", _crc(name, content))


def _crc(name: bytes, content: bytes) -> int:
    return zlib.crc32(name + content)


def _cmyk(path: Path) -> None:
    inks = np.concatenate([255 - SMOOTH, np.zeros((HEIGHT, WIDTH, 1), np.uint8)], axis=2)
    Image.frombytes("CMYK", (WIDTH, HEIGHT), inks.tobytes()).save(path, quality=95)


def _palette(path: Path, **options: Any) -> None:
    colours, indices = np.unique(FLAT.reshape(-1, 3), axis=0, return_inverse=True)
    image = Image.fromarray(indices.reshape(HEIGHT, WIDTH).astype(np.uint8))
    image.putpalette(colours.astype(np.uint8).tobytes())
    image.save(path, **options)


def _without(index: int) -> Rgb:
    colour = np.unique(FLAT.reshape(-1, 3), axis=0)[index]
    return np.where((colour == FLAT).all(axis=2, keepdims=True), 255, FLAT).astype(np.uint8)


def _truncated(path: Path) -> None:
    save(SMOOTH)(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


RGBA = np.dstack([SMOOTH, COVER])
LA = np.dstack([GRAY, COVER])
ANIMATED: dict[str, Any] = {
    "save_all": True,
    "append_images": [Image.new("RGB", (WIDTH, HEIGHT), "red")],
}
RGB16 = SMOOTH.astype(np.uint16) * 257
KINDS = {
    "rgb.png": Kind(save(SMOOTH), SMOOTH),
    "baseline.jpg": Kind(save(SMOOTH, quality=95), SMOOTH, 8),
    "progressive.jpeg": Kind(save(SMOOTH, quality=95, progressive=True), SMOOTH, 8),
    "gray.jpg": Kind(save(GRAY, quality=95), gray(GRAY), 6),
    "cmyk.jpg": Kind(_cmyk, SMOOTH, 8),
    "palette.png": Kind(_palette, FLAT),
    "palette-key.png": Kind(lambda path: _palette(path, transparency=5), _without(5)),
    "la.png": Kind(save(LA), over_white(gray(GRAY), COVER)),
    "rgba.png": Kind(save(RGBA), over_white(SMOOTH, COVER)),
    "bilevel.png": Kind(save((GRAY > 100) * np.uint8(255), "1"), gray((GRAY > 100) * 255)),
    "gray16.png": Kind(save(GRAY16), gray(np.rint(GRAY16 / 257))),
    "gray16.tif": Kind(save(GRAY16), gray(np.rint(GRAY16 / 257))),
    "gray16.pgm": Kind(save(GRAY16), gray(np.rint(GRAY16 / 257))),
    "rgb16.png": Kind(lambda path: path.write_bytes(png(RGB16, 2)), SMOOTH),
    "lzw.tif": Kind(save(SMOOTH, compression="tiff_lzw"), SMOOTH),
    "windows.bmp": Kind(save(SMOOTH), SMOOTH),
    "lossless.webp": Kind(save(RGBA, lossless=True, exact=True), over_white(SMOOTH, COVER)),
    "animated.gif": Kind(save(FLAT, **ANIMATED), FLAT),
    "animated.webp": Kind(save(SMOOTH, lossless=True, **ANIMATED), SMOOTH),
    "animated.png": Kind(save(SMOOTH, **ANIMATED), SMOOTH),
    "on-its-side.png": Kind(save(SMOOTH, exif=turned(6)), np.rot90(SMOOTH, -1)),
    "in truth a png.jpg": Kind(save(SMOOTH, format="PNG"), SMOOTH),
    "ü 图.png": Kind(save(SMOOTH), SMOOTH),
    "truncated.jpg": Kind(_truncated, None),
    "empty.jpg": Kind(lambda path: path.write_bytes(b""), None),
    "text.jpg": Kind(lambda path: path.write_text("not found\n"), None),
    "float.tif": Kind(save(GRAY.astype(np.float32)), None),
}

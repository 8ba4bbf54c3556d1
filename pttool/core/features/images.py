"""A picture file as RGB, the same as a viewer shows it, or a refusal: never half a picture."""

import os
import stat
import struct
import zlib
from pathlib import Path
from typing import BinaryIO, Literal

import numpy as np
from PIL import ExifTags, Image, ImageFile, UnidentifiedImageError
from PIL.Image import Transpose

from pttool.errors import InputError

Alpha = Literal["white", "drop"]
AGAIN = "download or copy it again"
# Those of Pillow that run no other program (as EPS does) and know a file by its first bytes.
FORMATS = (
    "JPEG", "PNG", "GIF", "BMP", "DIB", "WEBP", "TIFF", "PPM", "JPEG2000", "AVIF", "ICO", "QOI",
)  # fmt: skip
# Pillow refuses what has too many pixels; a resize of the shorter side to 256 would make 65 million
# out of a line as long as this, in units of its width.
LONGEST = 1000
# Each of a JPEG's blocks of 8 x 8 pixels takes a bit or more; libjpeg paints gray what is missing.
MOST_OF_A_BYTE = 8 * 64
# What the decoders of Pillow raise for damaged bytes, besides a refusal.
DAMAGE = (
    OSError, SyntaxError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError,
    EOFError, RuntimeError, AssertionError, MemoryError, struct.error, zlib.error,
    Image.DecompressionBombError,
)  # fmt: skip
AS_STORED = 1
# EXIF 2.32, 4.6.4: how a picture is turned to stand upright, by the value of its tag.
UPRIGHT = {
    2: Transpose.FLIP_LEFT_RIGHT,
    3: Transpose.ROTATE_180,
    4: Transpose.FLIP_TOP_BOTTOM,
    5: Transpose.TRANSPOSE,
    6: Transpose.ROTATE_270,
    7: Transpose.TRANSVERSE,
    8: Transpose.ROTATE_90,
}
# Files that often bear the name of a picture: where their signature is, and what they are.
IMPOSTORS = (
    (0, b"version https://git-lfs", "a Git LFS pointer", "git lfs pull"),
    (0, b"<", "a web page, or other markup", AGAIN),
    (4, b"ftyphei", "HEIC, which Pillow can't read", "convert it to JPEG or PNG"),
    (4, b"ftypmif1", "HEIF, which Pillow can't read", "convert it to JPEG or PNG"),
    (0, b"8BPS", "a Photoshop document", "export it as PNG"),
    (0, b"%!PS", "PostScript", "convert it to PNG"),
    (0, b"%PDF", "a PDF", "convert its pages to PNG"),
)


def read_image(path: Path, *, exif: bool = True, alpha: Alpha = "white") -> Image.Image:
    """Return the first picture in a file as RGB of 8 bits.

    It is turned upright as its EXIF says, if `exif` (TIFF always is, by Pillow itself); what it
    doesn't cover is white, or with "drop" the colour stored there; 16-bit gray is scaled by 65535.
    Raises InputError for what can't be read whole: no such file, no picture, truncated or damaged,
    more pixels than Pillow takes for an attack, and values without a known range, as floats.
    """
    with _opened(path) as stream:
        try:
            picture = _decoded(path, stream)
            _check_pixels(path, picture)
            rgb = _rgb(picture, alpha)
        except UnidentifiedImageError as error:
            raise _not_a_picture(path, stream) from error
        except DAMAGE as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise InputError(f"{path}: can't be decoded: {reason}", AGAIN) from error
        turn = UPRIGHT.get(_orientation(picture)) if exif else None
    return rgb if turn is None else rgb.transpose(turn)


def _opened(path: Path) -> BinaryIO:
    try:
        status = os.stat(path)
        if stat.S_ISREG(status.st_mode) and status.st_size:
            return path.open("rb")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{path}: {reason}", "check the path and its permissions") from error
    if stat.S_ISREG(status.st_mode):
        raise InputError(f"{path}: empty file", AGAIN)
    raise InputError(f"{path}: is not a file", "name picture files, or folders of them")


def _decoded(path: Path, stream: BinaryIO) -> Image.Image:
    # A user's own code may have set it, and half a picture would then be gray.
    ImageFile.LOAD_TRUNCATED_IMAGES = False
    picture = Image.open(stream, formats=FORMATS)
    pixels = picture.width * picture.height
    if picture.format in ("JPEG", "MPO") and pixels > MOST_OF_A_BYTE * _size(stream):
        said = f"too short for the {picture.width} x {picture.height} pixels that it claims"
        raise InputError(f"{path}: {said}", AGAIN)
    picture.load()
    return picture


def _size(stream: BinaryIO) -> int:
    return os.fstat(stream.fileno()).st_size


def _check_pixels(path: Path, picture: Image.Image) -> None:
    """Raise InputError for pixels that mean no colours, and for a shape that can't be resized."""
    if max(picture.size) > LONGEST * min(picture.size):
        said = f"{picture.width} x {picture.height} pixels are too narrow to be resized"
        raise InputError(f"{path}: {said}", "cut it into pieces")
    if picture.mode == "F":
        kind = "float"
    elif picture.mode == "I" and picture.format not in ("PNG", "PPM"):  # which have 16 bits
        kind = "signed or 32-bit"
    else:
        return
    raise InputError(
        f"{path}: {kind} pixels ({picture.format}), whose range is not known",
        "convert it to 8 or 16 bits, as the values are meant",
    )


def _rgb(picture: Image.Image, alpha: Alpha) -> Image.Image:
    if picture.mode == "I" or picture.mode.startswith("I;16"):
        picture = _of_16_bits(picture)
    if not picture.has_transparency_data:
        return picture if picture.mode == "RGB" else picture.convert("RGB")
    if picture.mode == "La":  # which Pillow converts to nothing else
        picture = picture.convert("LA")
    covered = picture.convert("RGBA")
    if alpha == "drop":
        return covered.convert("RGB")
    white = Image.new("RGB", covered.size, "white")
    white.paste(covered, mask=covered)
    return white


def _of_16_bits(picture: Image.Image) -> Image.Image:
    """Return 16-bit gray as gray of 8 bits, or LA: Pillow's own conversion clips it to white."""
    values = np.asarray(picture).astype(np.uint32)
    gray = Image.fromarray(((values + 128) // 257).astype(np.uint8))  # rounded 255 * v / 65535
    key = picture.info.get("transparency")
    if key is not None:
        gray.putalpha(Image.fromarray(np.where(values == key, 0, 255).astype(np.uint8)))
    return gray


def _orientation(picture: Image.Image) -> int:
    try:
        return int(picture.getexif().get(ExifTags.Base.Orientation, AS_STORED))
    except DAMAGE:  # viewers show a picture whose EXIF is damaged, as it is stored
        return AS_STORED


def _not_a_picture(path: Path, stream: BinaryIO) -> InputError:
    stream.seek(0)
    head = stream.read(64).lstrip()
    for offset, signature, kind, hint in IMPOSTORS:
        if head.startswith(signature, offset):
            return InputError(f"{path}: not a picture: {kind}", hint)
    return InputError(
        f"{path}: not a picture, or too damaged to be read as one",
        f"known are {', '.join(FORMATS)}",
    )

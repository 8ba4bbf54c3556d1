"""Numbers from the bytes of elements, for the types that numpy lacks too.

Formats: bfloat16 is the upper half of a float32; the 8-bit floats are those of OCP's OFP8 and MX
specifications, with torch's fnuz variants (https://onnx.ai/onnx/technical/float8.html); e2m1 is
MX's 4-bit float, two to a byte, the lower half first.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]

NATIVE = {
    "float64": "<f8", "float32": "<f4", "int64": "<i8", "int32": "<i4", "int16": "<i2",
    "int8": "i1", "uint64": "<u8", "uint32": "<u4", "uint16": "<u2", "uint8": "u1", "bool": "?",
    "complex128": "<c16", "complex64": "<c8",
}  # fmt: skip
# Bits of the exponent, of the mantissa, and the bias of the exponent.
SMALL_FLOATS = {
    "float8_e4m3fn": (4, 3, 7),
    "float8_e5m2": (5, 2, 15),
    "float8_e4m3fnuz": (4, 3, 8),
    "float8_e5m2fnuz": (5, 2, 16),
    "float8_e8m0fnu": (8, 0, 127),
}
E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def decoded(raw: bytes, dtype: str) -> Numbers | None:
    """Return the elements of little-endian bytes, (n,), or None for a type without numbers.

    Integers, bool and complex as they are; floats of less than 32 bits as float32, exactly. A
    float4_e2m1fn_x2, which is two numbers, gives two.
    """
    if dtype in NATIVE:
        return np.frombuffer(raw, NATIVE[dtype])
    if dtype in SMALL_FLOATS:
        return _table(dtype)[np.frombuffer(raw, np.uint8)]
    decode = _DECODERS.get(dtype)
    return None if decode is None else decode(raw)


def _float16(raw: bytes) -> Numbers:
    with np.errstate(invalid="ignore"):  # of signalling NaNs
        return np.frombuffer(raw, "<f2").astype(np.float32)


def _bfloat16(raw: bytes) -> Numbers:
    return (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32)


def _complex32(raw: bytes) -> Numbers:
    return _float16(raw).view(np.complex64)


def _pairs_of_e2m1(raw: bytes) -> Numbers:
    table = np.array([*E2M1, *(-number for number in E2M1)], np.float32)
    pairs = np.frombuffer(raw, np.uint8)
    return np.stack((table[pairs & 15], table[pairs >> 4]), axis=1).reshape(-1)


_DECODERS: dict[str, Callable[[bytes], Numbers]] = {
    "float16": _float16,
    "bfloat16": _bfloat16,
    "complex32": _complex32,
    "float4_e2m1fn_x2": _pairs_of_e2m1,
}


@cache
def _table(dtype: str) -> Numbers:
    """Return the number of each of the 256 bytes."""
    exponent_bits, mantissa_bits, bias = SMALL_FLOATS[dtype]
    codes = np.arange(256)
    if dtype == "float8_e8m0fnu":  # without a sign, a zero or subnormals
        scales = np.ldexp(1.0, codes - bias)
        scales[255] = np.nan
        return scales.astype(np.float32)
    mantissa = codes & ((1 << mantissa_bits) - 1)
    exponent = (codes >> mantissa_bits) & ((1 << exponent_bits) - 1)
    significand = (exponent > 0) + mantissa / (1 << mantissa_bits)
    magnitude = np.ldexp(significand, np.maximum(exponent, 1) - bias)
    values: Numbers = np.copysign(magnitude, 127.5 - codes).astype(np.float32)
    if dtype.endswith("fnuz"):
        values[128] = np.nan
    elif dtype == "float8_e4m3fn":
        values[[127, 255]] = np.nan
    else:
        is_last = exponent == (1 << exponent_bits) - 1
        values[is_last & (mantissa > 0)] = np.nan
        values[is_last & (mantissa == 0)] = [np.inf, -np.inf]
    return values

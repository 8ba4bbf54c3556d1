"""The element types of torch: their sizes, and the storage classes that stand for them.

Source: torch.storage._dtype_to_storage_type_map and torch.dtype.itemsize.
"""

ITEM_BYTES = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2,
    "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1, "bool": 1,
    "uint64": 8, "uint32": 4, "uint16": 2,
    "complex128": 16, "complex64": 8, "complex32": 4,
    "float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1,
    "float8_e8m0fnu": 1, "float4_e2m1fn_x2": 1,
    "qint8": 1, "quint8": 1, "qint32": 4, "quint4x2": 1, "quint2x4": 1,
    "bits1x8": 1, "bits2x4": 1, "bits4x2": 1, "bits8": 1, "bits16": 2,
    **{f"{sign}int{bits}": 1 for sign in ("u", "") for bits in range(1, 8)},
}  # fmt: skip

STORAGE_DTYPES = {
    "DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16", "LongStorage": "int64", "IntStorage": "int32",
    "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8", "BoolStorage": "bool",
    "ComplexDoubleStorage": "complex128", "ComplexFloatStorage": "complex64",
    "QInt8Storage": "qint8", "QUInt8Storage": "quint8", "QInt32Storage": "qint32",
    "QUInt4x2Storage": "quint4x2", "QUInt2x4Storage": "quint2x4",
    "UntypedStorage": "uint8", "_UntypedStorage": "uint8",
}  # fmt: skip

# So many elements to a byte.
PACKED = {"quint4x2": 2, "quint2x4": 4}


def item_bytes(dtype: str) -> int:
    """Return the bytes of one element, or 0 for a type that isn't known."""
    return ITEM_BYTES.get(dtype, 0)

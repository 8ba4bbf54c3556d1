"""The bytes that files of a kind begin with."""

ZIP_HEADS = (b"PK\3\4", b"PK\5\6", b"PK\7\x08")
NPY_MAGIC = b"\x93NUMPY"
# torch.serialization.MAGIC_NUMBER, which the first pickle of a legacy file holds.
TORCH_MAGIC_NUMBER = 0x1950A86A20F9469CFC6C

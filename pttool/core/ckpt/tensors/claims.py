"""What a tensor and its storage claim of the bytes in the file, against what is there.

torch.load refuses a record that is larger than its storage as well as a smaller one, unless it maps
the file.
"""

from pttool.core.ckpt.tensors.dtypes import PACKED
from pttool.core.ckpt.tensors.elements import extent
from pttool.core.ckpt.types import Format, Tensor


def false_claim(tensor: Tensor, form: Format) -> str | None:
    """Return what isn't so, in words, or None where all fits."""
    storage = tensor.storage
    if storage is None or form is Format.PICKLE:  # where bytes may be written as a text
        return None
    if storage.record is None:
        return None if storage.size_bytes == 0 else "its bytes are not in the file"
    claimed, there = storage.size_bytes, storage.record.size_bytes
    # The record of a chunk is a zip around its elements.
    if there < claimed or (there > claimed and form is not Format.DISTRIBUTED):
        return f"it holds {there:,} bytes; its storage is said to have {claimed:,}"
    stop = -(-extent(tensor)[1] // PACKED.get(tensor.dtype, 1))
    if stop > claimed:
        return f"a tensor ends at byte {stop:,} of a storage that has {claimed:,}"
    return None

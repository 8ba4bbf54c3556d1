"""Save a safetensors file under other names: only its header changes."""

import json
from pathlib import Path

from pttool.core.ckpt.containers.safetensors import open_safetensors
from pttool.core.ckpt.files.rewriting import spliced
from pttool.core.ckpt.pickles.edits import Edit

LENGTH_BYTES = 8


def rename(path: Path, target: Path, new_names: dict[str, str]) -> None:
    """Save with new names for some tensors; the offsets, which count from the header, stay.

    Raises InputError for a file that can't be read.
    """
    open_safetensors(path)  # checks the header that is edited here
    with path.open("rb") as stream:
        size = int.from_bytes(stream.read(LENGTH_BYTES), "little")
        header = json.loads(stream.read(size))
    renamed = {new_names.get(name, name): entry for name, entry in header.items()}
    text = json.dumps(renamed, ensure_ascii=False, separators=(",", ":")).encode()
    text = text.ljust(size, b" ")
    text += b" " * (-len(text) % LENGTH_BYTES)
    new = len(text).to_bytes(LENGTH_BYTES, "little") + text
    spliced(path, target, [Edit(0, LENGTH_BYTES + size, new)])

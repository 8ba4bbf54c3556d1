"""Whether torch.load(weights_only=True) would load a checkpoint, and if not, because of what.

Source: torch/_weights_only_unpickler.py and torch.serialization.load of torch 2.14.
"""

from collections.abc import Iterable, Iterator

from pttool.core.ckpt.pickles.nodes import Global, Node
from pttool.core.ckpt.safety.allowed import in_python_3, is_allowed
from pttool.core.ckpt.types import Checkpoint, Format, Pickled, Use

# What torch.load doesn't read, or reads without unpickling.
NOT_ASKED = (Format.SAFETENSORS, Format.NPZ, Format.NPY, Format.DISTRIBUTED)
REFUSED_FORMATS = {
    Format.TORCHSCRIPT: "it is a TorchScript archive, which torch.jit.load reads",
    Format.EXPORTED: "it is an exported program, which torch.export.load reads",
    Format.TORCH_TAR: "it is a tar of torch before 0.2",
    Format.PICKLE: "it is a pickle that torch.save didn't write",
}
WITH_KEYS = ("collections.Counter",)
WITHOUT_STATE = (
    "torch.Size", "torch.device", "torch.serialization._get_layout", "_codecs.encode",
    "builtins.bytearray", "builtins.set", "builtins.complex",
)  # fmt: skip


def verdict(checkpoint: Checkpoint) -> tuple[bool | None, tuple[str, ...]]:
    """Return whether torch.load(weights_only=True) accepts a file, and why it doesn't.

    None where nothing asks: safetensors, numpy's files, a distributed checkpoint. The reasons are
    the dotted names that aren't allowed, sorted, and then what else is refused, in words. Of a
    sharded checkpoint it is the verdict on the shards together.
    """
    if checkpoint.format in REFUSED_FORMATS:
        return False, (REFUSED_FORMATS[checkpoint.format],)
    if checkpoint.format in NOT_ASKED or not checkpoint.pickles:
        return None, ()
    reasons = dict.fromkeys(_refused(checkpoint.pickles))
    return not reasons, tuple(reasons)


def refused_globals(pickles: Iterable[Pickled]) -> list[str]:
    """Return the dotted names, sorted, that torch doesn't allow by default."""
    found = {name for pickle in pickles for name in pickle.globals if not is_allowed(name)}
    return sorted({in_python_3(name).path for name in found})


def _refused(pickles: tuple[Pickled, ...]) -> Iterator[str]:
    yield from refused_globals(pickles)
    for pickle in pickles:
        yield from sorted(filter(None, (_refused_use(*use) for use in pickle.uses)))
        if not all(map(_is_storage, pickle.persistent_ids)):
            yield "a reference to what is no storage"
    opcodes = dict.fromkeys(name for pickle in pickles for name in pickle.unsupported)
    if opcodes:
        protocol = max(pickle.protocol for pickle in pickles)
        yield f"opcodes of pickle protocol {protocol}: {', '.join(opcodes)}"


def _refused_use(use: Use, name: Global | None) -> str | None:
    """Return what is wrong with a use even of a name that is allowed."""
    if name is None:
        return "a call of what is no name"
    path = in_python_3(name).path
    refused = {
        "call": False,
        "items": True,
        "keys": path not in WITH_KEYS,
        "state": path in WITHOUT_STATE,
    }
    return f"{use} for {path}" if is_allowed(name) and refused[use] else None


def _is_storage(id: Node) -> bool:
    return isinstance(id, tuple) and id[:1] in (("storage",), (b"storage",))

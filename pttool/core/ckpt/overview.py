"""What a checkpoint is as a whole: sizes, devices, types, prefixes, and who can load it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pttool.core.ckpt.editing.renaming import DATA_PARALLEL, WRAPPERS
from pttool.core.ckpt.listing import needed_bytes
from pttool.core.ckpt.safety.allowed import in_python_3, is_allowed
from pttool.core.ckpt.safety.dangerous import danger
from pttool.core.ckpt.safety.weights_only import verdict
from pttool.core.ckpt.tensors.claims import false_claim
from pttool.core.ckpt.tensors.elements import count
from pttool.core.ckpt.tensors.paths import name_of
from pttool.core.ckpt.types import Checkpoint, Tensor
from pttool.core.ckpt.weights.state_dicts import find_weights
from pttool.errors import InputError

# Below this, bytes that no tensor reaches are the rounding of an allocator.
SMALLEST_WASTE = 0.1
DEEPEST_VERSION = 3

Overview = dict[str, Any]


def overview(checkpoint: Checkpoint) -> Overview:
    """Return the summary of one checkpoint."""
    loadable, reasons = verdict(checkpoint)
    needed, stored = _needed(checkpoint), _stored(checkpoint)
    unsafe, unknown = _globals(checkpoint)
    warnings = [*checkpoint.warnings, *_size_warnings(checkpoint)]
    if stored and 1 - needed / stored >= SMALLEST_WASTE:
        share = min(round(100 * (1 - needed / stored), 1), 99.9)
        warnings.append(
            f"{share} % of the stored bytes are reachable by no tensor, most of them behind "
            f"{_most_wasteful(checkpoint)}: extract --compact leaves them out"
        )
    return {
        "format": checkpoint.format.value,
        "format_version": checkpoint.format_version,
        "tensors": len(checkpoint.tensors),
        "parameters": _parameters(checkpoint),
        "needed_bytes": needed,
        "stored_bytes": stored,
        "devices": sorted({tensor.device for tensor in checkpoint.tensors}),
        "dtypes": sorted({tensor.dtype for tensor in checkpoint.tensors}),
        "prefixes": _prefixes(checkpoint),
        "weights_only_loadable": loadable,
        "weights_only_reasons": list(reasons),
        "weights_only": _in_words(loadable, reasons),
        "unsafe_globals": unsafe,
        "unknown_globals": unknown,
        "framework_versions": framework_versions(checkpoint),
        "warnings": warnings,
    }


def framework_versions(checkpoint: Checkpoint) -> dict[str, str]:
    """Return the versions that a checkpoint names: of Lightning, transformers, and so on."""
    found = {}
    for value in checkpoint.values:
        key = value.path[-1] if value.path else None
        is_version = isinstance(key, str) and key.endswith("version")
        if is_version and len(value.path) <= DEEPEST_VERSION and isinstance(value.node, str):
            found[str(key)] = str(value.node)
    return found


def merged(overviews: Mapping[str, Overview]) -> Overview:
    """Return the summary of several checkpoints: sums, unions, and each of them under "files"."""
    if not overviews:
        return {}
    first, *others = overviews.values()
    if not others:
        return first
    summary = {key: _merged([found[key] for found in overviews.values()]) for key in first}
    return {**summary, "files": [{"file": file, **found} for file, found in overviews.items()]}


def _merged(values: list[Any]) -> Any:
    """Return the sum of numbers, the union of lists and mappings, or what all agree on."""
    first = values[0]
    if isinstance(first, list):
        return sorted({str(one) for many in values for one in many})
    if type(first) is int:
        return sum(one or 0 for one in values)
    if isinstance(first, dict):
        return {name: text for many in values for name, text in many.items()}
    return first if len(set(values)) == 1 else None


def _in_words(loadable: bool | None, reasons: Sequence[str]) -> str | None:
    """Return whether torch.load(weights_only=True) works, and why not."""
    if loadable is None:
        return None
    return "yes" if loadable else f"no, because of {', '.join(reasons)}"


def _globals(checkpoint: Checkpoint) -> tuple[list[str], list[str]]:
    """Return the names that can do harm, and those that nobody vouches for."""
    refused = [
        (in_python_3(found).path, danger(found) is not None)
        for pickle in checkpoint.pickles
        for found in pickle.globals
        if not is_allowed(found)
    ]
    unsafe, unknown = (sorted({n for n, bad in refused if bad is which}) for which in (True, False))
    return unsafe, unknown


def _size_warnings(checkpoint: Checkpoint) -> Iterator[str]:
    """Yield what storages and tensors claim of the bytes in the file that isn't so."""
    for key, tensors in _storages(checkpoint).items():
        name = name_of(tensors[0])
        claims = (false_claim(tensor, checkpoint.format) for tensor in tensors)
        claim = next((claim for claim in claims if claim is not None), None)
        if claim is not None:
            yield f"storage {key} of {name}: {claim}"


def _storages(checkpoint: Checkpoint) -> dict[str, list[Tensor]]:
    """Return the tensors of each storage, those of parts too."""
    found: dict[str, list[Tensor]] = {}
    for tensor in checkpoint.tensors:
        for part in tensor.parts or (tensor,):
            if part.storage is not None:
                found.setdefault(part.storage.key, []).append(part)
    return found


def _needed(checkpoint: Checkpoint) -> int:
    """Return the bytes that tensors reach, those that several reach once."""
    return sum(map(_reached, _storages(checkpoint).values()))


def _reached(tensors: list[Tensor]) -> int:
    """Return how many bytes of one storage its tensors reach."""
    different = {(t.offset, t.shape, t.stride): needed_bytes(t) for t in tensors}
    return min(sum(different.values()), _size(tensors))


def _size(tensors: list[Tensor]) -> int:
    return max(tensor.storage.size_bytes for tensor in tensors if tensor.storage)


def _most_wasteful(checkpoint: Checkpoint) -> str:
    """Return the name of a tensor whose storage has the most bytes that none reaches."""
    storages = _storages(checkpoint).values()
    most = max(storages, key=lambda tensors: _size(tensors) - _reached(tensors))
    return name_of(most[0]) or "the one tensor"


def _stored(checkpoint: Checkpoint) -> int:
    """Return the bytes of the storages."""
    return sum(map(_size, _storages(checkpoint).values()))


def _parameters(checkpoint: Checkpoint) -> int:
    """Return the number of elements of the weights, tied ones once, or of all tensors."""
    try:
        return find_weights(checkpoint).elements
    except InputError:
        return sum(count(tensor) for tensor in checkpoint.tensors)


def _prefixes(checkpoint: Checkpoint) -> list[str]:
    """Return what wrappers left in the names of tensors, and a first segment that all share."""
    try:
        names = [name for name, _ in find_weights(checkpoint).tensors]
    except InputError:
        return []
    found = [DATA_PARALLEL] if any(name.startswith(DATA_PARALLEL) for name in names) else []
    segments = {part for name in names for part in name.split(".")[:-1]}
    found += [wrapper for wrapper in WRAPPERS if wrapper in segments]
    firsts = {name.partition(".")[0] for name in names}
    shared = f"{firsts.pop()}." if len(firsts) == 1 and all("." in name for name in names) else ""
    return found if not shared or shared.rstrip(".") in (*WRAPPERS, "module") else [*found, shared]

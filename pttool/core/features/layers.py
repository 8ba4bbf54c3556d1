"""`layers`: what each module gives for one picture, by the names that `extract -l` takes."""

from collections.abc import Sequence
from typing import Any

from pttool.core.features.probe import probe
from pttool.core.features.types import Kind, Layer, Output, written
from pttool.core.model.resolve import Resolved
from pttool.core.model.spec import InputSpec
from pttool.core.report import Column, Report

COLUMNS = (
    Column("name", "Name"),
    Column("type", "Type", optional=True),
    Column("output_shape", "Output", "shape"),
    Column("calls", "Calls", "count"),
    Column("output_kind", "Kind", optional=True),
    Column("aliases", "Aliases", "list"),
    Column("image_bytes", "Per image", "bytes"),
    Column("never_called", "Never called", "flag", optional=True),
)
FIELDS = (*(column.key for column in COLUMNS), "output_dtype", "call_shapes")


def layers(resolved: Resolved, specs: Sequence[InputSpec] = ()) -> Report:
    """Return one item per module but the root: in the order of first calls, the never called last.

    `output_shape` is that of the first call for a batch of one, {"[key]": shape} for several
    tensors, and `call_shapes` those of all calls. `image_bytes` is what one call adds for a
    picture: null for a module that is never called or gives no row for each picture.

    Raises as `probe.probe` does; a forward that fails is the report's failure.
    """
    found = probe(resolved, specs)
    items = [_item(layer) for layer in found.layers]
    summary = {
        "model": resolved.name,
        "source": resolved.source,
        "device": found.device,
        "layers": len(items),
        "never_called": sum(item["never_called"] for item in items),
    }
    footer = (Column("layers", "Layers", "count"), Column("never_called", "Never called", "count"))
    return Report(FIELDS, COLUMNS, items, summary, footer, found.notes, found.failure)


def _item(layer: Layer) -> dict[str, Any]:
    first = layer.outputs[0] if layer.outputs else None
    shapes = [_shape(output) for output in layer.outputs]
    sizes = [part.bytes_per_image for part in first.parts] if first else []
    dtypes = {part.dtype for part in first.parts} if first else set()
    return {
        "name": layer.name,
        "type": layer.type,
        "output_shape": shapes[0] if shapes else None,
        "calls": layer.calls,
        "output_kind": first.kind.value if first else None,
        "aliases": list(layer.aliases),
        "image_bytes": sum(sizes) if sizes and None not in sizes else None,
        "never_called": not layer.calls,
        "output_dtype": dtypes.pop() if len(dtypes) == 1 else None,
        "call_shapes": shapes,
    }


def _shape(output: Output) -> Any:
    """Return the shape of a tensor, {"[key]": shape} of several, or None."""
    if output.kind is Kind.TENSOR:
        return list(output.parts[0].shape)
    shapes = {written(part.keys): list(part.shape) for part in output.parts}
    return shapes or None

"""`graph`: which module's output goes into which, as a DOT graph or an SVG picture."""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from pttool.core.foreign import foreign_code
from pttool.core.model.forward import Forward, inputs_for, on_loan, run_forward
from pttool.core.model.memory import storages
from pttool.core.model.resolve import Resolved
from pttool.core.model.rows import Row
from pttool.core.model.spec import InputSpec
from pttool.core.model.trace import hooked, trace
from pttool.errors import InputError, UnavailableError

SOURCE, SINK = "input", "output"


def graph(
    resolved: Resolved,
    specs: Sequence[InputSpec],
    *,
    batch: int | None = 1,
    depth: int | None = None,
) -> str:
    """Return the graph in the DOT language.

    A node is a call of a module that calls no other, or one at `depth`; an edge says that what one
    made went into the other, through whatever operators lie between. Raises the forward's failure.
    """
    if isinstance(resolved.module, torch.jit.ScriptModule):
        raise InputError(
            f"{resolved.name}: TorchScript runs as one, its modules can't be seen", "draw the model"
        )
    forward = run_forward(resolved, specs, batch=batch)
    if forward.failure is not None:
        raise forward.failure
    nodes = _nodes(forward, depth)
    flow = _trace_flow(forward, specs or resolved.default_inputs, batch, nodes)
    lines = [f"digraph {_quoted(resolved.name)} {{", "  node [shape=box];"]
    for name, row in flow.calls.items():
        label = "\n".join((name, type(row.module).__name__, str(row.output_shape)))
        lines.append(f"  {_quoted(name)} [label={_quoted(label)}];")
    lines += [f"  {_quoted(source)} -> {_quoted(target)};" for source, target in flow.edges]
    return "\n".join([*lines, "}", ""])


def to_svg(dot: str) -> bytes:
    """Return the picture that Graphviz draws. Raises UnavailableError where it isn't installed."""
    program = shutil.which("dot")
    if program is None:
        raise UnavailableError("an SVG needs Graphviz's `dot`", "install graphviz, or write a .dot")
    done = subprocess.run([program, "-Tsvg"], input=dot.encode(), capture_output=True, check=False)
    if done.returncode:
        raise InputError(f"dot: {done.stderr.decode(errors='replace').strip()}", "write a .dot")
    return done.stdout


def _nodes(forward: Forward, depth: int | None) -> dict[int, list[Row]]:
    """Return the rows that are nodes, by their module, in the order of its calls."""
    nodes: dict[int, list[Row]] = {}
    for level, row in forward.rows:
        is_leaf = not any(child.calls for child in row.children)
        is_within = depth is None or level <= depth
        if row.calls and level and is_within and (is_leaf or level == depth):
            nodes.setdefault(id(row.module), []).append(row)
    return nodes


class _Flow(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Follows, by its storage, which nodes each tensor comes from."""

    def __init__(self, nodes: dict[int, list[Row]]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls: dict[str, Row] = {}
        self.edges: dict[tuple[str, str], None] = {}
        self._waiting = {module: iter(rows) for module, rows in nodes.items()}
        self._counts: dict[str, int] = {}
        self._sources: dict[int, frozenset[str]] = {}
        self._alive: list[Any] = []  # so that no storage takes the place of a freed one
        self._open: list[tuple[nn.Module, str]] = []
        self._model: nn.Module | None = None

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        output = func(*args, **(kwargs or {}))
        self.mark(output, self._from((args, kwargs)))
        return output

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def mark(self, value: Any, sources: frozenset[str]) -> None:
        """Say that the tensors in a value come from these nodes."""
        for key, storage in storages(tree_leaves(value)):
            self._sources[key] = sources
            self._alive.append(storage)

    def arrive(self, value: Any, target: str) -> None:
        """Draw edges from where the tensors in a value come from."""
        self.edges |= dict.fromkeys((source, target) for source in sorted(self._from(value)))

    def _from(self, value: Any) -> frozenset[str]:
        leaves = storages(tree_leaves(value))
        return frozenset().union(*(self._sources.get(key, frozenset()) for key, _ in leaves))

    def enter(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        """Open a node when its module is called."""
        row = next(self._waiting.get(id(module), iter(())), None)
        if row is None or self._open:
            return
        count = self._counts[row.name] = self._counts.get(row.name, -1) + 1
        name = f"{row.name}:{count}" if count else row.name
        self.calls[name] = row
        self.arrive((args, kwargs), name)
        self._open.append((module, name))

    def leave(self, module: nn.Module, args: Any, output: Any) -> None:
        """Close the node; what its module returned comes from it, and the model's goes out."""
        if module is self._model:
            self.arrive(output, SINK)
        if self._open and self._open[-1][0] is module:
            self.mark(output, frozenset((self._open.pop()[1],)))

    @contextlib.contextmanager
    def watching(self, model: nn.Module) -> Iterator[None]:
        """Follow the tensors of a forward in the block."""
        self._model = model
        with hooked(model, self.enter, self.leave), self:
            yield


def _trace_flow(
    forward: Forward, specs: Sequence[InputSpec], batch: int | None, nodes: dict[int, list[Row]]
) -> _Flow:
    model, device = forward.resolved.module, forward.resolved.device
    flow = _Flow(nodes)
    with foreign_code(forward.resolved.name), on_loan(forward.resolved, training=False):
        inputs = inputs_for(model, specs, batch, device)
        flow.mark(inputs.tensors(), frozenset((SOURCE,)))
        trace(model, inputs, device=device, grad=False, watching=flow.watching(model))
    return flow


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'

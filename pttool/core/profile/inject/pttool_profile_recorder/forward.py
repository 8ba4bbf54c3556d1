"""Time in modules: the forward phase, and each module's own share of it."""

from _thread import get_ident
from time import perf_counter

from .inlining import Hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .clock import Clock
    from .notes import Notes
    from .steps import Steps

MOST_MODULES = 20_000
MOST_WRITTEN = 1_000


class Row:
    """What one module took: its calls, and the seconds in it but not in its children."""

    __slots__ = ("calls", "key", "self_s")

    def __init__(self, key: tuple[str, str, str]) -> None:
        self.key = key
        self.calls = 0
        self.self_s = 0.0


class Forward(Hook):
    """The hook of Module.__call__. The module that the script itself calls is the root."""

    def __init__(self, clock: "Clock", steps: "Steps", notes: "Notes", *, is_on: bool) -> None:
        self.rows: dict[tuple[str, str, str], Row] = {}
        self._clock, self._steps, self._notes = clock, steps, notes
        self._is_on = is_on  # else the phase is timed, but no module
        self._roots: dict[int, tuple[Any, dict[int, Row]]] = {}
        self._is_inside = False  # a root's call; `_row` only if modules are measured in it
        self._table: dict[int, Row] = {}
        self._row: Row | None = None
        self._since_s = 0.0

    def enter(self, module: "Any") -> "str | Row | None":
        """Begin a call; return what `leave` needs, None where nothing is to be ended."""
        if self._is_inside:
            return None if self._row is None else self._enter_child(module)
        before = self._clock.enter("forward")
        if before is not None:
            self._is_inside = True
            with self._notes:
                self._steps.root_called(module)
                if self._is_on and self._steps.measures_modules:
                    self._enter_root(module)
        return before

    def leave(self, before: "str | Row") -> None:
        """End a call: of a root, back to the phase before it; of a child, to its parent's row."""
        if type(before) is str:
            self._leave_root(before)
            return
        row = self._row
        if row is not None:
            now = perf_counter()
            row.self_s += now - self._since_s
            self._since_s = now
            self._row = before  # type: ignore[assignment]

    def written(self) -> list[tuple[str, str, str, int, float]]:
        """Return the modules that took longest, as pttool.core.profile.recording.Module."""
        rows = sorted(self.rows.copy().values(), key=lambda row: -row.self_s)[:MOST_WRITTEN]
        return [(*row.key, row.calls, row.self_s) for row in rows]

    def _enter_child(self, module: "Any") -> "Row | None":
        if get_ident() != self._clock.thread:
            return None
        parent, row = self._row, self._table.get(id(module))
        if row is None or parent is None:
            return None
        now = perf_counter()
        parent.self_s += now - self._since_s
        self._since_s = now
        row.calls += 1
        self._row = row
        return parent

    def _enter_root(self, module: "Any") -> None:
        self._table = self._table_of(module)
        self._row = self._table[id(module)]
        self._row.calls += 1
        self._since_s = perf_counter()

    def _leave_root(self, before: str) -> None:
        row = self._row
        if row is not None:
            row.self_s += perf_counter() - self._since_s
        self._row = None
        self._is_inside = False
        self._clock.leave(before)

    def _table_of(self, root: "Any") -> dict[int, Row]:
        """Return the rows of a root's modules by their id; they live as long as the root does."""
        from weakref import ref

        known = self._roots.get(id(root))
        if known is not None and known[0]() is root:
            return known[1]
        root_type = type(root).__name__
        table: dict[int, Row] = {}
        for name, module in root.named_modules():
            key = (root_type, name, type(module).__name__)
            if len(self.rows) < MOST_MODULES or not table:
                table[id(module)] = self.rows.setdefault(key, Row(key))
        if len(self._roots) >= MOST_WRITTEN:
            self._roots.clear()
        self._roots[id(root)] = (ref(root), table)
        return table

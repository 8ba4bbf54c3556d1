"""Optimizers' steps, and how each optimizer is set."""

from .inlining import Hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .clock import Clock
    from .notes import Notes
    from .steps import Steps

MOST_OPTIMIZERS = 64


class OptimizerHook(Hook):
    """The hook around each optimizer's step; what it keeps is recording.Optimizer."""

    def __init__(self, clock: "Clock", steps: "Steps", notes: "Notes") -> None:
        self.kinds: dict[int, dict[str, Any]] = {}
        self._clock, self._steps, self._notes = clock, steps, notes

    def enter(self, arguments: "tuple[Any, ...]") -> "str | None":
        """Begin a step of the optimizer that is the first argument."""
        before = self._clock.enter("optimizer")
        if before is not None:
            kind = self.kinds.get(id(arguments[0]))
            if kind is None:
                with self._notes:
                    kind = self._met(arguments[0])
            if kind is not None:
                kind["steps"] += 1
        return before

    def leave(self, before: str) -> None:
        """End it."""
        self._clock.leave(before)
        with self._notes:
            self._steps.optimizer_stepped()

    def _met(self, optimizer: "Any") -> "dict[str, Any] | None":
        if len(self.kinds) >= MOST_OPTIMIZERS:
            return None
        return self.kinds.setdefault(id(optimizer), _described(optimizer))


def _described(optimizer: "Any") -> "dict[str, Any]":
    parameters = [each for group in optimizer.param_groups for each in group["params"]]
    group = optimizer.param_groups[0]
    return {
        "type": type(optimizer).__name__,
        "steps": 0,
        "parameters": len(parameters),
        "foreach": group.get("foreach"),
        "fused": group.get("fused"),
        "device": parameters[0].device.type if parameters else None,
    }

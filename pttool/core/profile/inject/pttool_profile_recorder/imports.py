"""Act when the script has imported a module, whichever way it did."""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from .notes import Notes
else:
    ModuleSpec = type(sys.__spec__)


class AfterImport:
    """A finder that calls a function once a module has run, and then is gone from sys.meta_path.

    It finds what the other finders find. While the module runs, no frame of the recorder is on the
    stack: one would show in the traceback of an import that fails.
    """

    def __init__(self, name: str, act: "Callable[[ModuleType], None]", notes: "Notes") -> None:
        self._name, self._act, self._notes = name, act, notes
        sys.meta_path.insert(0, self)

    def find_spec(
        self,
        name: str,
        path: "Sequence[str] | None" = None,
        target: "ModuleType | None" = None,
    ) -> "ModuleSpec | None":
        """Return the spec that the other finders have, watched."""
        if name != self._name:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                if type(spec) is ModuleSpec:
                    spec.__class__ = _watched(self._imported)
                return spec
        return None

    def _imported(self) -> None:
        module = sys.modules.get(self._name)  # none where it raised
        if module is not None:
            sys.meta_path.remove(self)
            with self._notes:
                self._act(module)


def _watched(act: "Callable[[], None]") -> type[ModuleSpec]:
    """Return a class of specs that act when importlib marks a module as initialized, once."""

    class Watched(ModuleSpec):
        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, value)
            if name == "_initializing" and not value:
                object.__setattr__(self, "__class__", ModuleSpec)
                act()

    return Watched

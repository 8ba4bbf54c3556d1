"""A hook in a function shows in nothing that the function shows."""

import importlib.util
import inspect
import signal
import traceback
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

from pttool.core.profile.inject.pttool_profile_recorder.inlining import Hook, inline

SOURCE = '''
import functools

class Outer:
    class Inner:
        def divide(self, x, *, by: "int" = 1):
            """Divide."""
            self.__kept = super().__class__
            return (
                x
                / by
            )

    @staticmethod
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*arguments):
            return function(*arguments)

        return wrapper
'''


class Recording(Hook):
    """Keeps what it is called with; a signal may reach the script while it is."""

    def __init__(self, interrupted_in: str = "") -> None:
        self.calls: list[tuple[str, object]] = []
        self._interrupted_in = interrupted_in

    def enter(self, *arguments: object) -> int:
        """Begin."""
        self._reached("enter", arguments)
        return len(self.calls)

    def leave(self, token: int) -> None:
        """End."""
        self._reached("leave", token)

    def _reached(self, where: str, given: object) -> None:
        self.calls.append((where, given))
        if where == self._interrupted_in:
            signal.raise_signal(signal.SIGINT)


@pytest.fixture
def module(tmp_path: Path) -> ModuleType:
    """Import a fresh copy of the source."""
    path = tmp_path / "hooked.py"
    path.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("hooked", path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_the_hook_is_called_around_the_body(module: ModuleType) -> None:
    hook, inner = Recording(), module.Outer.Inner()
    inline(module.Outer.Inner.divide, hook, "x, by")
    assert inner.divide(6, by=3) == 2
    assert hook.calls == [("enter", (6, 3)), ("leave", 1)]
    with pytest.raises(ZeroDivisionError):
        inner.divide(1, by=0)
    assert hook.calls[2:] == [("enter", (1, 0)), ("leave", 3)]


def test_an_inner_function_is_hooked_in_what_makes_it(module: ModuleType) -> None:
    hook = Recording()
    inline(module.Outer.decorate, hook, "arguments", inner="wrapper")
    assert module.Outer.decorate(max)(1, 2) == 2
    assert hook.calls == [("enter", ((1, 2),)), ("leave", 1)]


def test_tracebacks_and_introspection_stay_as_they_were(module: ModuleType) -> None:
    function: FunctionType = module.Outer.Inner.divide
    before = _shown(function), _failure(module)
    inline(function, Recording(), "self")
    assert (_shown(function), _failure(module)) == before


@pytest.mark.parametrize("where", ["enter", "leave"])
def test_ctrl_c_in_the_hook_comes_from_the_function_s_first_line(
    module: ModuleType, where: str
) -> None:
    inline(module.Outer.Inner.divide, Recording(where), "x")
    with pytest.raises(KeyboardInterrupt) as raised:
        module.Outer.Inner().divide(1)
    last = traceback.extract_tb(raised.value.__traceback__)[-1]
    assert (last.name, last.line) == ("divide", 'def divide(self, x, *, by: "int" = 1):')


def test_a_function_that_is_not_as_expected_stays_as_it_is(module: ModuleType) -> None:
    function: FunctionType = module.Outer.Inner.divide
    code = function.__code__
    with pytest.raises(ValueError, match="returns no collate"):
        inline(function, Recording(), before_call="collate")
    assert function.__code__ is code


def _shown(function: FunctionType) -> tuple[object, ...]:
    code = function.__code__
    return (
        function.__doc__,
        inspect.signature(function),
        inspect.getsource(function),
        code.co_filename,
        code.co_firstlineno,
        code.co_qualname,
        code.co_freevars,
        code.co_flags,
    )


def _failure(module: ModuleType) -> str:
    try:
        module.Outer.Inner().divide(1, by=0)
    except ZeroDivisionError:
        return traceback.format_exc()
    raise AssertionError

"""Run code that is not ours: load it by path, keep its prints off stdout, name its failures."""

import contextlib
import importlib
import importlib.util
import os
import sys
import sysconfig
import traceback
import warnings
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

from pttool.errors import InputError, PttoolError, UsageError

LONGEST_MESSAGE = 400


@contextlib.contextmanager
def foreign_code(what: str) -> Iterator[None]:
    """Point file descriptor 1 at stderr, and turn what the code raises into an InputError.

    SystemExit counts as a failure: foreign code does not decide when pttool ends. Its warnings are
    kept back, unless PTTOOL_DEBUG=1 asks for them.
    """
    with stdout_to_stderr(), warnings.catch_warnings():
        if os.environ.get("PTTOOL_DEBUG") != "1":
            warnings.simplefilter("ignore")
        try:
            yield
        except (PttoolError, KeyboardInterrupt):
            raise
        except BaseException as error:
            raise InputError(f"{what}: {one_line(error)}", _where(error)) from error


def one_line(error: BaseException) -> str:
    """Return an exception as Python shows it, on one line and cut to a readable length."""
    text = " ".join(str(error).split())
    if len(text) > LONGEST_MESSAGE:
        text = text[:LONGEST_MESSAGE] + " ..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def load_from_file(path: Path, attribute: str) -> Any:
    """Return an attribute of a Python file, run under a private module name.

    The working folder and the file's own come last on sys.path, so that no file in them can stand
    in for a module of Python or torch. Raises InputError for a file that can't be read or run, and
    UsageError for an attribute that it doesn't have.
    """
    source = _read(path)
    append_to_path(path.resolve().parent)
    name = f"_pttool_foreign_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None:
        raise InputError(f"{path}: is no Python file", "give a file whose name ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with foreign_code(str(path)), _arguments(str(path)):
        exec(compile(source, path, "exec"), module.__dict__)
    return _attribute(module, attribute, str(path))


def load_from_module(module_name: str, attribute: str) -> Any:
    """Return an attribute of an importable module. Raises as load_from_file does."""
    append_to_path()
    with foreign_code(module_name):
        module = importlib.import_module(module_name)
    return _attribute(module, attribute, module_name)


@contextlib.contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Send to stderr whatever is printed in the block, by Python, C code or a child process."""
    if sys.stdout is None or sys.stdout.closed:
        yield
        return
    sys.stdout.flush()
    stdout = os.dup(1)
    with _talk_stream() as stream:
        os.dup2(stream.fileno(), 1)
        try:
            with contextlib.redirect_stdout(stream):
                yield
        finally:
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
                sys.stdout.flush()
            _flush_c_stdio()
            os.dup2(stdout, 1)
            os.close(stdout)


@contextlib.contextmanager
def _talk_stream() -> Iterator[TextIO]:
    """Yield a stream of its own on stderr, for foreign code to write to and close."""
    stream = os.fdopen(os.dup(2), "w", encoding="utf-8", errors="backslashreplace", buffering=1)
    try:
        yield stream
    finally:
        with contextlib.suppress(OSError):
            stream.close()


@contextlib.contextmanager
def _arguments(*arguments: str) -> Iterator[None]:
    """Show a script that looks at them these arguments, not pttool's."""
    kept, sys.argv = sys.argv, list(arguments)
    try:
        yield
    finally:
        sys.argv = kept


def _flush_c_stdio() -> None:
    """Flush what C code printed, which libc would write to the real stdout at exit."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).fflush(None)


def _where(error: BaseException) -> str | None:
    """Return the user's own line that raised or led to it."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"look at {error.filename}:{error.lineno}"
    if isinstance(error, ImportError) and "relative import" in str(error):
        return "name it as a module of its package: package.module:ATTR"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(_NOT_THE_USERS)]
    if not own:
        return "PTTOOL_DEBUG=1 shows the traceback"
    return f"raised at {own[-1].filename}:{own[-1].lineno}; PTTOOL_DEBUG=1 shows the traceback"


_NOT_THE_USERS = (
    "<",  # code that Python itself is made of, as <frozen importlib>
    str(Path(__file__).parents[1]),
    *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
)


def _read(path: Path) -> bytes:
    try:
        source = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", "check the path of the file") from error
    if not source.strip():
        raise InputError(f"{path}: is empty", "give a file that defines the model")
    return source


def append_to_path(*folders: Path) -> None:
    """Put the working folder and others last on sys.path."""
    for folder in (Path.cwd(), *folders):
        if str(folder) not in sys.path:
            sys.path.append(str(folder))


def _attribute(module: ModuleType, attribute: str, source: str) -> Any:
    value: Any = module
    for part in attribute.split("."):
        with foreign_code(source):  # a module may compute its attributes
            found = hasattr(value, part)
            names = [name for name in dir(value) if not name.startswith("_")]
        if not found:
            nearest = get_close_matches(part, names, 3, 0.0)
            hint = f"nearest: {', '.join(nearest)}" if nearest else "it defines nothing"
            raise UsageError(f"{source}: has no {part!r}", hint)
        value = getattr(value, part)
    return value

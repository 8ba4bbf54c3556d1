"""The names that no weights need and that let a pickle run code, reach files or the network.

A name that isn't here isn't safe: it is unknown. Sources: the modules of Python's library and of
torch and numpy that run, load or fetch something; published attacks on scanners of pickles.
"""

from pttool.core.ckpt.pickles.nodes import Global
from pttool.core.ckpt.safety.allowed import in_python_3

COMMANDS = "runs commands"
CODE = "runs Python code"
IMPORTS = "imports or finds code by name"
UNPICKLES = "unpickles what isn't here to judge"
CALLS = "calls whatever it is given"
REACHES = "reaches what an object or a module hides"
NATIVE = "runs native code"
FILES = "reads, writes or deletes files"
NETWORK = "talks to the network"
PROCESSES = "starts processes or threads"
TOOLS = "has ways to run commands or code"

# A module, or what is in a package, with all that is below it.
MODULES: dict[str, tuple[str, ...]] = {
    COMMANDS: (
        "os", "posix", "nt", "subprocess", "_posixsubprocess", "commands", "popen2", "pty",
        "pexpect", "sh", "paramiko", "fabric", "_osx_support", "_aix_support", "numpy.distutils",
        "torch.utils.collect_env", "torch.testing._internal", "uuid._get_command_stdout",
    ),
    CODE: (
        "code.interact", "code.InteractiveInterpreter", "code.InteractiveConsole",
        "code.compile_command", "codeop", "pdb", "bdb", "doctest", "timeit", "profile.run",
        "profile.runctx", "profile.Profile", "cProfile", "trace.Trace", "trace.main",
        "rlcompleter", "IPython", "idlelib", "lib2to3", "numpy.testing", "numpy.f2py",
        "pandas.eval", "pandas.core.computation", "numexpr", "cloudpickle", "joblib.externals",
        "torch.fx.graph_module", "torch._inductor", "torch.utils.bottleneck",
        "torch.utils._config_module", "torch.distributed.rpc",
    ),
    IMPORTS: (
        "sys", "importlib", "_frozen_importlib", "_frozen_importlib_external", "imp", "pkgutil",
        "runpy", "zipimport", "site", "pydoc", "modulefinder", "torch.package", "torch.hub",
    ),
    UNPICKLES: (
        "pickle", "_pickle", "cPickle", "shelve", "marshal", "dill", "jsonpickle", "joblib",
        "torch.load", "torch.jit.load", "torch.jit._serialization", "torch.export.load",
        "torch.serialization.load", "torch.serialization._load", "torch.serialization._legacy_load",
        "torch._weights_only_unpickler", "torch.distributed.checkpoint.format_utils",
        "numpy.load", "numpy.lib.npyio", "numpy.lib._npyio_impl", "numpy.lib.format",
        "pandas.read_pickle", "pandas.io", "yaml", "multiprocessing.reduction",
    ),
    NATIVE: (
        "ctypes", "_ctypes", "cffi", "_cffi_backend", "torch.ops", "torch._ops", "torch.classes",
        "torch._classes", "torch.utils.cpp_extension", "numpy.ctypeslib",
    ),
    FILES: (
        "io.open", "io.open_code", "io.FileIO", "_io.open", "_io.open_code", "_io.FileIO",
        "shutil", "tempfile", "tarfile", "zipfile", "fileinput", "sqlite3", "dbm", "codecs.open",
        "gzip", "bz2", "lzma", "mmap", "linecache", "logging.config", "logging.FileHandler",
        "logging.handlers", "numpy.fromfile", "numpy.memmap", "numpy.save", "numpy.savetxt",
        "numpy.loadtxt", "numpy.genfromtxt", "numpy.DataSource", "torch.save",
    ),
    NETWORK: (
        "socket", "_socket", "socketserver", "ssl", "http", "urllib", "urllib2", "urllib3",
        "httplib", "requests", "httpx", "aiohttp", "ftplib", "smtplib", "poplib", "imaplib",
        "nntplib", "telnetlib", "xmlrpc", "webbrowser", "antigravity", "wsgiref",
        "torch.utils.model_zoo", "boto3", "huggingface_hub",
    ),
    PROCESSES: (
        "multiprocessing", "torch.multiprocessing", "concurrent", "asyncio", "_thread", "thread",
        "threading", "sched", "signal", "atexit",
    ),
    TOOLS: (
        "pip", "ensurepip", "venv", "distutils", "setuptools", "pkg_resources", "test.support",
        "unittest", "pytest", "_pytest", "cgi", "cgitb", "sysconfig", "turtledemo", "gc",
        "faulthandler",
    ),
}  # fmt: skip

# Single names of modules that hold harmless ones too.
NAMES: dict[str, dict[str, tuple[str, ...]]] = {
    "builtins": {
        CODE: ("eval", "exec", "compile", "execfile", "breakpoint", "input", "help"),
        IMPORTS: ("reload",),
        REACHES: ("getattr", "setattr", "delattr", "globals", "locals", "vars", "super"),
        CALLS: ("apply", "map", "filter", "iter", "exit", "quit"),
        FILES: ("open", "file"),
    },
    "operator": {
        REACHES: ("attrgetter", "itemgetter", "getitem", "setitem"),
        CALLS: ("methodcaller", "call"),
    },
    "functools": {CALLS: ("partial", "partialmethod", "reduce", "singledispatch")},
    "itertools": {CALLS: ("starmap",)},
    "types": {CODE: ("FunctionType", "LambdaType", "CodeType", "MethodType", "new_class")},
    "typing": {CODE: ("get_type_hints",)},
    "dataclasses": {CODE: ("make_dataclass",)},
    "copyreg": {CALLS: ("add_extension", "pickle", "constructor")},
    "weakref": {CALLS: ("finalize",)},
}  # fmt: skip

# As a part of a dotted name, or as the name of what is fetched from another module.
REACHED = frozenset(
    ("os", "sys", "posix", "nt", "subprocess", "builtins", "importlib", "ctypes", "shutil",
     "socket", "pickle", "_pickle", "marshal", "runpy", "pty", "eval", "exec", "__import__",
     "system", "popen", "getattr", "setattr", "load_library", "unlink", "write_text",
     "write_bytes", "rmdir", "rmtree"),
)  # fmt: skip
# Every object has them, and from each the interpreter can be reached; these two are harmless.
HARMLESS = frozenset(("copyreg.__newobj__", "copyreg.__newobj_ex__"))

# Of the parts of a name in the tables.
DEEPEST = 4

_REASONS = {name: why for why, names in MODULES.items() for name in names} | {
    f"{module}.{name}": why
    for module, by_reason in NAMES.items()
    for why, names in by_reason.items()
    for name in names
}


def danger(found: Global) -> str | None:
    """Return what a name is known to do that no weights need, or None if nothing is known."""
    for name in (found, in_python_3(found)):
        reason = _of_path(name.path) or _of_parts(name)
        if reason is not None:
            return reason
    return None


def _of_path(path: str) -> str | None:
    """Look a name up, and all that it is in."""
    parts = path.split(".", DEEPEST)[:DEEPEST]
    for count in range(1, len(parts) + 1):
        reason = _REASONS.get(".".join(parts[:count]))
        if reason is not None:
            return reason
    return None


def _of_parts(found: Global) -> str | None:
    """Judge what is fetched from a module: unpicklers follow the dots of a name from protocol 4."""
    if found.path in HARMLESS:
        return None
    parts = found.name.split(".")
    is_hidden = any(part.startswith("__") and part.endswith("__") for part in parts)
    return REACHES if is_hidden or not REACHED.isdisjoint(parts) else None

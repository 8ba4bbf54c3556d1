"""Build the fake libnvidia-ml.so.1 with the C compiler at hand."""

import re
import shutil
import subprocess
from pathlib import Path

LIBRARY = "libnvidia-ml.so.1"
SOURCES = ("fake_nvml.c", "processes.c", "scenario.c")


def compiler() -> str | None:
    """Return a C compiler's path, or None."""
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def build(folder: Path) -> Path:
    """Compile the library into an existing folder and return its path.

    Whatever else the bindings look up is a weak stub that answers NOT_SUPPORTED, so that what the
    sources define takes its place. Raises CalledProcessError for a compiler that fails.
    """
    found = compiler()
    assert found is not None
    stubs = folder / "stubs.c"
    stubs.write_text(_stubs(_looked_up()))
    here = Path(__file__).parent
    options = ["-O1", "-shared", "-fPIC", "-fvisibility=hidden", f"-Wl,-soname,{LIBRARY}"]
    target = folder / LIBRARY
    sources = [*(str(here / name) for name in SOURCES), str(stubs)]
    # The sources ignore what fread and sscanf return: a scenario is written by a test.
    subprocess.run([found, *options, "-w", "-o", str(target), *sources], check=True)
    return target


def _looked_up() -> list[str]:
    """Return the names of every function that nvidia-ml-py knows."""
    import pynvml

    source = Path(str(pynvml.__file__)).read_text()
    return sorted(set(re.findall(r'_nvmlGetFunctionPointer\("(nvml\w+)"\)', source)))


def _stubs(names: list[str]) -> str:
    stub = '__attribute__((weak, visibility("default"))) int {0}(void) {{ return stub("{0}"); }}'
    return "\n".join(["int stub(const char *);", *(stub.format(name) for name in names), ""])

"""`pttool profile` changes nothing that a script shows: outputs and exit codes, byte for byte."""

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Script:
    """A script, train.py unless named by `words`, with what it is given."""

    text: str
    words: tuple[str, ...] = ("train.py",)
    stdin: bytes = b""


PLAIN = {
    "names and arguments": Script(
        "import sys, __main__\n"
        "print(sys.argv, __name__, __file__, __spec__, __main__.__file__, sys.orig_argv[1:])\n"
        "print(sys.path, sys.flags, 'sitecustomize' in sys.modules, sys.gettrace())\n",
        ("train.py", "--epochs", "1", "--", "-h", "--json", ""),
    ),
    "environment": Script("import os\nprint(dict(os.environ))\n"),
    "modules and hooks": Script(
        "import sys, threading\n"
        "print(sorted(sys.modules), len(sys.path_hooks))\n"
        "print([each.name for each in threading.enumerate()])\n"
    ),
    "exit with a message": Script("import sys\nsys.exit('no data')\n"),
    "exit with a code": Script("print('a')\nraise SystemExit(7)\n"),
    "exit at once": Script("import os, sys\nprint('lost')\nsys.stdout.flush()\nos._exit(5)\n"),
    "syntax error": Script("print('never'\nfor\n"),
    "no such script": Script("", ("missing.py",)),
    "exception": Script("def f(x):\n    return 1 / x\ntry:\n    f(0)\nfinally:\n    f(1 - 1)\n"),
    "killed by itself": Script(
        "import os, signal\nprint('on', flush=True)\nos.kill(os.getpid(), signal.SIGTERM)\n"
    ),
    "at exit": Script(
        "import atexit\natexit.register(print, 'first in')\natexit.register(print, 'last in')\n"
        "class Late:\n    def __del__(self):\n        print('deleted')\nlate = Late()\n"
    ),
    "standard input": Script(
        "import sys\nprint(input('> '))\nprint(sys.stdin.read().upper())\n", stdin=b"one\ntwo\n"
    ),
    "bytes": Script(
        "import sys\nsys.stdout.write('text')\nsys.stdout.flush()\n"
        "sys.stdout.buffer.write(bytes(range(256)))\nsys.stderr.write('\\u00e9')\n"
    ),
    "a late thread": Script(
        "import threading, time\n"
        "threading.Thread(target=lambda: (time.sleep(0.2), print('late'))).start()\nprint('end')\n"
    ),
    "warnings": Script(
        "import warnings\nwarnings.warn('old')\nwarnings.warn('older', DeprecationWarning)\n"
    ),
    "a module": Script(
        "from . import name\nimport sys\nprint(name, __package__, sys.argv, __spec__.name)\n",
        ("-m", "package", "--epochs", "1"),
    ),
    "a child of its own": Script(
        "import subprocess, sys\n"
        "show = 'import os, sys; print(sys.path, sorted(sys.modules), dict(os.environ))'\n"
        "subprocess.run([sys.executable, '-c', show], check=True)\n"
    ),
    "spawned processes": Script(
        "import multiprocessing, pickle\n"
        "class Point:\n    def __init__(self, x):\n        self.x = x\n"
        "def twice(point):\n    return Point(2 * point.x)\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        print([each.x for each in pool.map(twice, [Point(1), Point(2)])])\n"
        "    print(pickle.dumps(Point(3)))\n"
    ),
}
TRAIN = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
loader = DataLoader(TensorDataset(torch.randn(48, 4), torch.arange(48) % 2), 4, shuffle=True)
"""
WITH_TORCH = {
    "training, and an error inside a module": Script(
        f"{TRAIN}"
        "for x, y in loader:\n    optimizer.zero_grad()\n"
        "    loss = nn.functional.cross_entropy(model(x), y)\n    loss.backward()\n"
        "    optimizer.step()\n    print(loss.item(), model[0].weight.sum().item())\n"
        "torch.save(model.state_dict(), 'model.pt')\n"
        "print(model, nn.Module.__call__.__qualname__, torch.optim.Adam.step.__qualname__)\n"
        "model(torch.randn(2, 5))\n"
    ),
    "spawned workers, and a class of the script": Script(
        "import atexit, inspect, pickle, sys\n"
        "from torch.utils.data import DataLoader, Dataset\n"
        "class Numbers(Dataset):\n    def __len__(self):\n        return 4\n"
        "    def __getitem__(self, index):\n        return index * 2\n"
        "if __name__ == '__main__':\n    atexit.register(print, 'bye')\n"
        "    print(len(inspect.getsource(Numbers)), type(pickle.loads(pickle.dumps(Numbers()))))\n"
        "    loader = DataLoader(Numbers(), 2, num_workers=1, multiprocessing_context='spawn')\n"
        "    print([batch.tolist() for batch in loader])\n    sys.exit(7)\n",
    ),
    "its own profiler, and torch.compile": Script(
        f"{TRAIN}"
        "import torch._dynamo\n"
        "with torch.profiler.profile() as own:\n"
        "    for x, y in loader:\n        model(torch.addcdiv(x, x, x)).sum().backward()\n"
        "print(sum(each.count for each in own.key_averages() if each.key == 'aten::addcdiv'))\n"
        "compiled = torch.compile(model, backend='eager')\n"
        "for x, y in loader:\n    compiled(x).sum().backward()\n    optimizer.step()\n"
        "print(dict(torch._dynamo.utils.counters))\n"
    ),
}


# When, and in which process, torch's profiler says it was started.
STAMP = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \d+:\d+")


@pytest.mark.parametrize("name", [*PLAIN, *WITH_TORCH])
def test_everything_is_as_without(name: str, tmp_path: Path, environment: dict[str, str]) -> None:
    script = {**PLAIN, **WITH_TORCH}[name]
    for file in ("train.py", "package/__main__.py"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(script.text)
    (tmp_path / "package" / "__init__.py").write_text("name = 'a package'\n")
    environment = {**environment, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}

    def run(*before: str) -> tuple[int, bytes, bytes]:
        words = [sys.executable, *before, *script.words]
        done = subprocess.run(
            words, cwd=tmp_path, env=environment, input=script.stdin, capture_output=True
        )
        return done.returncode, done.stdout, STAMP.sub(b"", done.stderr)

    code, stdout, stderr = run()
    as_in_a_shell = code if code >= 0 else 128 - code
    assert run("-m", "pttool", "profile", "--quiet") == (as_in_a_shell, stdout, stderr)

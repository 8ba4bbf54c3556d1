"""Scripts that look for the recorder: each shows what some way of recording would change."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Script:
    """A script, what it is given, and files that lie beside it; `module` runs it with -m."""

    source: str
    arguments: tuple[str, ...] = ()
    beside: dict[str, str] = field(default_factory=dict)
    module: str | None = None
    environment: dict[str, str] = field(default_factory=dict)


WITHOUT_TORCH = {
    "module": Script(
        "",
        ("-x",),
        module="pkg.train",
        beside={
            "pkg/__init__.py": "print('package', __name__)\n",
            "pkg/train.py": "import sys\nfrom . import near\n"
            "print(sys.argv[1:], __spec__.name, near, sys.path[0])\n",
            "pkg/near.py": "",
        },
    ),
    "what is there": Script(
        "import os, sys\n"
        "print(sys.path, sorted(sys.modules), sys.flags, sys.getrecursionlimit())\n"
        "print(list(os.environ.items()), len(sys._current_frames()), sys.warnoptions)\n"
        "print(sorted(sys.path_importer_cache), os.environ.get('PYTHONPATH'))\n"
        "import threading, atexit, signal\n"
        "print(threading.enumerate(), atexit._ncallbacks() >= 0, signal.getsignal(signal.SIGINT))\n"
    ),
    "user's own path": Script(
        "import os, sys, there\nprint(sys.path, os.environ['PYTHONPATH'], there)\n",
        beside={"lib/there.py": ""},
        environment={"PYTHONPATH": "lib:nowhere::"},
    ),
    "user's own sitecustomize": Script(
        "import sys, sitecustomize\nprint(sitecustomize, sys.seen, sys.modules['sitecustomize'])\n",
        beside={"lib/sitecustomize.py": "import sys\nsys.seen = __name__\n"},
        environment={"PYTHONPATH": "lib"},
    ),
    "sitecustomize that fails": Script(
        "print('on')\n",
        beside={"lib/sitecustomize.py": "raise RuntimeError('mine')\n"},
        environment={"PYTHONPATH": "lib"},
    ),
    "an import that fails": Script(
        "import linecache, traceback\n"
        "for _ in range(2):\n    try:\n        import torch\n"
        "    except ImportError:\n        traceback.print_exc()\n"
        "print(list(linecache.cache))\nimport torch.nn\n",
        beside={"torch/__init__.py": "import torch_no_such\n"},
    ),
    "children": Script(
        "import os, subprocess, sys\n"
        "code = 'import os, sys; print(sys.path, dict(os.environ), sorted(sys.modules))'\n"
        "subprocess.run([sys.executable, '-c', code])\n"
        "if (pid := os.fork()) == 0:\n    print('child', flush=True)\n    sys.exit(3)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    ),
    "bytes and descriptors": Script(
        "import os, sys\nos.write(1, b'\\xff\\x00raw')\nos.write(2, b'\\xfe raw')\n"
        "sys.stderr.write('unbuffered?')\nprint(sorted(os.listdir('/proc/self/fd'))[:3])\n"
    ),
}

# Each of these imports torch, which takes a second, so each shows as much as it can.
WITH_TORCH = {
    "tracebacks": Script(
        """
import traceback, warnings, torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Failing(nn.Module):
    def __init__(self, inner=None):
        super().__init__()
        self.inner = inner
    def forward(self, x):
        warnings.warn("in forward", stacklevel=3)
        return self.inner(x) if self.inner else x @ torch.ones(3, 3, 3, 1) @ x

class Data(Dataset):
    def __init__(self, fails_at): self.fails_at = fails_at
    def __len__(self): return 4
    def __getitem__(self, i):
        if i == self.fails_at: raise KeyError(f"sample {i}")
        return torch.ones(2)

def collate(samples):
    raise ValueError("collate")

class Deep(nn.Module):
    def forward(self, x): return self(x)

def attempt(function, *arguments, **named):
    try:
        function(*arguments, **named)
    except Exception:
        traceback.print_exc()

class Wrong(torch.optim.SGD):
    def step(self, closure=None): raise ArithmeticError("step")

attempt(nn.Sequential(nn.ReLU(), Failing(Failing())), torch.ones(2))
attempt(torch.ones(2).sum().backward)
attempt(torch.autograd.grad, torch.ones(()), torch.ones(()))
attempt(list, DataLoader(Data(2), batch_size=2))
attempt(list, DataLoader(Data(2), batch_size=2, num_workers=1))
attempt(list, DataLoader(Data(9), batch_size=2, num_workers=1, collate_fn=collate))
attempt(next, iter(DataLoader([])))
attempt(torch.save, lambda: 0, "/nowhere/at/all")
attempt(Wrong([nn.Parameter(torch.ones(1))], lr=1.0).step)
try:
    Deep()(1)
except RecursionError as error:
    frames = traceback.extract_tb(error.__traceback__)
    print(sorted({frame.name for frame in frames}), error)
raise SystemExit(nn.Linear(2, 2)(torch.ones(3)))
"""
    ),
    "what torch is": Script(
        """
import inspect, linecache, os, pickle, sys, threading, torch, torch.optim.optimizer as optimizer
from torch.utils.data import DataLoader
from torch.utils.data._utils.fetch import _MapDatasetFetcher as fetcher
for each in (torch.nn.Module.__call__, torch.autograd.backward, torch.save, fetcher.fetch,
             DataLoader.__iter__, optimizer.Optimizer.profile_hook_step):
    print(each.__name__, each.__qualname__, each.__module__, inspect.signature(each),
          len(inspect.getsource(each)), each.__code__.co_filename, each.__code__.co_firstlineno,
          each.__closure__, hasattr(each, "__wrapped__"))
print(pickle.loads(pickle.dumps(torch.save)) is torch.save)
print(sorted(linecache.cache), type(torch.__spec__))
print(sorted(name for name in sys.modules if "pttool" in name), sys.meta_path)
print(threading.enumerate(), optimizer._global_optimizer_pre_hooks, list(os.environ))
module = torch.nn.Linear(2, 2)
print(module._forward_hooks, vars(torch.nn.modules.module).keys() & {"_pttool_hook", "HOOK"})
print(torch.jit.trace(module, torch.ones(2)).code, torch.fx.symbolic_trace(module).code)
loader = DataLoader(range(4), num_workers=1)
print(vars(loader).keys(), loader.collate_fn, [each.tolist() for each in loader])
"""
    ),
    "spawned workers": Script(
        """
import atexit, multiprocessing, os, pickle, sys, torch
from torch.utils.data import DataLoader, Dataset, get_worker_info
class Data(Dataset):
    def __len__(self): return 3
    def __getitem__(self, i):
        names = sorted(name for name in sys.modules if "pttool" in name)
        return i, __name__, sys.argv, get_worker_info().id, list(os.environ), names, sys.path
if __name__ == "__main__":
    atexit.register(print, "bye")
    for method in ("spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        print(list(DataLoader(Data(), None, num_workers=1, multiprocessing_context=context)))
    sys.exit(7)
""",
        ("--flag",),
    ),
}

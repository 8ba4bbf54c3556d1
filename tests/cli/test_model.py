"""`pttool model` as users run it, and the public bug reports it must not repeat."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Program, Pttool, assert_refused

NETS = """
import atexit, os, sys
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.fc = nn.Linear(width, 2)
    def forward(self, x):
        return self.fc(x)

class Tied(nn.Module):  # torchinfo #377: said 6400 parameters, 12800 MACs
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(100, 32)
        self.head = nn.Linear(32, 100, bias=False)
        self.head.weight = self.emb.weight
    def forward(self, ids):
        return self.head(self.emb(ids))

class Block(nn.Module):
    def __init__(self, act):
        super().__init__()
        self.fcs = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])
        self.act = act
    def forward(self, x):
        for fc in self.fcs:
            x = self.act(fc(x))
        return x

class SharedActivation(nn.Module):  # torchinfo #327: said 160 parameters
    def __init__(self):
        super().__init__()
        act = nn.ReLU()
        self.blocks = nn.Sequential(*[Block(act) for _ in range(3)])
    def forward(self, x):
        return self.blocks(x)

class WithList(nn.Module):  # torchinfo #190: said 2112 MACs
    def __init__(self):
        super().__init__()
        self.ws = nn.ParameterList([nn.Parameter(torch.zeros(32, 32)) for _ in range(3)])
        self.fc = nn.Linear(32, 32)
    def forward(self, x):
        for w in self.ws:
            x = x @ w
        return self.fc(x)

class Ids(nn.Module):  # pytorch-summary #77: a float tensor crashed the embedding
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(50, 8)
        self.fc = nn.Linear(8 + 3, 2)
    def forward(self, ids, feats):
        return self.fc(torch.cat([self.emb(ids).mean(1), feats], 1))

class Out:
    def __init__(self, t):
        self.t = t

class OddOutput(nn.Module):  # torchinfo raised on the type
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(32, 8)
    def forward(self, x):
        return Out(self.fc(x))

class StubbornMode(Net):
    def train(self, mode=True):
        sys.exit("I quit")

class Threaded(Net):
    def __init__(self):
        super().__init__()
        import threading, time
        def chatter():
            while True:
                print("from a thread")
                time.sleep(0.001)
        threading.Thread(target=chatter, daemon=True).start()

class OwnCall(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)
    def __call__(self, x):
        return self.b(self.a(x))
    def forward(self, x):
        return x

class NoInput(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.zeros(3, 3))
    def forward(self):
        return self.w @ self.w

class Unregistered(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = [torch.zeros(8, 3)]
    def forward(self, x):
        return x @ self.w[0].t()

def closes_real_stdout():
    sys.__stdout__.close()
    return Net()

def cancelled():
    import asyncio
    raise asyncio.CancelledError

def loud(printer=print):
    print("from print")
    os.system("echo from a child")
    os.write(1, b"from a descriptor\\n")
    sys.stdout.buffer.write(b"from a buffer\\n")
    atexit.register(print, "from an exit handler")
    return Net()

def closing():
    sys.stdout.close()
    return Net()

def leaving():
    sys.exit("I quit")

def failing():
    raise ValueError("two\\nlines")

def linear():
    return nn.Linear(32, 64)

number = 3
ready = Net()
"""


@pytest.fixture
def nets(tmp_path: Path) -> Path:
    """A folder with nets.py."""
    (tmp_path / "nets.py").write_text(NETS)
    return tmp_path


def _document(done: "subprocess.CompletedProcess[str]") -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_the_main_job(pttool: Pttool) -> None:
    done = pttool("model", "summary", "resnet18", "-i", "3,224,224")
    assert (done.returncode, done.stderr) == (0, "")
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["layer1.0.conv1", "Conv2d", "[1,64,56,56]", "[1,64,56,56]", "[3,3]", "1",
            "36864", "115605504"] in rows  # fmt: skip
    assert ["Parameters:", "11,689,512", "(11.69", "M)"] in rows
    assert ["MACs:", "1,814,073,344", "(1.814", "G)"] in rows


def test_the_json_of_a_summary(pttool: Pttool) -> None:
    document = _document(pttool("model", "summary", "resnet18", "-i", "3,224,224", "--json"))
    assert document["command"] == "model summary"
    assert list(document["summary"]) == [
        "model", "source", "weights", "device", "mode", "batch", "params", "trainable_params",
        "frozen_params", "buffers", "param_bytes", "buffer_bytes", "shared", "macs", "flops",
        "macs_upper_bound", "dense_macs", "uncounted_ops", "saved_for_backward_bytes",
        "peak_activation_bytes", "output_shape", "partial",
    ]  # fmt: skip
    assert document["items"][1] == {
        "name": "conv1", "type": "Conv2d", "depth": 1, "calls": 1,
        "input_shape": [1, 3, 224, 224], "output_shape": [1, 64, 112, 112], "params": 9408,
        "trainable_params": 9408, "macs": 118_013_952, "kernel_size": [7, 7],
    }  # fmt: skip


def test_the_json_of_params(pttool: Pttool) -> None:
    document = _document(pttool("model", "params", "resnet18", "--filter", "fc.*", "--json"))
    assert document["items"] == [
        {"name": "fc.weight", "shape": [1000, 512], "dtype": "float32", "numel": 512_000,
         "trainable": True, "bytes": 2_048_000, "shared_with": []},
        {"name": "fc.bias", "shape": [1000], "dtype": "float32", "numel": 1000,
         "trainable": True, "bytes": 4000, "shared_with": []},
    ]  # fmt: skip


def test_params_by_module_largest_first(pttool: Pttool) -> None:
    done = pttool("model", "params", "alexnet", "--by-module", "--sort", "numel", "--csv")
    assert done.stdout.splitlines()[:2] == [
        "name,type,tensors,numel,trainable_numel,bytes",
        "classifier.1,Linear,2,37752832,37752832,151011328",
    ]


@pytest.mark.parametrize(
    ("args", "totals"),
    [
        (["Tied", "-i", "ids:int64:16", "-b", "2"], {"params": 3200, "macs": 102_400}),
        (["SharedActivation", "-i", "4"], {"params": 120, "macs": 96}),
        (["linear", "-i", "16,32", "-b", "2"], {"macs": 65_536, "output_shape": [2, 16, 64]}),
        (["WithList", "-i", "16,32", "-b", "2"], {"params": 4128, "macs": 131_072}),
        (["Ids", "-i", "ids:int64:5", "-i", "feats:3", "-b", "4"],
         {"params": 424, "macs": 88, "output_shape": [4, 2]}),
        (["OddOutput", "-i", "32"], {"output_shape": "Out"}),
        (["Net", "-i", "8", "--kw", "width=8"], {"params": 18}),
        (["Net", "-i", "7,4", "--no-batch"], {"batch": None, "output_shape": [7, 2]}),
        (["ready", "-i", "4"], {"params": 10, "device": "meta"}),
        (["Net", "-i", "4", "--dtype", "bfloat16"], {"param_bytes": 20}),
        (["Net", "-i", "4", "--mode", "train"], {"mode": "train"}),
        (["Net", "-i", "4", "--device", "cpu"], {"device": "cpu"}),
        (["NoInput"], {"macs": 27, "output_shape": [3, 3]}),
        (["OwnCall", "-i", "3"], {"macs": 18, "params": 24}),
        (["Unregistered", "-i", "3"], {"macs": 24, "peak_activation_bytes": 32}),
        (["Threaded", "-i", "4"], {"params": 10}),
        (["closes_real_stdout", "-i", "4"], {"params": 10}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)  # fmt: skip
def test_models_of_a_file(
    pttool: Pttool, nets: Path, args: list[str], totals: dict[str, object]
) -> None:
    name, *rest = args
    summary = _document(pttool("model", "summary", f"nets.py:{name}", *rest, "--json"))["summary"]
    assert {key: summary[key] for key in totals} == totals


def test_rows_of_the_bug_reports(pttool: Pttool, nets: Path) -> None:
    def rows(*args: str) -> dict[str, dict[str, Any]]:
        items = _document(pttool("model", "summary", *args, "--json"))["items"]
        return {item["name"]: item for item in items}

    assert rows("nets.py:WithList", "-i", "16,32")["ws"]["params"] == 3072
    shared = rows("nets.py:SharedActivation", "-i", "4")
    linear = [name for name, row in shared.items() if row["type"] == "Linear"]
    assert linear == [f"blocks.{b}.fcs.{f}" for b in range(3) for f in range(2)]
    assert rows("nets.py:OddOutput", "-i", "32")["fc"]["output_shape"] == [1, 8]


@pytest.mark.parametrize("launch", [[], ["-m"]], ids=["pttool", "python -m pttool"])
def test_a_file_named_as_a_standard_module_breaks_nothing(
    nets: Path, environment: dict[str, str], launch: list[str]
) -> None:
    os.rename(nets / "nets.py", nets / "enum.py")
    (nets / "random.py").write_text("raise SystemExit('shadowed')")
    pttool = [sys.executable, *launch, "pttool"] if launch else ["pttool"]
    done = subprocess.run(
        [*pttool, "model", "summary", "enum.py:Net", "-i", "4", "--json"],
        cwd=nets, env=environment, capture_output=True, encoding="utf-8",
    )  # fmt: skip
    assert _document(done)["summary"]["params"] == 10


def test_a_module_of_the_working_folder(pttool: Pttool, nets: Path) -> None:
    document = _document(pttool("model", "params", "nets:Net", "--json"))
    assert document["summary"]["source"] == "nets"


@pytest.mark.parametrize("name", ["loud", "closing"])
def test_what_foreign_code_prints_never_spoils_the_data(
    pttool: Pttool, nets: Path, name: str
) -> None:
    done = pttool("model", "summary", f"nets.py:{name}", "-i", "4", "--json")
    assert _document(done)["summary"]["params"] == 10
    if name == "loud":
        for source in ("print", "a child", "a descriptor", "a buffer", "an exit handler"):
            assert f"from {source}\n" in done.stderr


@pytest.mark.parametrize(
    ("model", "args", "code", "words"),
    [
        ("resnet19", [], 2, ["'resnet19'", "resnet18"]),
        ("resnet18", ["-i", "3,0,224"], 2, ["3,0,224"]),
        ("resnet18", ["-i", "a,b"], 2, ["'a,b'"]),
        ("resnet18", ["-i", "3,9,9", "-i", "3"], 2, ["2 input(s)"]),
        ("resnet18", ["--kw", "x=__import__('os')"], 2, ["no Python literal"]),
        ("resnet18", ["--kw", "widht=3"], 2, ["widht", "resnet18"]),
        ("nets.py:Net", ["--kw", "widht=3"], 2, ["widht"]),
        ("nets.py:ready", ["--kw", "width=3"], 2, ["already built"]),
        ("nets.py:Nett", [], 2, ["'Nett'", "nearest: Net"]),
        ("nets.py", [], 2, ["nets.py:Net"]),
        ("nets.py:Net", [], 2, ["-i 3,224,224"]),
        ("nets.py:number", [], 3, ["is of type int"]),
        ("nets.py:os.getcwd", [], 3, ["type str"]),
        ("nets.py:failing", [], 3, ["ValueError: two lines", "nets.py:"]),
        ("nets.py:leaving", [], 3, ["I quit"]),
        ("missing.py:Net", [], 3, ["missing.py", "No such file"]),
        ("empty.py:Net", [], 3, ["empty.py", "empty"]),
        ("broken.py:Net", [], 3, ["SyntaxError", "broken.py:1"]),
        ("binary.py:Net", [], 3, ["binary.py"]),
        ("needs.py:Net", [], 3, ["no_such_package"]),
        ("no.such.module:Net", [], 3, ["no.such.module"]),
        (".", [], 3, ["is a folder"]),
        ("package:Net", [], 2, ["package: has no 'Net'"]),
        ("resnet-18", [], 2, ["'resnet-18'", "resnet18"]),
        ("resnet18", ["--kw", "weights='DEFAULT'"], 2, ["--weights"]),
        ("resnet18", ["--kw", "width=3", "--kw", "width=4"], 2, ["width", "twice"]),
        ("resnet18", ["--weights", "NONE"], 2, ["'NONE'", "IMAGENET1K_V1"]),
        ("nets.py:Net", ["--weights", "DEFAULT"], 2, ["torchvision"]),
        ("resnet18", ["-b", "1" + "0" * 20], 3, ["shape"]),
        ("nets.py:number.real.foo", [], 2, ["'foo'"]),
        ("nets.py:StubbornMode", ["-i", "4"], 3, ["I quit"]),
        ("nets.py:cancelled", ["-i", "4"], 3, ["CancelledError"]),
        ("nets.py:Net", ["-i", "4", "--csv", "--force", "-o", "nets.py"], 2, ["is an input"]),
        ("nets.py:Net", ["--kw", "width={[]:1}"], 2, ["no Python literal"]),
        ("resnet18", ["-i"], 2, ["pttool model summary --help"]),
        ("folder:Net", [], 3, ["folder: is a folder"]),
        ("resnet18", ["--device", "cuda"], 4, ["CUDA"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)  # fmt: skip
def test_bad_input(
    pttool: Pttool, nets: Path, model: str, args: list[str], code: int, words: list[str]
) -> None:
    (nets / "empty.py").write_text("")
    (nets / "broken.py").write_text("def :\n")
    (nets / "binary.py").write_bytes(b"\x80PK\x00\xff" * 100)
    (nets / "needs.py").write_text("import no_such_package\n")
    (nets / "folder").mkdir()
    (nets / "package").mkdir()
    (nets / "package" / "__init__.py").touch()
    assert_refused(pttool("model", "summary", model, *args), code, *words)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_file_without_read_permission(pttool: Pttool, nets: Path) -> None:
    (nets / "nets.py").chmod(0)
    assert_refused(pttool("model", "params", "nets.py:Net"), 3, "nets.py", "Permission denied")


@pytest.mark.parametrize(
    ("model", "shape", "layer"),
    [
        ("resnet18", "4,224,224", "conv1, Conv2d(3, 64,"),
        ("inception_v3", "3,32,32", "Mixed_6a.branch3x3.conv, Conv2d("),
    ],
)
def test_a_failing_forward_shows_what_it_reached(
    pttool: Pttool, model: str, shape: str, layer: str
) -> None:
    done = pttool("model", "summary", model, "-i", shape, "--json")
    assert done.returncode == 3
    assert done.stderr.startswith(f"pttool: error: {model}: the forward failed in {layer}")
    assert len(done.stderr.splitlines()) == 2
    document = json.loads(done.stdout)
    assert document["summary"]["partial"] is True
    assert document["items"][0]["output_shape"] is None


def test_a_wrong_dtype_fails_on_meta_as_on_a_device(pttool: Pttool) -> None:
    done = pttool("model", "summary", "resnet18", "-i", "float64:3,64,64")
    assert done.returncode == 3
    assert "conv1" in done.stderr
    assert "torch.float64 and torch.float32" in done.stderr


def test_columns_are_chosen_for_tables_and_csv(pttool: Pttool) -> None:
    done = pttool("model", "summary", "alexnet", "--columns", "macs,name", "--csv", "--depth", "0")
    assert done.stdout == "macs,name\n714188480,\n"
    refused = pttool("model", "summary", "alexnet", "--columns", "macs,nmae")
    assert_refused(refused, 2, "'nmae'", "kernel_size")


@pytest.mark.parametrize(
    "args",
    [
        ["resnet18", "-i", "3,224,224"],
        ["regnet_y_400mf"],
        ["ssdlite320_mobilenet_v3_large"],
        # its checkpointing asks torch._dynamo, which the command line has put off
        ["densenet121", "--kw", "memory_efficient=True", "--mode", "train", "--depth", "0"],
    ],
    ids=lambda args: args[0],
)
def test_published_models_as_users_start_them(program: Program, args: list[str]) -> None:
    done = program("model", "summary", *args, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["summary"]["device"] == "meta"


NAMES = """
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        inner = nn.Linear(2, 3, bias=False)
        for _ in range(25):
            outer = nn.Module()
            outer.add_module("a_rather_long_block_name", inner)
            inner = outer
        self.inner = inner
        self.add_module("头", nn.Linear(1, 1, bias=False))
"""


def test_a_long_name_is_found_whole_in_a_pipe(program: Program, tmp_path: Path) -> None:
    """rich cuts or wraps it at 80 columns (Textualize/rich#501)."""
    (tmp_path / "net.py").write_text(NAMES)
    name = "inner." + "a_rather_long_block_name." * 25 + "weight"
    done = program("model", "params", "net.py:Net", env={"COLUMNS": "40", "TERM": "dumb"})
    assert sum(name in line for line in done.stdout.splitlines()) == 1


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-8"])
@pytest.mark.parametrize("format", [[], ["--csv"], ["--json"]], ids=["table", "csv", "json"])
def test_a_narrow_encoding_loses_nothing(
    program: Program, tmp_path: Path, encoding: str, format: list[str]
) -> None:
    """A redirect on Windows is cp1252; a name it lacks ended in UnicodeEncodeError half-way."""
    (tmp_path / "net.py").write_text(NAMES, encoding="utf-8")
    env = {"PYTHONUTF8": "0", "PYTHONIOENCODING": encoding}
    done = program("model", "params", "net.py:Net", *format, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert "头.weight" in done.stdout or "\\u5934.weight" in done.stdout


def test_a_closed_stderr_keeps_foreign_prints_off_the_data(
    nets: Path, environment: dict[str, str]
) -> None:
    done = subprocess.run(
        ["bash", "-c", "pttool model summary nets.py:loud -i 4 --json 2>&-"],
        cwd=nets, env=environment, stdout=subprocess.PIPE, encoding="utf-8",
    )  # fmt: skip
    assert json.loads(done.stdout)["summary"]["params"] == 10


def test_a_failure_survives_a_closed_pipe(nets: Path, environment: dict[str, str]) -> None:
    script = "pttool model summary nets.py:Net -i 5 2>/dev/null | true; echo ${PIPESTATUS[0]}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=nets, env=environment, stdout=subprocess.PIPE, encoding="utf-8"
    )
    assert done.stdout == "3\n"


@pytest.mark.parametrize(
    ("stub", "words"),
    [
        ("raise ImportError('No module named torchvision')", ["torchvision can't be imported"]),
        ("raise RuntimeError('operator torchvision::nms does not exist')", ["fits torch"]),
    ],
    ids=["missing", "not fitting torch"],
)
def test_an_unusable_torchvision_is_a_hint(
    program: Program, tmp_path: Path, stub: str, words: list[str]
) -> None:
    package = tmp_path / "stubs" / "torchvision"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(stub)
    env = {"PYTHONPATH": str(package.parent)}
    assert_refused(program("model", "params", "resnet18", env=env), 4, "torchvision", *words)


def test_a_missing_torch_is_a_hint(program: Program, tmp_path: Path) -> None:
    stubs = tmp_path / "stubs"
    stubs.mkdir()
    (stubs / "torch.py").write_text("raise ModuleNotFoundError(\"No module\", name='torch')")
    env = {"PYTHONPATH": str(stubs)}
    assert_refused(program("model", "params", "resnet18", env=env), 4, "torch is not installed")

"""`pttool gpu info` and `gpu ps`, on machines of a fake driver."""

import json
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import PTTOOL, Completed, Program, assert_refused
from tests.fakes.nvml.fixtures import Gpu, Machine
from tests.fakes.nvml.scenarios import gpu, machine, mig, mig_uuid, uuid
from tests.fakes.processes import Processes

MIB = 1 << 20
ME = os.getpid()
GHOST = 3_999_991


def _document(done: Completed) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_the_document_of_a_machine(pttool_gpu: Gpu) -> None:
    scenario = machine([gpu(0, util="93,1", procs=f"{ME}:20000"), gpu(1, ecc="!3")])
    done = pttool_gpu(scenario, "info", "--json", env={"CUDA_VISIBLE_DEVICES": "1"})
    assert (done.returncode, done.stderr) == (0, "")
    document = _document(done)
    assert document["summary"] == {
        "driver_version": "580.95.05", "cuda_driver_version": "13.0", "gpus": 2, "healthy": 2,
        "errors": {},
    }  # fmt: skip
    first, second = document["items"]
    assert first["memory"] == {
        "total_bytes": 81920 * MIB, "used_bytes": 20000 * MIB, "free_bytes": 61320 * MIB,
        "source": "nvml", "unified": False, "plausible": True,
    }  # fmt: skip
    assert (first["index"], first["uuid"], first["mig"]) == (0, uuid(0), False)
    assert (first["pci_bus_id"], first["utilization_percent"]) == ("00000000:0A:00.0", 93)
    assert (first["temperature_c"], first["power_w"], first["power_limit_w"]) == (30, 52, 400)
    assert (first["cuda_index"], second["cuda_index"]) == (None, 0)
    (process,) = first["processes"]
    assert (process["pid"], process["memory_bytes"], process["type"]) == (ME, 20000 * MIB, "C")
    assert (process["visible"], process["hidden"]) == (True, False)
    cmdline = Path("/proc/self/cmdline").read_bytes()
    assert process["command"] == cmdline.replace(b"\0", b" ").decode().strip()
    assert (second["processes"], second["ecc"]) == ([], None)
    assert second["errors"] == {"ecc": "not_supported"}


def test_a_lost_gpu_is_named_and_the_others_are_shown(pttool_gpu: Gpu) -> None:
    scenario = machine([gpu(0), gpu(1, all="!15"), gpu(2, handle="!15"), gpu(3)])
    done = pttool_gpu(scenario, "info")
    assert done.returncode == 1
    rows = [line.split() for line in done.stdout.splitlines()[1:5]]
    assert [row[0] for row in rows] == ["0", "1", "2", "3"]
    assert [("gpu_lost" in row, "NVIDIA" in row) for row in rows] == [
        (False, True), (True, False), (True, False), (False, True),
    ]  # fmt: skip
    for word in ("GPU 1 (gpu_lost)", "GPU 2 (gpu_lost)", "Xid", "dmesg", "reboot"):
        assert word in done.stderr
    document = _document(pttool_gpu(scenario, "info", "--json"))
    assert [item["index"] for item in document["items"]] == [0, 1, 2, 3]
    assert document["items"][1]["errors"]["memory"] == "gpu_lost"
    assert document["summary"]["healthy"] == 2


def test_what_an_old_driver_has_no_call_for(pttool_gpu: Gpu) -> None:
    scenario = machine([gpu(0, procs="!13", gprocs="!13", util="!13", mig="!13")])
    (item,) = _document(pttool_gpu(scenario, "info", "--json"))["items"]
    assert item["processes"] is item["utilization_percent"] is item["mig"] is None
    assert item["errors"]["processes"] == "driver_too_old"
    table = pttool_gpu(scenario, "info")
    assert table.returncode == 0
    assert "n/a" in table.stdout
    assert "processes n/a: driver_too_old" in table.stderr


def test_a_process_of_another_namespace_is_listed(pttool_gpu: Gpu) -> None:
    scenario = machine([gpu(0, procs=f"{GHOST}:17000")], **{f"ghost_{GHOST}": 1})
    (item,) = _document(pttool_gpu(scenario, "info", "--json"))["items"]
    (process,) = item["processes"]
    assert (process["pid"], process["memory_bytes"]) == (GHOST, 17000 * MIB)
    assert process["visible"] is False
    assert process["user"] is process["command"] is None


def test_mig_instances_are_rows_and_a_process_stands_in_one(pttool_gpu: Gpu) -> None:
    listed = {"procs": f"{ME}:3000:1:0"}
    instances = {**mig(0, 1, 40192, **listed), **mig(1, 5, 19968)}
    scenario = machine([gpu(0, mig="1,1", util="!3", **listed, **instances)])
    done = pttool_gpu(scenario, "info")
    assert done.returncode == 0
    assert re.search(r"^0\.0 .*GI1/CI0 +3012 / 40192 MiB +n/a", done.stdout, re.MULTILINE)
    assert re.search(r"^0\.1 .*GI5/CI0 +12 / 19968 MiB +n/a", done.stdout, re.MULTILINE)
    assert done.stdout.count(f"{ME} ") == 1
    parent, first, _ = _document(pttool_gpu(scenario, "info", "--json"))["items"]
    assert (parent["mig"], parent["processes"]) == (True, [])
    assert first["mig_instance"]["gpu_instance"] == 1
    assert first["utilization_percent"] is None


def test_a_mig_instance_is_named_by_its_uuid(pttool_gpu: Gpu) -> None:
    procs = f"{ME}:3000:1:0,{os.getppid()}:40:5:0"
    first, second = procs.split(",")
    instances = {**mig(0, 1, 40192, procs=first), **mig(1, 5, 19968, procs=second)}
    scenario = machine([gpu(0, mig="1,1", procs=procs, **instances), gpu(1)])
    for name, uuids in (
        (mig_uuid(1), [mig_uuid(1)]),
        (f"{mig_uuid(1)},{mig_uuid(0)[:12]}", [mig_uuid(0), mig_uuid(1)]),
        (f"0,{mig_uuid(1)}", [uuid(0), mig_uuid(0), mig_uuid(1)]),
    ):
        document = _document(pttool_gpu(scenario, "info", "-i", name, "--json"))
        assert [item["uuid"] for item in document["items"]] == uuids
    (row,) = _document(pttool_gpu(scenario, "ps", "-i", mig_uuid(1), "--json"))["items"]
    assert (row["pid"], row["mig_uuid"]) == (os.getppid(), mig_uuid(1))


@pytest.mark.parametrize(
    ("code", "cause", "words"),
    [
        (18, "version_mismatch", ["mismatch", "reboot", "reload"]),
        (9, "driver_not_loaded", ["kernel module", "modprobe"]),
    ],
)
def test_without_a_driver(pttool_gpu: Gpu, code: int, cause: str, words: list[str]) -> None:
    scenario = machine([gpu(0)], init=f"!{code}")
    done = pttool_gpu(scenario, "info")
    assert_refused(done, 4, *words)
    assert len(done.stderr.splitlines()) == 1
    as_json = pttool_gpu(scenario, "info", "--json")
    assert (as_json.returncode, as_json.stderr) == (4, done.stderr)
    assert _document(as_json)["error"] == cause


def test_without_the_drivers_library(program: Program, tmp_path: Path, sysroot: Path) -> None:
    """A file of that name that is no library comes before one that a machine may have."""
    (tmp_path / "libnvidia-ml.so.1").touch()
    env = {"LD_LIBRARY_PATH": str(tmp_path), "PTTOOL_SYSROOT": str(sysroot)}
    assert_refused(program("gpu", "info", env=env), 4, "no NVIDIA driver", "libnvidia-ml.so.1")
    (sysroot / "dev").mkdir()
    (sysroot / "dev" / "kfd").touch()
    assert_refused(program("gpu", "info", env=env), 4, "of AMD", "--torch")


def test_only_what_cuda_visible_devices_lets_through(pttool_gpu: Gpu) -> None:
    scenario = machine([gpu(0), gpu(1), gpu(2)])
    env = {"CUDA_VISIBLE_DEVICES": f"2,0,9,{uuid(1)}"}
    done = pttool_gpu(scenario, "info", "--visible", "--json", env=env)
    found = [(item["cuda_index"], item["index"]) for item in _document(done)["items"]]
    assert found == [(0, 2), (1, 0)]
    assert "9 is no device, which ends the list" in done.stderr


def test_a_choice_of_gpus(pttool_gpu: Gpu) -> None:
    scenario = machine([gpu(0), gpu(1), gpu(2, all="!15")])
    done = pttool_gpu(scenario, "info", "-i", f"{uuid(1)},0", "--ndjson")
    assert [json.loads(line)["index"] for line in done.stdout.splitlines()] == [0, 1]
    assert done.returncode == 0
    for wrong in ("7", "GPU-0", "-1", "x", "", mig_uuid(0)):
        assert_refused(pttool_gpu(scenario, "info", "-i", wrong), 2, "-i")


def test_a_watch_in_a_pipe_is_ndjson(machine_environment: Machine) -> None:
    """It follows what changes, and ends well once nobody reads it."""
    watching = _watch(machine_environment(machine([gpu(0, util="1,1")])), subprocess.PIPE)
    assert watching.stdout is not None
    assert json.loads(watching.stdout.readline())["utilization_percent"] == 1
    machine_environment(machine([gpu(0, util="77,1")]))
    lines = (json.loads(line) for line in iter(watching.stdout.readline, b""))
    later = next(line for line in lines if line["utilization_percent"] == 77)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT.*\+00:00", later["time"])
    watching.stdout.close()
    assert watching.wait(timeout=30) == 0


def test_a_watch_on_a_terminal_is_drawn_in_place(machine_environment: Machine) -> None:
    ours, theirs = pty.openpty()
    watching = _watch(machine_environment(machine([gpu(0)])), theirs)
    os.close(theirs)
    drawn = "".join(_shown(ours, until="\x1b[H", times=3))
    watching.kill()
    watching.wait()
    os.close(ours)
    assert "NVIDIA A100" in drawn.split("\x1b[H")[-2]


def test_a_watch_is_cut_to_a_low_terminal(machine_environment: Machine) -> None:
    """What scrolls away can't be drawn over."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (8, 60))
    scenario = machine([*map(gpu, range(11)), gpu(11, procs="!13")])
    watching = _watch(machine_environment(scenario), theirs, columns="60")
    os.close(theirs)
    drawn = "".join(_shown(ours, until="\x1b[H", times=4))
    watching.kill()
    watching.wait()
    os.close(ours)
    for screen in drawn.split("\x1b[H")[2:-1]:
        *lines, end = screen.split("\r\n")
        assert end == "\x1b[J"
        assert len(lines) == 7  # and the cursor's
        assert re.match(r"\u2026 \d+ more lines", lines[-1])


def _watch(
    environment: dict[str, str], stdout: int, columns: str = "120"
) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [PTTOOL, "gpu", "info", "--watch", "0.1"],
        env={**os.environ, **environment, "TERM": "xterm", "COLUMNS": columns},
        stdin=subprocess.DEVNULL,
        stdout=stdout,
    )


def _shown(terminal: int, *, until: str, times: int) -> Iterator[str]:
    deadline, seen = time.monotonic() + 30, 0
    while seen < times and time.monotonic() < deadline:
        if select.select([terminal], [], [], 1)[0]:
            text = os.read(terminal, 1 << 16).decode()
            seen += text.count(until)
            yield text


@pytest.mark.parametrize("wrong", [["--json"], ["--csv"], ["-o", "x.ndjson"], ["--torch"]])
def test_a_watch_has_no_other_format(pttool_gpu: Gpu, wrong: list[str]) -> None:
    done = pttool_gpu(machine([gpu(0)]), "info", "--watch", "1", *wrong)
    assert_refused(done, 2, "--watch")


def test_it_loads_neither_torch_nor_numpy_nor_rich(machine_environment: Machine) -> None:
    """As -X importtime lists them: a process starts as fast as `ckpt inspect` does."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", PTTOOL, "gpu", "info"],
        env={**os.environ, **machine_environment(machine([gpu(0, procs=f"{ME}:1")]))},
        capture_output=True,
        check=True,
        encoding="utf-8",
    )
    loaded = [line.rpartition("|")[2].strip() for line in done.stderr.splitlines()]
    assert "pynvml" in loaded
    assert not {name.partition(".")[0] for name in loaded} & {"torch", "numpy", "rich"}
    assert len(loaded) <= 230


def test_processes_are_listed_with_those_that_hold_the_device_open(
    pttool_gpu: Gpu, processes: Processes, sysroot: Path
) -> None:
    (sysroot / "dev").mkdir()
    device = sysroot / "dev" / "nvidia0"
    device.touch()
    job, orphan = processes.start(opens=[device]), processes.orphan(opens=[device])
    scenario = machine([gpu(0, mem="81920,600,17300", procs=f"{job.pid}:1000"), gpu(1)])
    env = {"PTTOOL_SYSROOT": str(sysroot)}
    done = pttool_gpu(scenario, "ps", "--json", env=env)
    rows = {item["pid"]: item for item in _document(done)["items"]}
    assert set(rows) == {job.pid, orphan.pid}
    listed, hidden = rows[job.pid], rows[orphan.pid]
    assert (listed["memory_bytes"], listed["hidden"], listed["orphan"]) == (
        1000 * MIB,
        False,
        False,
    )
    assert (hidden["memory_bytes"], hidden["hidden"], hidden["orphan"]) == (None, True, True)
    table = pttool_gpu(scenario, "ps", env=env).stdout
    assert "hidden: holds the device open, orphan" in table
    shown = _document(pttool_gpu(scenario, "info", "--json", env=env))["items"]
    assert [row["pid"] for row in shown[0]["processes"] if row["hidden"]] == [orphan.pid]
    assert shown[1]["processes"] == []

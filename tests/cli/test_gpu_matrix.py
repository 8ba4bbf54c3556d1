"""Every scenario x every verb: the right exit code, and never a traceback."""

import json
import os

import pytest

from tests.fakes.nvml.fixtures import Gpu
from tests.fakes.nvml.scenarios import gpu, machine, mig

ME, PARENT = os.getpid(), os.getppid()
GHOST = 3_999_992
VERBS = {
    "info": ["info"],
    "ps": ["ps"],
    "pick": ["pick"],
    "wait": ["wait", "--timeout", "0"],
    "run": ["run", "--timeout", "0", "--", "true"],
    "kill": ["kill", "--dry-run"],
    "reset": ["reset", "-i", "0", "--dry-run"],
    "doctor": ["doctor"],
}
A_JOB = {"procs": f"{PARENT}:20000", "util": "99,1"}
OLD = {"procs": "!13", "gprocs": "!13", "mpsprocs": "!13", "mig": "!13", "util": "!13"}
IN_MIG = {"mig": "1,1", "util": "!3", "procs": f"{PARENT}:3000:1:0"}
INSTANCES = {**mig(0, 1, 40192, procs=f"{PARENT}:3000:1:0"), **mig(1, 5, 19968)}
INTEGRATED = {"name": "NVIDIA GB10", "mem": "!3", "powerlimit": "!3", "mig": "!3", "ecc": "!3"}
SMALL_TOTAL = {"name": "NVIDIA N1X", "mem": "8128,0,199", "procs": f"{PARENT}:9000"}
DESKTOP = {"procs": f"{PARENT}:-", "gprocs": f"{PARENT}:-,{GHOST}:-", "mem": "24564,300,2000"}

SCENARIOS = {
    "idle": machine([gpu(0), gpu(1)]),
    "taken": machine([gpu(0, **A_JOB)]),
    "ten": machine([gpu(index, **(A_JOB if index % 2 else {})) for index in range(10)]),
    "integrated": machine([gpu(0, **INTEGRATED)]),
    "small total": machine([gpu(0, **SMALL_TOTAL)]),
    "lost": machine([gpu(0), gpu(1, all="!15"), gpu(2)]),
    "lost handle": machine([gpu(0, handle="!15"), gpu(1)]),
    "all lost": machine([gpu(0, all="!15")]),
    "old driver": machine([gpu(0, **OLD)]),
    "no permission": machine([gpu(0, mem="!4", procs="!4")]),
    "nothing supported": machine([f"0.uuid={gpu(0)[:0]}GPU-x\n"]),
    "mig": machine([gpu(0, **IN_MIG, **INSTANCES)]),
    "mig without instances": machine([gpu(0, mig="1,1", util="!3")]),
    "foreign": machine([gpu(0, procs=f"{GHOST}:17000")], **{f"ghost_{GHOST}": 1}),
    "stride": machine([gpu(0, procs=f"{PARENT}:10,{ME}:20")], stride32=1),
    "impossible PIDs": machine([gpu(0, procs="4294967295:10")], ghost_4294967295=1),
    "desktop": machine([gpu(0, **DESKTOP)], **{f"ghost_{GHOST}": 1}),
    "held unlisted": machine([gpu(0, mem="24576,300,17300")]),
    "not text": machine([gpu(0, uuid="GPU-\xf2abc", name="\xff")]),
    "no counters": machine([gpu(0, eccerr1="!3")], driver="!999", cuda="!3"),
    "no gpu": machine([]),
    **{f"init {code}": machine([gpu(0)], init=f"!{code}") for code in (4, 9, 15, 18, 999)},
    "count fails": machine([gpu(0)], count="!999"),
}
NO_GPU = {"no gpu", "count fails", *(name for name in SCENARIOS if name.startswith("init"))}
UNHEALTHY = {"lost", "lost handle", "all lost"}
NOT_FREE = {
    "taken", "small total", "all lost", "old driver", "no permission", "nothing supported",
    "mig without instances", "foreign", "stride", "impossible PIDs", "desktop", "held unlisted",
    "not text",
}  # fmt: skip


def _allowed(scenario: str, verb: str) -> set[int]:
    """The exit codes of the table in the README; kill and reset have their own tests."""
    if verb == "doctor":
        return {1}  # no machine of the tests has a CUDA that works
    if scenario in NO_GPU:
        return {4}
    if verb in ("info", "ps"):
        return {int(scenario in UNHEALTHY)}
    if verb in ("pick", "wait", "run"):
        return {int(scenario in NOT_FREE)}
    return {0, 1, 4}


# Of some rows these are nothing at all, and so not unknown.
MAY_BE_NOTHING = {"fault", "cuda_index", "mig_instance"}


@pytest.mark.parametrize("scenario", sorted(SCENARIOS.keys() - NO_GPU))
def test_what_is_unknown_has_a_named_error(pttool_gpu: Gpu, scenario: str) -> None:
    document = json.loads(pttool_gpu(SCENARIOS[scenario], "info", "--json").stdout)
    for item in document["items"]:
        unknown = {name for name, value in item.items() if value is None} - MAY_BE_NOTHING
        assert unknown <= item["errors"].keys()
        if item["ecc"] is not None and item["ecc"]["uncorrected_errors"] is None:
            assert "ecc.uncorrected_errors" in item["errors"]
    summary = document["summary"]
    for name in ("driver_version", "cuda_driver_version"):
        assert (summary[name] is None) == (name in summary["errors"])


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_verb_has_the_right_exit_code(pttool_gpu: Gpu, scenario: str) -> None:
    for verb, args in VERBS.items():
        done = pttool_gpu(SCENARIOS[scenario], *args)
        assert done.returncode in _allowed(scenario, verb), (verb, done.stderr)
        assert "Traceback" not in done.stderr, verb
        errors = [line for line in done.stderr.splitlines() if line.startswith("pttool: error")]
        assert len(errors) == (done.returncode != 0), (verb, done.stderr)

"""A hundred jobs at once, each a process of its own from the pick to the end of its command."""

import os
from pathlib import Path

import pytest

from pttool.core.gpu import locks, run
from pttool.core.gpu.picking import Conditions
from tests.fakes.nvml.fixtures import Machine
from tests.fakes.nvml.scenarios import gpu, machine

# A folder can be made once: a second job on the same GPU would fail.
JOB = 'for g in $(echo $CUDA_VISIBLE_DEVICES | tr , " "); do mkdir $g || exit 9; done; sleep 0.01;'
JOB += ' rmdir $(echo $CUDA_VISIBLE_DEVICES | tr , " ")'


@pytest.mark.parametrize("count", [1, 3])
def test_a_hundred_jobs_on_eight_gpus_never_share_one(
    machine_here: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    machine_here(machine([gpu(index) for index in range(8)]))
    tmp_path.chmod(0o1777)
    monkeypatch.setattr(locks, "FOLDERS", (tmp_path,))
    monkeypatch.setattr(run, "POLL_S", 0.05)
    monkeypatch.chdir(tmp_path)
    jobs = [_started(count) for _ in range(100)]
    codes = [os.waitstatus_to_exitcode(os.waitpid(job, 0)[1]) for job in jobs]
    assert codes == [0] * 100
    assert {path.suffix for path in tmp_path.iterdir()} == {".lock"}


def _started(count: int) -> int:
    job = os.fork()
    if job == 0:
        try:
            run.run(["sh", "-c", JOB], Conditions(count), timeout_s=None, say=lambda line: None)
        finally:
            os._exit(10)
    return job

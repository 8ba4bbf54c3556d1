"""Settings of `pttool env` that depend on the machine: quotas, runtimes, masks."""

from pathlib import Path

import pytest

from pttool.core.env.markdown import Mask
from pttool.core.env.openmp import openmp_settings
from pttool.core.env.processors import processor_settings
from pttool.core.processors import cpu_quota
from tests.fakes.cuda.fixtures import write_files

V2 = {
    "proc/self/cgroup": "0::/pod/container\n",
    "sys/fs/cgroup/pod/cpu.max": "150000 100000\n",
    "sys/fs/cgroup/pod/container/cpu.max": "max 100000\n",
}
V1 = {
    "proc/self/cgroup": "4:cpu,cpuacct:/docker/abc\n1:memory:/docker/abc\n",
    "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "250000\n",
    "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
}
FREE = {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}


@pytest.mark.parametrize(("files", "quota"), [(V2, 1.5), (V1, 2.5), (FREE, None), ({}, None)])
def test_the_quota_is_the_least_of_a_cgroup_and_its_parents(
    files: dict[str, str], quota: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Version 1 in a container names the path on the host, which is not there."""
    write_files(tmp_path, files)
    monkeypatch.setenv("PTTOOL_SYSROOT", str(tmp_path))
    assert cpu_quota() == quota


def test_more_threads_than_the_quota_grants_are_advised_against(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path, V2)
    monkeypatch.setenv("PTTOOL_SYSROOT", str(tmp_path))
    advice = {each.name: each.advice for each in processor_settings({"intra_threads": 64})}
    assert "OMP_NUM_THREADS=" in str(advice["threads.intra"])
    fitting = {each.name: each.advice for each in processor_settings({"intra_threads": 1})}
    assert fitting["threads.intra"] is None


def test_two_openmp_runtimes_of_intel_are_a_clash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path, {"torch/lib/libiomp5.so": "", "sklearn.libs/libomp-a1b2.so.5": ""})
    write_files(tmp_path, {"torch/lib/libcompat.so": "", "torch/lib/libgomp.so.1": ""})
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    monkeypatch.setattr("sys.prefix", str(tmp_path / "none"))
    installed = openmp_settings(None)[0]
    assert [Path(path).name for path in installed.value] == [
        "libomp-a1b2.so.5", "libgomp.so.1", "libiomp5.so",
    ]  # fmt: skip
    assert "Error #15" in str(installed.advice)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("/home/ann/venv/bin/python", "~/venv/bin/python"),
        ("/home/ann", "~"),
        ("/home/ann:/home/ann/lib", "~:~/lib"),
        ("/home/anna/x", "/home/anna/x"),
        ("/scratch/ann/run_ann", "/scratch/USER/run_USER"),
        ("planned channel", "planned channel"),
    ],
)
def test_home_and_name_are_masked_where_they_stand_as_words(text: str, masked: str) -> None:
    assert Mask({"/home/ann"}, {"ann"})(text) == masked

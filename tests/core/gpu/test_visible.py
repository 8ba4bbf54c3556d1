"""CUDA_VISIBLE_DEVICES, against torch's own reading of it on the same fake machine."""

import os
import random

import pytest

from pttool.core.gpu.visible import VARIABLE, visible_devices
from tests.fakes.nvml.fixtures import Machine
from tests.fakes.nvml.scenarios import gpu, machine, uuid

TOKENS = [
    "0", "1", "2", "-1", "", "1gpu", "+1", "x", "0x1", " 1", "64", "01", "+", "²", "٣", "1 ", "--1",
    "GPU-", "GPU-00000000", "GPU-00000001", "GPU-0000", "GPU-ffff", uuid(0), uuid(1), "MIG-0",
]  # fmt: skip


def test_it_lets_through_what_torch_lets_through(
    machine_here: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    machine_here(machine([gpu(0), gpu(1)]))
    drawn = random.Random(0)
    for _ in range(20_000):
        value = ",".join(drawn.choices(TOKENS, k=drawn.randint(1, 4)))
        monkeypatch.setitem(os.environ, VARIABLE, value)
        seen = visible_devices(value, [uuid(0), uuid(1)])
        if value.startswith("MIG-"):
            continue  # torch leaves these to CUDA
        try:
            count = torch.cuda._device_count_nvml()
        except ValueError:
            assert seen.is_malformed, value
        else:
            assert (len(seen.indices), seen.is_malformed) == (count, False), value


@pytest.mark.parametrize(
    ("value", "indices", "rule"),
    [
        (None, (0, 1, 2), None),
        ("1,0", (1, 0), None),
        ("0,7,1", (0,), "7 is no device, which ends the list"),
        ("0,7,7", (), "7 is there twice, which empties the list"),
        ("1,-1,0", (1,), "'-1' is no device, which ends the list"),
        ("", (), "'' is no device, which ends the list"),
        ("1gpu2,2ampere", (1, 2), None),
        ("GPU-00000002-1111,GPU-00000000", (2, 0), None),
        ("GPU-0000", (), "GPU-0000 fits several devices, which ends the list"),
        ("GPU-00000001,x", (1,), "'x' is no GPU-, which ends the list"),
    ],
)
def test_the_order_and_the_rule_that_hides(
    value: str | None, indices: tuple[int, ...], rule: str | None
) -> None:
    seen = visible_devices(value, [uuid(0), uuid(1), uuid(2)])
    assert (seen.indices, seen.rule) == (indices, rule)


def test_mig_instances_are_known_by_their_own_uuids() -> None:
    seen = visible_devices("MIG-b", ["MIG-a", "MIG-bc"])
    assert seen.indices == (1,)

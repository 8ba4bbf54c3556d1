"""Ask NVML for what decides whether CUDA works, in a process that may hang instead of this one."""

from collections.abc import Callable
from dataclasses import asdict

from pttool.core.gpu.diagnosis.facts import GpuFacts
from pttool.core.gpu.nvml import NoDriverError
from pttool.core.gpu.snapshot import take_snapshot
from pttool.core.gpu.types import Gpu


def tell_all(tell: Callable[..., None]) -> None:
    """Tell the versions of the driver and the `gpus`, or else the `cause` why there are none."""
    try:
        snapshot = take_snapshot()
    except NoDriverError as error:
        tell(cause=error.cause)
        return
    tell(
        driver_version=snapshot.driver_version,
        cuda_driver_version=snapshot.cuda_driver_version,
        gpus=[asdict(_facts(gpu)) for gpu in snapshot.gpus],
    )


def _facts(gpu: Gpu) -> GpuFacts:
    return GpuFacts(
        index=gpu.index,
        name=gpu.name,
        uuid=gpu.uuid,
        compute_capability=gpu.compute_capability,
        mig=bool(gpu.mig),
        mig_uuids=tuple(each.uuid for each in gpu.instances if each.uuid),
        fault=gpu.fault,
    )

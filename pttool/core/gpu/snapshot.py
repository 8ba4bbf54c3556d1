"""All GPUs of the machine at one moment, of which a bad one doesn't hide the others."""

import pynvml

from pttool.core.gpu.device import read_gpu
from pttool.core.gpu.nvml import NoDriverError, call, no_driver, session
from pttool.core.gpu.types import Snapshot


def take_snapshot() -> Snapshot:
    """Return every GPU as it is now. NVML is closed again, unless a session holds it open.

    Raises NoDriverError where there is no usable driver, or no GPU.
    """
    with session():
        try:
            count = pynvml.nvmlDeviceGetCount()
        except pynvml.NVMLError as error:
            raise no_driver(error.value) from error
        if count == 0:
            raise NoDriverError(
                "no_gpu", "the NVIDIA driver sees no GPU (pttool gpu doctor looks further)"
            )
        driver, driver_error = call(pynvml.nvmlSystemGetDriverVersion)
        cuda, cuda_error = call(pynvml.nvmlSystemGetCudaDriverVersion_v2)
        errors = {"driver_version": driver_error, "cuda_driver_version": cuda_error}
        return Snapshot(
            driver,
            None if cuda is None else f"{cuda // 1000}.{cuda % 1000 // 10}",
            tuple(read_gpu(index) for index in range(count)),
            {name: error for name, error in errors.items() if error is not None},
        )

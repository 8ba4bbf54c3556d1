"""The environment variables that change what torch, CUDA and their libraries do."""

import re
from collections.abc import Mapping

from pttool.core.env.setting import Setting

RELEVANT = re.compile(
    r"(CUDA|CUDNN|CUBLAS|NVIDIA|NCCL|NVTE|GLOO|UCX|TORCH|TORCHINDUCTOR|PYTORCH|TRITON|ATEN"
    r"|HIP|ROCR|ROCM|HSA|MIOPEN|ZE|SYCL|OMP|GOMP|KMP|MKL|MKLDNN|DNNL|ONEDNN|OPENBLAS|OPENCV)_.*"
    r"|LD_LIBRARY_PATH|LD_PRELOAD|DYLD_.*|PYTHON(?!_|STARTUP).*|VIRTUAL_ENV|CONDA_PREFIX"
    r"|(LOCAL_|GROUP_)?RANK|(LOCAL_)?WORLD_SIZE|MASTER_(ADDR|PORT)"
)
SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)
# The part of a URL before the host (RFC 3986, 3.2.1); a password may hold an @ that isn't encoded.
USERINFO = re.compile(r"(?<=://)[^/?#\s]*@")


def variable_settings(environ: Mapping[str, str]) -> list[Setting]:
    """Return the relevant variables, but for those whose names speak of secrets.

    A user and password within a URL are written as ***.
    """
    return [
        Setting(f"environment.{name}", USERINFO.sub("***@", value))
        for name, value in sorted(environ.items())
        if RELEVANT.fullmatch(name) and not SECRET.search(name)
    ]

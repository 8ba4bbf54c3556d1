"""As tests.forkserver, without torch: started with the fake NVML in LD_LIBRARY_PATH."""

import pttool.commands.gpu
import pttool.core.gpu.info
import pttool.core.gpu.kill
import pttool.core.gpu.ps
import pttool.core.gpu.reset
import pttool.core.gpu.run
import pttool.core.gpu.wait  # noqa: F401
from tests.forkserver import serve

if __name__ == "__main__":
    serve()

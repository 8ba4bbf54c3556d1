"""Give each test the same random numbers, and leave the process's settings as they were."""

import random
from collections.abc import Iterator

import numpy as np
import pytest
import torch


@pytest.fixture(autouse=True)
def _kept_settings() -> Iterator[None]:
    python, array = random.getstate(), np.random.get_state()
    cudnn = torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield
    random.setstate(python)
    np.random.set_state(array)
    torch.use_deterministic_algorithms(False)
    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = cudnn

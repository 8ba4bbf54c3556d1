"""The states of all random generators, as plain values that a checkpoint may hold."""

import random
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import torch


def random_states(generators: Sequence[torch.Generator]) -> dict[str, Any]:
    """Return the states of python, numpy, torch, every CUDA device and the given generators."""
    version, words, gauss = random.getstate()
    return {
        "python": (version, list(words), gauss),
        "numpy": _numpy_state(),
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        "generators": [generator.get_state() for generator in generators],
    }


def set_random_states(states: Mapping[str, Any], generators: Sequence[torch.Generator]) -> None:
    """Set what `random_states` returned; CUDA devices only as far as both have them."""
    version, words, gauss = states["python"]
    random.setstate((version, tuple(words), gauss))
    if states["numpy"] is not None and find_spec("numpy") is not None:
        import numpy as np

        np.random.set_state(tuple(states["numpy"]))
    torch.set_rng_state(states["torch"])
    for device in range(min(len(states["cuda"]), torch.cuda.device_count())):
        torch.cuda.set_rng_state(states["cuda"][device], device)
    for generator, state in zip(generators, states["generators"], strict=True):
        generator.set_state(state)


def _numpy_state() -> list[Any] | None:
    """Return the state of numpy's global generator, without arrays, which weights_only refuses."""
    if find_spec("numpy") is None:
        return None
    import numpy as np

    name, words, *rest = np.random.get_state(legacy=True)
    return [name, np.asarray(words).tolist(), *rest]

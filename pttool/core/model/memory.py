"""The bytes of activations: most alive at once in a forward, and kept for the backward."""

import contextlib
import weakref
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.nn.parameter import is_lazy
from torch.utils._pytree import tree_leaves


class ActivationBytes:
    """Counts storages as a forward makes and frees them, but weights, buffers and inputs."""

    def __init__(self, weights: Iterable[Tensor], inputs: Iterable[Tensor]) -> None:
        self.peak = 0
        self.saved_for_backward = 0
        self._alive = 0
        self._weights = {key for key, _ in storages(weights)}
        self._known = self._weights | {key for key, _ in storages(inputs)}
        self._saved: set[int] = set()

    def see(self, output: Any) -> None:
        """Count the new storages among an operator's outputs until they are freed."""
        for key, storage in storages(tree_leaves(output)):
            if key not in self._known:
                size = storage.nbytes()
                self._known.add(key)
                self._alive += size
                self.peak = max(self.peak, self._alive)
                weakref.finalize(storage, self._free, key, size)

    def know(self, arguments: Any) -> None:
        """Leave out what an operator reads but none has made: tensors that are not registered."""
        self._known |= {key for key, _ in storages(tree_leaves(arguments))}

    def saving(self) -> contextlib.AbstractContextManager[None]:
        """Return a context that counts what autograd saves for the backward, each storage once."""
        return torch.autograd.graph.saved_tensors_hooks(self._save, _unchanged)

    def _save(self, tensor: Tensor) -> Tensor:
        for key, storage in storages([tensor]):
            if key not in self._weights and key not in self._saved:
                self._saved.add(key)
                self.saved_for_backward += storage.nbytes()
        return tensor.detach()  # the tensor itself would keep its own graph, and so itself, alive

    def _free(self, key: int, size: int) -> None:
        self._known.discard(key)
        self._saved.discard(key)
        self._alive -= size


def _unchanged(tensor: Tensor) -> Tensor:
    return tensor


def storages(values: Iterable[Any]) -> list[tuple[int, torch.UntypedStorage]]:
    """Return the storages behind tensors. Sparse tensors and wrapper subclasses have none."""
    found = []
    for tensor in values:
        if isinstance(tensor, Tensor) and not is_lazy(tensor) and tensor.layout is torch.strided:
            with contextlib.suppress(NotImplementedError, RuntimeError):
                storage = tensor.untyped_storage()
                found.append((storage._cdata, storage))
    return found

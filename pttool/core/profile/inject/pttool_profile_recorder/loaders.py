"""The DataLoader as the main thread meets it: the wait for a batch, and where a step begins."""

from time import perf_counter

from .inlining import Hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .clock import Clock
    from .notes import Notes
    from .steps import Steps

MOST_LOADERS = 64


class Loaders:
    """What is known of each kind of loader, as pttool.core.profile.recording.Loader."""

    def __init__(self) -> None:
        self.kinds: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._of_dataset: dict[int, dict[str, Any]] = {}

    def met(self, loader: "Any") -> "dict[str, Any]":
        """Return the counts of the loaders that are set as this one is."""
        context = loader.multiprocessing_context
        settings = {
            "dataset": type(loader.dataset).__name__,
            "batch_size": getattr(loader.batch_sampler, "batch_size", loader.batch_size),
            "workers": loader.num_workers,
            "persistent_workers": loader.persistent_workers,
            "pin_memory": loader.pin_memory,
            "prefetch_factor": loader.prefetch_factor,
            "start_method": getattr(context, "_name", None),
        }
        counts = {"epochs": 0, "batches": 0, "iter_s": 0.0, "first_wait_s": 0.0, "wait_s": 0.0}
        key = tuple(settings.values())
        if len(self.kinds) < MOST_LOADERS or key in self.kinds:
            kind = self.kinds.setdefault(key, {**settings, **counts})
        else:
            kind = {**settings, **counts}
        if len(self._of_dataset) >= MOST_LOADERS:
            self._of_dataset.clear()
        self._of_dataset[id(loader.dataset)] = kind
        return kind

    def of(self, iterator: "Any") -> "dict[str, Any] | None":
        """Return the counts of the loader that an iterator came from."""
        return self._of_dataset.get(id(iterator._dataset))


class IterHook(Hook):
    """The hook of DataLoader.__iter__, which starts the workers."""

    def __init__(self, clock: "Clock", loaders: Loaders, notes: "Notes") -> None:
        self._clock, self._loaders, self._notes = clock, loaders, notes

    def enter(self, loader: "Any") -> "tuple[str, Any, float] | None":
        """Begin to make an iterator."""
        before = self._clock.enter("data_wait")
        return None if before is None else (before, loader, perf_counter())

    def leave(self, token: "tuple[str, Any, float]") -> None:
        """Count it."""
        before, loader, start_s = token
        with self._notes:
            kind = self._loaders.met(loader)
            kind["epochs"] += 1
            kind["iter_s"] += perf_counter() - start_s
        self._clock.leave(before)


class NextHook(Hook):
    """The hook of the loader's iterators' __next__, where steps begin.

    Of several iterators that are read side by side, the first one makes the steps until it is
    exhausted or gone.
    """

    def __init__(self, clock: "Clock", loaders: Loaders, steps: "Steps", notes: "Notes") -> None:
        self._clock, self._loaders, self._steps, self._notes = clock, loaders, steps, notes
        self._leading: Any = None

    def enter(self, iterator: "Any") -> "tuple[str, Any, int, float] | None":
        """Begin to wait for a batch."""
        before = self._clock.enter("data_wait")
        if before is None:
            return None
        with self._notes:
            if before == "other" and self._leads(iterator):
                self._steps.boundary("loader")
        return before, iterator, iterator._num_yielded, perf_counter()

    def leave(self, token: "tuple[str, Any, int, float]") -> None:
        """End the wait. No batch is the end of an epoch, which is no step."""
        before, iterator, yielded, start_s = token
        with self._notes:
            if iterator._num_yielded == yielded + 1:
                self._count(iterator, perf_counter() - start_s, is_first=yielded == 0)
            elif self._leading is not None and self._leading() is iterator:
                self._leading = None
                self._steps.cancel()
        self._clock.leave(before)

    def _leads(self, iterator: "Any") -> bool:
        from weakref import ref

        leading = None if self._leading is None else self._leading()
        if leading is None:
            self._leading = ref(iterator)
        return leading is None or leading is iterator

    def _count(self, iterator: "Any", wait_s: float, *, is_first: bool) -> None:
        kind = self._loaders.of(iterator)
        if kind is not None:
            kind["batches"] += 1
            kind["wait_s"] += wait_s
            kind["first_wait_s"] += wait_s * is_first

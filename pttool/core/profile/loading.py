"""How batches are made: what one costs, where, and how many workers would end the wait."""

from math import ceil

from pttool.core.profile import recording as recorded
from pttool.core.profile.types import Loader, Steady

CPU_BOUND = 0.5  # of the time of a fetch


def data_loading(recording: recorded.Recording, steady: Steady | None) -> Loader | None:
    """Return what the loader that was waited for longest does; None without one.

    The cost of a batch is that of all processes together, killed ones included. More workers than
    cores don't help where fetching is work for the CPU.
    """
    main = recording.main
    if main is None or not main.loaders:
        return None
    loader = max(main.loaders, key=lambda each: each.wait_s)
    fetching = [each for each in recording.fetching if each.batches]
    batches = sum(each.batches for each in fetching)
    samples = sum(each.samples for each in fetching)
    fetch_s = sum(each.fetch_s for each in fetching)
    if not batches or not fetch_s:
        return None
    cpu_fraction = sum(each.cpu_s for each in fetching) / fetch_s
    needed = workers_needed(fetch_s / batches, steady)
    limit = main.cores if cpu_fraction > CPU_BOUND else None
    is_capped = needed is not None and limit is not None and needed > limit
    return Loader(
        workers=loader.workers,
        batch_size=loader.batch_size,
        epochs=loader.epochs,
        batches=round(batches),
        fetch_ms=1000 * fetch_s / batches,
        sample_ms=1000 * fetch_s / samples if samples else None,
        collate_fraction=sum(each.collate_s for each in fetching) / fetch_s,
        cpu_fraction=cpu_fraction,
        workers_needed=limit if is_capped else needed,
        is_capped_by_cores=is_capped,
        processes=len(fetching),
    )


def workers_needed(fetch_s: float, steady: Steady | None) -> int | None:
    """Return how many workers, each making a batch in `fetch_s`, make them as fast as steps go.

    None where there are no steady steps, or they do nothing.
    """
    if steady is None or steady.compute_s <= 0:
        return None
    return ceil(fetch_s / steady.compute_s)

"""Findings about the making of batches."""

from pttool.core.profile import recording as recorded
from pttool.core.profile.findings.evidence import Evidence
from pttool.core.profile.labels import short_place
from pttool.core.profile.types import Finding, Loader

BOUND = 0.2  # of the steady time waits
NOTICEABLE = 0.1
SLOW_COLLATE = 0.3  # of making a batch
STARTUP = 0.1  # of the run
# Of a fetch, so much CPU may keep more workers than cores from helping.
CPU_NOTICED = 0.2
MANY_PER_CORE = 4  # workers, which no machine is asked for lightly


def data_loading_bound(evidence: Evidence) -> Finding | None:
    """Steps wait for data a good part of the steady time."""
    if evidence.data_wait < BOUND:
        return None
    steps = evidence.steady.steps
    wait_ms = 1000 * evidence.steady.phases_s["data_wait"] / steps
    step_ms = 1000 * evidence.steady.wall_s / steps
    text = (
        f"{100 * evidence.data_wait:.0f} % of the steady time waits for data: "
        f"{wait_ms:.4g} ms of a step's {step_ms:.4g} ms"
    )
    if evidence.hot_lines:
        hot = evidence.hot_lines[0]
        text += f"; {100 * hot.fraction:.0f} % of making a batch is {_place(evidence)}"
    return Finding("data-loading-bound", "warning", evidence.data_wait, text, _end_wait(evidence))


def slow_collate(evidence: Evidence) -> Finding | None:
    """The collate function takes a good part of making a batch, and the steps wait for it."""
    loader = evidence.loader
    if loader is None or evidence.data_wait < NOTICEABLE or loader.collate_fraction < SLOW_COLLATE:
        return None
    spent_ms = loader.fetch_ms * loader.collate_fraction
    step_ms = 1000 * evidence.steady.wall_s / evidence.steady.steps
    if spent_ms / max(loader.workers, 1) < NOTICEABLE * step_ms:
        return None  # steps wait for something else
    return Finding(
        "slow-collate",
        "warning",
        loader.collate_fraction,
        f"the collate function takes {spent_ms:.4g} ms of the {loader.fetch_ms:.4g} ms that making "
        f"a batch takes",
        "do the work per sample in the dataset, and only stack in collate_fn; or add workers",
    )


def workers_too_few(evidence: Evidence) -> Finding | None:
    """More workers would shorten the wait."""
    loader = evidence.loader
    if loader is None or loader.workers_needed is None or evidence.data_wait < NOTICEABLE:
        return None
    if loader.workers >= loader.workers_needed:
        return None
    makers = "each worker" if loader.workers else "without workers, the script"
    return Finding(
        "workers-too-few",
        "warning",
        evidence.data_wait,
        f"{makers} makes a batch in {loader.fetch_ms:.4g} ms, but a step uses one up in "
        f"{1000 * evidence.steady.compute_s:.4g} ms",
        _workers(loader, evidence.main.cores),
    )


def workers_startup(evidence: Evidence) -> Finding | None:
    """Every epoch starts its workers anew, which takes a noticeable part of the run."""
    spent_s = _startup_s(evidence)
    fraction = spent_s / evidence.wall_s
    if fraction < STARTUP:
        return None
    times = sum(loader.epochs for loader in _restarted(evidence))
    return Finding(
        "workers-startup",
        "warning",
        fraction,
        f"workers were started for each of {times} epochs, which with the wait for their first "
        f"batches took {spent_s:.2f} s",
        "persistent_workers=True keeps them from one epoch to the next",
    )


def _end_wait(evidence: Evidence) -> str:
    """Return what ends the wait: workers where they can, else a cheaper batch."""
    loader = evidence.loader
    cheaper = f"make {_place(evidence)} cheaper" if evidence.hot_lines else "make batches cheaper"
    if _startup_s(evidence) > evidence.phases_s["data_wait"] / 2:
        return "persistent_workers=True: most of the wait is for workers to start in each epoch"
    if loader is None or loader.workers_needed is None or loader.workers >= loader.workers_needed:
        return cheaper
    cores = evidence.main.cores
    ways = [_workers(loader, cores), cheaper]
    return "; or ".join(ways[::-1] if _are_many(loader, cores) else ways)


def _startup_s(evidence: Evidence) -> float:
    """Return the time until the first batches of workers that are started for each epoch."""
    return sum(loader.iter_s + loader.first_wait_s for loader in _restarted(evidence))


def _restarted(evidence: Evidence) -> list[recorded.Loader]:
    return [
        loader
        for loader in evidence.main.loaders
        if loader.workers and loader.epochs > 1 and not loader.persistent_workers
    ]


def _workers(loader: Loader, cores: int) -> str:
    needed = loader.workers_needed or 0
    if _are_many(loader, cores):
        return f"num_workers={needed} would end the wait, if {cores} cores bear so many"
    if loader.is_capped_by_cores:
        return f"num_workers={needed}, as many as there are cores, shortens the wait"
    return f"num_workers={needed} in the DataLoader ends the wait"


def _are_many(loader: Loader, cores: int) -> bool:
    """Whether the cores may be too few: on a busy machine CPU work looks like waiting."""
    needed = loader.workers_needed or 0
    computes = loader.cpu_fraction > CPU_NOTICED
    return needed > (cores if computes else MANY_PER_CORE * cores)


def _place(evidence: Evidence) -> str:
    hot = evidence.hot_lines[0]
    return f"{short_place(hot.file, hot.line)} in {hot.function}"

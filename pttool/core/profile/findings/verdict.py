"""All findings about a run, or the one that there is too little of it to judge."""

from pttool.core.profile.findings import compute, data_loading, device
from pttool.core.profile.findings.evidence import Evidence
from pttool.core.profile.types import Finding, Steady

LEAST_STEPS = 10
LEAST_S = 1.0

RULES = (
    data_loading.data_loading_bound,
    data_loading.slow_collate,
    data_loading.workers_too_few,
    data_loading.workers_startup,
    device.gpu_idle,
    device.sync_calls,
    compute.small_ops,
    compute.optimizer_foreach_off,
    compute.thread_oversubscription,
    compute.checkpoint_heavy,
    compute.recompiles,
)


def is_too_short(steady: Steady | None) -> bool:
    """Whether the steady steps are too few to say anything."""
    return steady is None or steady.steps < LEAST_STEPS or steady.wall_s < LEAST_S


def findings(evidence: Evidence) -> tuple[Finding, ...]:
    """Return what there is to say, the heaviest first; warnings before what is only good to know.

    Where every rule is silent, nothing: the time is where it should be.
    """
    found = [finding for rule in RULES if (finding := rule(evidence)) is not None]
    return tuple(sorted(found, key=lambda each: (each.severity == "info", -(each.fraction or 0))))


def too_short(steady: Steady | None, steps: int) -> Finding:
    """Return the finding that stands in for all others where the steady steps are too few."""
    if not steps:
        text = "no training step was seen: no batch of a DataLoader, optimizer step or forward"
        return Finding("too-short", "info", None, text, "")
    count, wall_s = (steady.steps, steady.wall_s) if steady is not None else (0, 0.0)
    return Finding(
        "too-short",
        "info",
        None,
        f"{count} steady steps in {wall_s:.2f} s are too few for a verdict",
        f"let it run for {LEAST_STEPS} steady steps and {LEAST_S:.0f} s at least",
    )

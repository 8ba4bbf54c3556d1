"""Findings about the computation of a step, and what surrounds it."""

from pttool.core.profile.findings.evidence import Evidence
from pttool.core.profile.recording import Optimizer
from pttool.core.profile.types import STEP_PHASES, Finding

SMALL_MS = 0.01  # of an op: no more than what Python and the dispatcher take for it
MANY_OPS = 100  # in a step
MOSTLY = 0.5
NOTICEABLE = 0.1
MANY_PARAMETERS = 10
# The first recompilation usually is the one that makes a size dynamic; more have other reasons.
FEW_RECOMPILES = 1


def small_ops(evidence: Evidence) -> Finding | None:
    """Steps are made of many ops so short that calling them is what takes the time."""
    ops = [row for row in evidence.ops.rows if row.name.startswith("aten::") and row.calls]
    small = [row for row in ops if row.self_ms / row.calls < SMALL_MS]
    whole_ms = sum(row.self_ms for row in ops)
    if not whole_ms or evidence.data_wait > MOSTLY:
        return None
    fraction = sum(row.self_ms for row in small) / whole_ms
    calls = sum(row.calls for row in small) / max(evidence.ops.steps, 1)
    if fraction < MOSTLY or calls < MANY_OPS:
        return None
    return Finding(
        "small-ops",
        "warning",
        fraction,
        f"a step calls {calls:,.0f} ops of less than {1000 * SMALL_MS:.0f} µs each",
        "a larger batch, torch.compile, or one op on a whole tensor in place of a loop",
    )


def optimizer_foreach_off(evidence: Evidence) -> Finding | None:
    """The optimizer goes through its parameters one by one, for a noticeable time."""
    fraction = evidence.steady.fraction("optimizer")
    looping = [each for each in evidence.main.optimizers if _is_looping(each)]
    if fraction < NOTICEABLE or not looping:
        return None
    slow = max(looping, key=lambda each: each.parameters * each.steps)
    return Finding(
        "optimizer-foreach-off",
        "warning",
        fraction,
        f"{slow.type} updates {slow.parameters:,} parameters one by one, "
        f"{100 * fraction:.0f} % of the steady time",
        "give it fused=True where it has that (Adam, AdamW, SGD, Adagrad), else foreach=True",
    )


def thread_oversubscription(evidence: Evidence) -> Finding | None:
    """There are more threads that compute than cores to run them."""
    cores = evidence.main.cores
    own = evidence.main.torch.threads if evidence.main.torch is not None else 1
    others = [worker.torch.threads for worker in evidence.workers if worker.torch is not None]
    # torch gives a worker one thread; more is what the user set, or a library started.
    crowded = max(others, default=1) > 1 and sum(others) > cores
    if own <= cores and not crowded:
        return None
    if crowded:
        text = f"{len(others)} workers compute with {sum(others)} threads on {cores} cores"
        fix = "torch.set_num_threads(1) in worker_init_fn"
    else:
        text = f"torch computes with {own} threads on {cores} cores"
        fix = f"OMP_NUM_THREADS={cores}, or torch.set_num_threads({cores})"
    return Finding("thread-oversubscription", "warning", None, text, fix)


def checkpoint_heavy(evidence: Evidence) -> Finding | None:
    """Writing checkpoints takes a noticeable part of training."""
    training_s = sum(evidence.phases_s[phase] for phase in STEP_PHASES)
    spent_s = evidence.phases_s["save"]
    fraction = spent_s / training_s if training_s else 0.0
    if fraction < NOTICEABLE:
        return None
    saves = evidence.main.phase_calls.get("save", 0)
    return Finding(
        "checkpoint-heavy",
        "warning",
        fraction,
        f"torch.save was called {saves:,} times and took {spent_s:.2f} s",
        "save less often, or in a thread: torch.distributed.checkpoint.async_save",
    )


def recompiles(evidence: Evidence) -> Finding | None:
    """torch.compile compiled the same code again and again."""
    torch = evidence.main.torch
    if torch is None or torch.recompiles <= FEW_RECOMPILES:
        return None
    return Finding(
        "recompiles",
        "warning",
        None,
        f"torch.compile compiled {torch.recompiles} times what it had compiled before, "
        f"{torch.graphs} graphs in all",
        "TORCH_LOGS=recompiles tells why; dynamic=True or padded inputs help for sizes",
    )


def _is_looping(optimizer: Optimizer) -> bool:
    """Whether it updates each parameter by itself: where not told, torch does so on a CPU.

    torch.optim.optimizer._default_to_fused_or_foreach chooses foreach on a GPU only.
    """
    if optimizer.parameters < MANY_PARAMETERS or optimizer.fused or optimizer.foreach:
        return False
    return optimizer.foreach is False or optimizer.device == "cpu"

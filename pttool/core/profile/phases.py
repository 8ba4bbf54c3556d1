"""The phases of a run: how its wall time divides, and how that changes from step to step."""

from collections.abc import Iterator, Mapping, Sequence

from pttool.core.profile.launch import Ended
from pttool.core.profile.percentiles import percentile
from pttool.core.profile.recording import Process, Step
from pttool.core.profile.types import PHASES, STEP_PHASES, Span, Steady, StepTimes

MOST_SPANS = 240


def run_phases(run: Ended, process: Process | None) -> dict[str, float]:
    """Return seconds per phase, which sum to the wall time of the run.

    The recorder sees neither the start of the interpreter nor what comes after its last word; the
    parent's clock, which is the same, tells both. Of a killed script, what came after is unknown,
    so other. Without a recording all is interpreter.
    """
    phases_s = dict.fromkeys(PHASES, 0.0)
    if process is None:
        return phases_s | {"interpreter": run.wall_s}
    phases_s |= process.phases_s
    phases_s["interpreter"] += process.start_s - run.start_s
    phases_s["exit" if process.is_final else "other"] += run.end_s - process.end_s
    return phases_s


def steady_state(process: Process) -> Steady | None:
    """Return the steady steps, without what the recording cost; None where there are none."""
    if not process.steady.steps:
        return None
    phases_s = {phase: process.steady.phases_s.get(phase, 0.0) for phase in STEP_PHASES}
    return Steady(process.steady.steps, sum(phases_s.values()), phases_s)


def step_times(steps: Sequence[Step]) -> StepTimes | None:
    """Return percentiles of the steady steps; None where there are none."""
    ordered_ms = sorted(1000 * step.duration_s for step in steps if step.is_steady)
    if not ordered_ms:
        return None
    return StepTimes(*(percentile(ordered_ms, fraction) for fraction in (0.5, 0.9, 0.99)))


def timeline(run: Ended, process: Process) -> tuple[Span, ...]:
    """Return the run in order, at most 244 spans: what precedes the steps, steps, what follows.

    A span of steps stands for those that were not kept, too; its phases keep their proportions.
    """
    rows = process.step_rows
    if not rows:
        return (Span(0.0, run.wall_s, run_phases(run, process)),)
    return tuple(_spans(run, process, rows))


def _spans(run: Ended, process: Process, rows: Sequence[Step]) -> Iterator[Span]:
    begun, first = process.start_s - run.start_s, rows[0].start_s - run.start_s
    yield Span(0.0, begun, {"interpreter": begun})
    yield Span(begun, first, {"startup": first - begun})
    size = -(-len(rows) // MOST_SPANS)
    for index in range(0, len(rows), size):
        group, later = rows[index : index + size], rows[index + size :]
        last = group[-1]
        end = later[0].start_s if later else last.start_s + sum(last.phases_s.values())
        yield Span(group[0].start_s - run.start_s, end - run.start_s, _sum(group))
    recorded = max(process.end_s, end)
    yield Span(end - run.start_s, recorded - run.start_s, {"other": recorded - end})
    yield Span(recorded - run.start_s, run.wall_s, {"exit": run.end_s - recorded})


def _sum(steps: Sequence[Step]) -> Mapping[str, float]:
    return {phase: sum(step.phases_s[phase] for step in steps) for phase in steps[0].phases_s}

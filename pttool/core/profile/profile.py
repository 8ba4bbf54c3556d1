"""`pttool profile`: run a script with the recorder inside, and say where its time went."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pttool.core.profile.findings.evidence import Evidence
from pttool.core.profile.findings.verdict import findings, is_too_short, too_short
from pttool.core.profile.hot_lines import hot_lines
from pttool.core.profile.labels import labelled_stacks, module_times
from pttool.core.profile.launch import Ended, Settings, launch
from pttool.core.profile.loading import data_loading
from pttool.core.profile.ops import op_table
from pttool.core.profile.phases import run_phases, steady_state, step_times, timeline
from pttool.core.profile.reading import read_recording
from pttool.core.profile.recording import Process, Recording, Window
from pttool.core.profile.sync_lines import sync_lines
from pttool.core.profile.types import Finding, Ops, Profile

NOTHING_RECORDED = (
    "nothing was recorded: the script ended at once, or its Python ignores the environment, as "
    "with -I, -E or -S"
)

NO_WINDOW = "no ops were recorded: of {} steps, --window skips the first {}"


def profile(arguments: Sequence[str], settings: Settings, folder: Path) -> Profile:
    """Run `python ARGUMENTS...` and return what there is to say about it.

    What is recorded is left in `folder`, the traces among it. Raises UnavailableError where no
    process can be started.
    """
    run = launch(arguments, settings, folder)
    recording = read_recording(folder, run.pid)
    windows = recording.main.windows if recording.main is not None else ()
    ops = window_ops(windows, by_shape=settings.shapes)
    found = profile_of(shlex.join(arguments), run, recording, ops)
    if found.steps and settings.windows and not ops.steps and not found.notes:
        return replace(found, notes=(NO_WINDOW.format(found.steps, settings.skip_steps),))
    return found


def window_ops(windows: Sequence[Window], *, by_shape: bool) -> Ops:
    """Return the ops of the windows whose traces could be written."""
    traced = [window for window in windows if window.trace is not None]
    if not traced:
        return Ops()
    traces = [window.trace for window in traced if window.trace is not None]
    table = op_table(traces, by_shape=by_shape)
    return Ops(
        rows=table.rows,
        steps=sum(window.steps for window in traced),
        wall_s=sum(window.end_s - window.start_s for window in traced),
        device_busy_s=table.device_busy_s,
        peak_bytes=table.peak_bytes,
        traces=traces,
    )


def profile_of(script: str, run: Ended, recording: Recording, ops: Ops) -> Profile:
    """Return what a recording and the ops of its windows say about a run of a script."""
    main = recording.main
    whole = Profile(
        script=script,
        exit_code=run.exit_code,
        interrupted=run.was_interrupted,
        final=main is not None and main.is_final,
        wall_s=run.wall_s,
        phases_s=run_phases(run, main),
    )
    if main is None:
        return replace(whole, notes=(NOTHING_RECORDED,))
    steady = steady_state(main)
    recorded = replace(
        whole,
        steps=main.steps,
        overhead_s=main.phases_s["profiler"] + main.sampler_cpu_s,
        steady=steady,
        step_ms=step_times(main.step_rows),
        loader=data_loading(recording, None if is_too_short(steady) else steady),
        hot_lines=hot_lines((main, *recording.workers)),
        modules=module_times(main.modules),
        module_steps=main.measured_steps,
        ops=ops,
        timeline=timeline(run, main),
        stacks=labelled_stacks(main, recording.workers),
        notes=main.notes,
    )
    return replace(recorded, findings=_findings(recorded, main, recording.workers))


def _findings(found: Profile, main: Process, workers: Sequence[Process]) -> tuple[Finding, ...]:
    if found.steady is None or is_too_short(found.steady):
        return (too_short(found.steady, found.steps),)
    return findings(
        Evidence(
            steady=found.steady,
            wall_s=found.wall_s,
            phases_s=found.phases_s,
            main=main,
            workers=workers,
            loader=found.loader,
            hot_lines=found.hot_lines,
            sync_lines=sync_lines(main),
            ops=found.ops,
        )
    )

"""`curve`: the columns of training logs as curves, a panel each, a line per run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite, nan
from pathlib import Path
from typing import Any

from pttool.core.curve.choice import ROW, USUAL_X, choose_columns, choose_x, column, run_names
from pttool.core.curve.logs import Log
from pttool.core.curve.opening import open_log, runs_at
from pttool.core.curve.smoothing import smoothed
from pttool.core.plots.panels import Curve, Panel, Plot, has_place
from pttool.core.report import Column, Report
from pttool.errors import InputError, PttoolError, UnavailableError

FIELDS = ("run", "column", "x", "value", "smoothed")
COLUMNS = tuple(Column(key, key.capitalize()) for key in FIELDS)


@dataclass(frozen=True, slots=True)
class Line:
    """One column of one run: its points in the order of the log."""

    run: str
    file: str
    column: str
    x: list[float]
    y: list[float]
    smooth: list[float] | None


def curve(
    paths: Sequence[Path],
    *,
    columns: Sequence[str] = (),
    x: str | None = None,
    smoothing: float = 0.0,
    log: bool = False,
) -> tuple[Plot, Report]:
    """Return the logs' columns as panels, and their points as rows.

    `columns` are names or globs; `x` is a column or "row"; `smoothing` is the weight of a moving
    average, 0 <= smoothing < 1; `log` makes the y axes logarithmic. Of several logs those that
    can't be read are noted, and a failure is raised in the end. Raises InputError or
    UnavailableError for a single one that can't, UsageError for a column that there isn't.
    """
    logs, errors = _opened(paths)
    chosen, left_out = choose_columns(logs, columns)
    over = choose_x(logs, x)
    named = list(zip(run_names(logs), logs, strict=True))
    lines = [
        line
        for key in chosen
        for name, each in named
        if (line := _line(name, each, key, over, smoothing)) is not None
    ]
    notes = [note for each in logs for note in each.notes]
    notes += [said for line in lines for said in _said(line, log)]
    if left_out:
        notes.append(f"{len(left_out)} more columns; choose with -c: {', '.join(left_out)}")
    if not columns:
        notes += _mixed(logs)
    return _plot(lines, chosen, over, log), Report(
        FIELDS,
        COLUMNS,
        [item for line in lines for item in _items(line)],
        {"x": over, "curves": [_summary(line) for line in lines]},
        notes=(*notes, *(error.message for error in errors[:-1])),
        failure=errors[-1] if errors else None,
    )


def _opened(paths: Sequence[Path]) -> tuple[list[Log], list[PttoolError]]:
    """Return the logs, and why others can't be read; raise that if it is so of all."""
    logs: dict[str, Log] = {}
    errors: list[PttoolError] = []
    for path in paths:
        try:
            runs = runs_at(path)
        except InputError as error:
            errors.append(error)
            continue
        for run in runs:
            try:
                log = open_log(run)
            except (InputError, UnavailableError) as error:
                errors.append(error)
            else:
                logs[log.name] = log
    if not logs:
        raise errors[0]
    return list(logs.values()), errors


def _line(run: str, log: Log, key: str, over: str, smoothing: float) -> Line | None:
    """Return the points that have both an x and a y, if there are any."""
    if key not in log.numeric:
        return None
    own = column(log, over)
    places = {} if own is None else log.columns[own]
    points = [
        (place, y)
        for row, y in log.columns[key].items()
        if (place := float(row) if over == ROW else places.get(row)) is not None
    ]
    if not points:
        return None
    ys = [y for _, y in points]
    smooth = smoothed(ys, smoothing) if smoothing else None
    return Line(run, log.name, key, [place for place, _ in points], ys, smooth)


def _plot(lines: Sequence[Line], chosen: Sequence[str], over: str, log: bool) -> Plot:
    panels = []
    for key in chosen:
        curves = [_drawn(line, over) for line in lines if line.column == key]
        if curves:
            panels.append(Panel(key, tuple(curves), log_y=log))
    return Plot(tuple(panels), over)


def _drawn(line: Line, over: str) -> Curve:
    """Return a line as a curve, broken where a count of progress falls: the run began again."""
    falls = [place for place in range(1, len(line.x)) if line.x[place] < line.x[place - 1]]
    breaks = falls if over.lower() in USUAL_X else []
    x, y = _broken(line.x, breaks), _broken(line.y, breaks)
    if line.smooth is None:
        return Curve(line.run, x, y)
    return Curve(line.run, x, _broken(line.smooth, breaks), raw=y)


def _broken(values: Sequence[float], places: Sequence[int]) -> list[float]:
    """Return values with a NaN before each of some places."""
    edges = [0, *places, len(values)]
    pieces = [list(values[a:b]) for a, b in pairwise(edges)]
    return pieces[0] + [value for piece in pieces[1:] for value in (nan, *piece)]


def _items(line: Line) -> Iterator[dict[str, Any]]:
    for place, (x, y) in enumerate(zip(line.x, line.y, strict=True)):
        smooth = None if line.smooth is None else line.smooth[place]
        yield {
            "run": line.run,
            "column": line.column,
            "x": _whole(x),
            "value": y,
            "smoothed": smooth,
        }


def _whole(x: float) -> float:
    """Return a count, as steps are, without decimals."""
    return int(x) if x.is_integer() else x


def _summary(line: Line) -> dict[str, Any]:
    finite = [(y, _whole(x)) for x, y in zip(line.x, line.y, strict=True) if isfinite(y)]
    (low, low_at), (high, high_at) = (min(finite), max(finite)) if finite else ((None, None),) * 2
    return {
        "run": line.run,
        "file": line.file,
        "column": line.column,
        "points": len(line.y),
        "not_finite": len(line.y) - len(finite),
        "last": line.y[-1],
        "min": low,
        "min_x": low_at,
        "max": high,
        "max_x": high_at,
    }


def _said(line: Line, log: bool) -> Iterator[str]:
    """Yield what the curve can't show."""
    bad = [x for x, y in zip(line.x, line.y, strict=True) if not isfinite(y)]
    name = f"{line.file}: {line.column}"
    if bad:
        yield f"{name}: {len(bad)} of {len(line.y)} values are no numbers, the first at {bad[0]:g}"
    lost = sum(not has_place(x) for x in line.x)
    if lost:
        yield f"{name}: {lost} of {len(line.x)} points have no place on the x axis"
    huge = sum(isfinite(y) and not has_place(y) for y in line.y)
    if huge:
        yield f"{name}: {huge} of {len(line.y)} values are too large to draw"
    low = sum(y <= 0 for y in line.y) if log else 0
    if low:
        yield f"{name}: {low} of {len(line.y)} values are not above 0: no place on a log scale"


def _mixed(logs: Sequence[Log]) -> Iterator[str]:
    """Yield which columns are left out because of a text among their numbers."""
    for log in logs:
        for key in log.columns:
            if key in log.texts:
                yield f"{log.name}: column {key!r} is left out: {log.texts[key]}"

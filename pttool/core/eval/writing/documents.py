"""An evaluation as a document: the settled CSV, Markdown, LaTeX or a page, and its matrix."""

from collections.abc import Iterator

import numpy as np

from pttool.core.eval.evaluate import Evaluation, pairs, total_row
from pttool.core.eval.report import Made
from pttool.core.eval.types import Ints
from pttool.core.eval.writing import texts
from pttool.core.eval.writing.html import Confusions, Grid, page
from pttool.core.eval.writing.listing import worst_of
from pttool.core.report import Column

GRID_CLASSES = 25
PAGE_PAIRS = 20
PAGE_ROWS = 2000


def document(
    kind: str,
    made: Made,
    *,
    title: str,
    digits: int = 3,
    header: bool = True,
    excel: bool = False,
    most_pairs: int = 0,
) -> Iterator[str]:
    """Yield the text of a document; `kind` is csv, md, latex or html."""
    total, rows = total_row(made.evaluation), made.rows
    with_iou = "iou" in made.report.fields
    match kind:
        case "csv":
            yield from texts.csv_text(rows, total, digits=digits, header=header, excel=excel)
        case "md":
            found = pairs(made.evaluation, most_pairs)
            yield from texts.markdown(rows, total, found, digits=digits, with_iou=with_iou)
        case "latex":
            yield from texts.latex(rows, total, digits=digits)
        case _:
            yield _page(made, title, digits, most_pairs or PAGE_PAIRS, with_iou=with_iou)


def grid(evaluation: Evaluation, most: int = GRID_CLASSES) -> Grid:
    """Return the part of the confusion matrix that holds the most confused pairs.

    So many classes at most, in label order; all where there are no more.
    """
    counts = evaluation.counts
    chosen = _of_worst_pairs(evaluation, most)
    position = np.full(counts.num_classes, -1)
    position[chosen] = np.arange(len(chosen))
    cells = np.diag(counts.hits[chosen])
    row, column = position[counts.error_label], position[counts.error_prediction]
    shown = (row >= 0) & (column >= 0)
    cells[row[shown], column[shown]] = counts.error_count[shown]
    names = [evaluation.name(label) for label in chosen.tolist()]
    samples = counts.support[chosen].tolist()
    return Grid(names, cells.tolist(), samples, counts.num_classes - len(chosen))


def _of_worst_pairs(evaluation: Evaluation, most: int) -> Ints:
    size = evaluation.counts.num_classes
    if size <= most:
        return np.arange(size)
    chosen: set[int] = set()
    for pair in pairs(evaluation, most * most):  # of so many, not all lie within `most` classes
        if len(chosen | {pair.label, pair.predicted}) > most:
            break
        chosen |= {pair.label, pair.predicted}
    return np.array(sorted(chosen), np.int64)


def _page(made: Made, title: str, digits: int, most_pairs: int, *, with_iou: bool) -> str:
    evaluation, rows = made.evaluation, made.rows
    totals = evaluation.totals
    shown = {
        "Samples": f"{totals.n:,}",
        "Classes seen": f"{totals.classes_seen:,} of {totals.num_classes:,}",
    }
    measured = ((c, made.report.total(c)) for c in made.report.footer if c.kind != "pairs")
    shown |= {c.title: _written(c, v, digits) for c, v in measured if v is not None}
    left_out = len(rows) - PAGE_ROWS
    if left_out > 0:
        rows = rows.only(worst_of(evaluation, rows.labels, PAGE_ROWS))
    confusions = None
    if not evaluation.is_multilabel:
        confusions = Confusions(grid(evaluation), pairs(evaluation, most_pairs))
    left_out = max(left_out, 0)
    return page(title, shown, rows, confusions, digits=digits, left_out=left_out, with_iou=with_iou)


def _written(column: Column, value: object, digits: int) -> str:
    match value:
        case [low, high]:
            return f"{low:.{digits}f} to {high:.{digits}f}"
        case int():
            return f"{value:,}"
    return f"{value:.{digits}f}"

"""An evaluation as a document: the settled CSV, Markdown, LaTeX or a page, and its matrix."""

from collections.abc import Iterator, Sequence

import numpy as np

from pttool.core.eval import texts
from pttool.core.eval.evaluate import Evaluation, pairs, total_row
from pttool.core.eval.html import Grid, page
from pttool.core.eval.rows import ClassRow
from pttool.core.eval.types import Ints

GRID_CLASSES = 25
PAGE_PAIRS = 20


def document(
    kind: str,
    evaluation: Evaluation,
    rows: Sequence[ClassRow],
    *,
    title: str,
    digits: int = 3,
    header: bool = True,
    excel: bool = False,
) -> Iterator[str]:
    """Yield the text of a document; `kind` is csv, md, latex or html."""
    total = total_row(evaluation)
    match kind:
        case "csv":
            yield from texts.csv_text(rows, total, digits=digits, header=header, excel=excel)
        case "md":
            yield from texts.markdown(rows, total, digits=digits)
        case "latex":
            yield from texts.latex(rows, total, digits=digits)
        case _:
            yield _page(evaluation, rows, title, digits)


def grid(evaluation: Evaluation, most: int = GRID_CLASSES) -> Grid:
    """Return the confusion matrix of the `most` classes with the most errors, in label order."""
    counts = evaluation.counts
    errors = counts.support + counts.predicted - 2 * counts.hits
    worst = np.argsort(-errors, kind="stable")[:most]
    chosen: Ints = np.sort(worst).astype(np.int64)
    position = np.full(counts.num_classes, -1)
    position[chosen] = np.arange(len(chosen))
    cells = np.diag(counts.hits[chosen])
    row, column = position[counts.error_label], position[counts.error_prediction]
    shown = (row >= 0) & (column >= 0)
    cells[row[shown], column[shown]] = counts.error_count[shown]
    names = [evaluation.name(label) for label in chosen.tolist()]
    return Grid(names, cells.tolist(), counts.num_classes - len(chosen))


def _page(evaluation: Evaluation, rows: Sequence[ClassRow], title: str, digits: int) -> str:
    totals, scores = evaluation.totals, evaluation.scores
    shown = {
        "Samples": f"{totals.n:,}",
        "Classes seen": f"{totals.classes_seen:,} of {totals.num_classes:,}",
        "Accuracy": f"{totals.accuracy:.{digits}f}",
        "Balanced accuracy": f"{totals.balanced_accuracy:.{digits}f}",
        "Macro F1": f"{totals.macro.f1:.{digits}f}",
        "Weighted F1": f"{totals.weighted.f1:.{digits}f}",
        "Cohen's kappa": f"{totals.kappa:.{digits}f}",
        "MCC": f"{totals.mcc:.{digits}f}",
    }
    if scores is not None:
        shown |= {f"Top-{k} accuracy": f"{share:.{digits}f}" for k, share in scores.topk.items()}
        measured = {"Log-loss": scores.log_loss, "Calibration error": scores.ece}
        shown |= {k: f"{v:.{digits}f}" for k, v in measured.items() if v is not None}
    return page(title, shown, rows, pairs(evaluation, PAGE_PAIRS), grid(evaluation), digits=digits)

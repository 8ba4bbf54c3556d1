"""An evaluation as a document: the settled CSV, Markdown, LaTeX or a page, and its matrix."""

from collections.abc import Iterator, Sequence

import numpy as np

from pttool.core.eval import texts
from pttool.core.eval.evaluate import Evaluation, pairs, total_row
from pttool.core.eval.html import Confusions, Grid, page
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
    totals = evaluation.totals
    shown = {
        "Samples": f"{totals.n:,}",
        "Classes seen": f"{totals.classes_seen:,} of {totals.num_classes:,}",
    }
    measured = _measured(evaluation).items()
    shown |= {name: f"{value:.{digits}f}" for name, value in measured if value is not None}
    if evaluation.is_multilabel:
        return page(title, shown, rows, digits=digits)
    confusions = Confusions(grid(evaluation), pairs(evaluation, PAGE_PAIRS))
    return page(title, shown, rows, confusions, digits=digits)


def _measured(evaluation: Evaluation) -> dict[str, float | None]:
    """Return the totals of a page by title; None is what the task has not."""
    totals, scores = evaluation.totals, evaluation.scores
    measured = {
        "Subset accuracy" if evaluation.is_multilabel else "Accuracy": totals.accuracy,
        "Hamming loss": totals.hamming_loss,
        "Balanced accuracy": totals.balanced_accuracy,
        "Micro F1": totals.micro.f1 if evaluation.is_multilabel else None,
        "Macro F1": totals.macro.f1,
        "Weighted F1": totals.weighted.f1,
        "Cohen's kappa": totals.kappa,
        "MCC": totals.mcc,
    }
    if scores is not None:
        measured |= {f"Top-{k} accuracy": share for k, share in scores.topk.items()}
        measured |= {"Log-loss": scores.log_loss, "Calibration error": scores.ece}
        if scores.ranking is not None and evaluation.is_multilabel:
            measured |= {"Macro AUC": scores.ranking.macro_auc, "Macro AP": scores.ranking.macro_ap}
    return measured

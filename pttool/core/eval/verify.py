"""`--verify`: the same metrics by scikit-learn, which is imported only here."""

import numpy as np

from pttool.core.eval.evaluate import Evaluation
from pttool.core.eval.types import Predictions
from pttool.errors import UnavailableError


def largest_difference(evaluation: Evaluation, again: Predictions) -> tuple[str, float]:
    """Return the metric that differs most from scikit-learn's, and by how much.

    `again` are the same predictions, to be read a second time; all labels are held in memory.
    Raises UnavailableError where scikit-learn is missing.
    """
    try:
        from sklearn import metrics
    except ModuleNotFoundError as error:
        raise UnavailableError("--verify needs scikit-learn", "pip install scikit-learn") from error
    blocks = [(block.label, block.prediction) for block in again.blocks]
    label, prediction = (np.concatenate(arrays) for arrays in zip(*blocks, strict=True))
    classes = np.arange(evaluation.counts.num_classes)
    scores = metrics.precision_recall_fscore_support(
        label, prediction, labels=classes, zero_division=0.0
    )
    ours, totals = evaluation.classes, evaluation.totals
    differences = {
        name: float(np.abs(theirs - mine).max())
        for name, theirs, mine in zip(
            ("precision", "recall", "f1"),
            scores,
            (ours.precision, ours.recall, ours.f1),
            strict=False,
        )
    }
    theirs = {
        "accuracy": metrics.accuracy_score(label, prediction),
        "kappa": metrics.cohen_kappa_score(label, prediction),
        "mcc": metrics.matthews_corrcoef(label, prediction),
    }
    for name, value in theirs.items():
        if np.isfinite(value) and name not in totals.undefined:
            differences[name] = abs(float(value) - getattr(totals, name))
    name = max(differences, key=lambda metric: differences[metric])
    return name, differences[name]

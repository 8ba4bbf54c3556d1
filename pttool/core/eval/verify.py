"""`--verify`: the same metrics by scikit-learn, which is imported only here."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pttool.core.eval.evaluate import Evaluation
from pttool.core.eval.types import Predictions
from pttool.errors import UnavailableError

Differences = dict[str, float]


def largest_difference(evaluation: Evaluation, again: Predictions) -> tuple[str, float]:
    """Return the metric that differs most from scikit-learn's, and by how much.

    `again` are the same predictions, to be read a second time; all are held in memory.
    Raises UnavailableError where scikit-learn is missing.
    """
    try:
        import sklearn.metrics  # noqa: F401
    except ModuleNotFoundError as error:
        raise UnavailableError("--verify needs scikit-learn", "pip install scikit-learn") from error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's words on what is 0/0, and on sums near 1
        differences = _differences(evaluation, again)
    name = max(differences, key=lambda metric: differences[metric])
    return name, differences[name]


def _differences(evaluation: Evaluation, again: Predictions) -> Differences:
    blocks = list(again.blocks)
    label = np.concatenate([block.label for block in blocks])
    prediction = np.concatenate([block.prediction for block in blocks])
    scores = [block.scores for block in blocks if block.scores is not None]
    differences = _of_labels(evaluation, label, prediction)
    if scores:
        together = np.concatenate(scores)
        differences |= _of_ranking(evaluation, label, together)
        differences |= _of_probabilities(evaluation, label, together)
    return differences


def _of_labels(
    evaluation: Evaluation, label: NDArray[Any], prediction: NDArray[Any]
) -> Differences:
    from sklearn import metrics

    ours, totals = evaluation.classes, evaluation.totals
    classes = np.arange(evaluation.counts.num_classes)
    if label.shape[1:] == (1,):  # to scikit-learn a single column is one class per sample
        label, prediction, classes = label[:, 0], prediction[:, 0], np.array([1])
    theirs = metrics.precision_recall_fscore_support(
        label, prediction, labels=classes, zero_division=0.0
    )
    differences = {
        name: float(np.abs(their - getattr(ours, name)).max())
        for name, their in zip(("precision", "recall", "f1"), theirs, strict=False)
    }
    of_all = {"accuracy": metrics.accuracy_score}
    if evaluation.is_multilabel:
        of_all |= {"hamming_loss": metrics.hamming_loss}
    else:
        of_all |= {"kappa": metrics.cohen_kappa_score, "mcc": metrics.matthews_corrcoef}
    for name, metric in of_all.items():
        value = float(metric(label, prediction))
        if np.isfinite(value) and name not in totals.undefined:
            differences[name] = abs(value - getattr(totals, name))
    return differences


def _of_probabilities(
    evaluation: Evaluation, label: NDArray[Any], scores: NDArray[Any]
) -> Differences:
    """Compare what is of one class per sample, from the softmax in float64 where it takes one."""
    from sklearn import metrics

    ours = evaluation.scores
    if ours is None or evaluation.is_multilabel or scores.shape[1] < 2:
        return {}
    if ours.kind == "logits":
        scores = np.exp(scores - scores.max(1, keepdims=True).astype(np.float64))
        scores /= scores.sum(1, keepdims=True)
    elif scores.dtype == np.float16:  # which loses what its sum shows
        return {}
    differences: Differences = {}
    every = np.arange(scores.shape[1])
    if ours.log_loss is not None:
        theirs = float(metrics.log_loss(label, scores, labels=every))
        differences["log_loss"] = abs(theirs - ours.log_loss)
    if ours.brier is not None:
        own = label[:, None] == every
        theirs = float(((own - scores.astype(np.float64)) ** 2).sum(1).mean())
        differences["brier"] = abs(theirs - ours.brier)
    return differences


def _of_ranking(evaluation: Evaluation, label: NDArray[Any], scores: NDArray[Any]) -> Differences:
    from sklearn import metrics

    differences: Differences = {}
    ranking = None if evaluation.scores is None else evaluation.scores.ranking
    for name, metric in (
        ("auc", metrics.roc_auc_score),
        ("ap", metrics.average_precision_score),
    ):
        for number, value in enumerate([] if ranking is None else getattr(ranking, name)):
            if value is not None:
                own = label[:, number] if evaluation.is_multilabel else label == number
                difference = abs(float(metric(own, scores[:, number])) - value)
                differences[name] = max(differences.get(name, 0.0), difference)
    return differences

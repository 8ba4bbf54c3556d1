"""The core of `eval report` against scikit-learn: time, peak memory, and that the numbers agree.

Each tool runs in a process of its own, on files of random predictions written before. Time is wall
time from the file to the numbers, after the imports; peak is that of the whole process.
scikit-learn is asked for what a per-class report needs: the confusion matrix, precision, recall and
F1 per class and in total; of scores, top-k, log-loss, Brier, and AUC and average precision of each
class. Run as `python -m benchmarks.eval`, with `--large` for scores of 4 GB (and 4 GB in $TMPDIR).
"""

import json
import multiprocessing
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

HEAD = """
import json, resource, sys, time
import numpy as np
folder, n, classes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
"""
TAIL = """
spent = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({"s": spent, "peak": peak, "value": value}))
"""
OURS_LABELS = """
from pttool.core.eval.counts import ConfusionCounter
from pttool.core.eval.metrics import confused, totals
start = time.perf_counter()
counter = ConfusionCounter(classes)
with open(folder + "/label", "rb") as label, open(folder + "/prediction", "rb") as prediction:
    while len(block := np.fromfile(label, np.int64, 1 << 17)):
        counter.add(block, np.fromfile(prediction, np.int64, 1 << 17))
counts = counter.counts()
value = totals(counts).macro.f1
lines = sum(map(len, confused(counts).each()))
"""
THEIR_LABELS = """
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support
start = time.perf_counter()
label = np.fromfile(folder + "/label", np.int64)
prediction = np.fromfile(folder + "/prediction", np.int64)
every = np.arange(classes)
options = {"labels": every, "zero_division": 0}
matrix = confusion_matrix(label, prediction, labels=every)
per_class = precision_recall_fscore_support(label, prediction, **options)
micro = precision_recall_fscore_support(label, prediction, average="micro", **options)
value = float(per_class[2].mean())
largest = [row.argsort()[::-1][:6] for row in matrix]
"""
OURS_SCORES = """
from pttool.core.eval.score_metrics import ScoreCounter
start = time.perf_counter()
counter = ScoreCounter(classes, "logits")
with open(folder + "/label", "rb") as label, open(folder + "/scores", "rb") as scores:
    while len(block := np.fromfile(label, np.int64, 1024)):
        part = np.fromfile(scores, np.float32, 1024 * classes).reshape(-1, classes)
        counter.add(block, part)
value = counter.result().ranking.macro_auc
"""
THEIR_SCORES = """
from sklearn import metrics
start = time.perf_counter()
label = np.fromfile(folder + "/label", np.int64)
scores = np.fromfile(folder + "/scores", np.float32).reshape(n, classes)
every = np.arange(classes)
top = [metrics.top_k_accuracy_score(label, scores, k=k, labels=every) for k in (1, 5)]
powers = np.exp(scores.astype(np.float64) - scores.max(1, keepdims=True))
powers /= powers.sum(1, keepdims=True)
losses = [metrics.log_loss(label, powers, labels=every),
          metrics.brier_score_loss(label, powers, labels=every)]
areas = [metrics.roc_auc_score(label == c, scores[:, c]) for c in every]
precisions = [metrics.average_precision_score(label == c, scores[:, c]) for c in every]
value = float(np.mean(areas))
"""
RESAMPLES = """
from pttool.core.eval.counts import from_arrays
from pttool.core.eval.intervals import bootstrap
counts = from_arrays(np.fromfile(folder + "/label", np.int64),
                     np.fromfile(folder + "/prediction", np.int64), classes)
start = time.perf_counter()
value = bootstrap(counts, resamples=1000)["macro_f1"][0]
"""
ROWS_RESAMPLED = """
from pttool.core.eval.counts import from_arrays
from pttool.core.eval.metrics import totals
label = np.fromfile(folder + "/label", np.int64)
prediction = np.fromfile(folder + "/prediction", np.int64)
start = time.perf_counter()
rows = np.random.default_rng(0).integers(0, n, n)
value = totals(from_arrays(label[rows], prediction[rows], classes)).macro.f1
"""
BLOCK = 1 << 14


def main() -> None:
    """Print one row per input and tool."""
    print(f"{'input':<28}{'tool':<14}{'s':>9}{'ratio':>9}{'MB':>8}  value")
    for n, classes in ((10**7, 1000), (10**6, 21_841), (10**6, 10)):
        with tempfile.TemporaryDirectory() as folder:
            _apart(write_labels, folder, n, classes)
            _compare(f"{n:,} x {classes:,}", OURS_LABELS, THEIR_LABELS, folder, n, classes)
            if n == 10**7:
                _bootstrap(folder, n, classes)
    with tempfile.TemporaryDirectory() as folder:
        _apart(write_labels, folder, 10**6, 10**6)
        _print("1,000,000 x 1,000,000", "pttool", run(OURS_LABELS, folder, 10**6, 10**6), None)
    with tempfile.TemporaryDirectory() as folder:
        _apart(write_scores, folder, 50_000, 1000)
        _compare("50,000 x 1,000 logits", OURS_SCORES, THEIR_SCORES, folder, 50_000, 1000)
    if "--large" in sys.argv:
        with tempfile.TemporaryDirectory() as folder:
            _apart(write_scores, folder, 10**6, 1000)
            result = run(OURS_SCORES, folder, 10**6, 1000)
            _print("1,000,000 x 1,000 logits", "pttool", result, None)


def run(script: str, folder: str, n: int, classes: int) -> dict[str, float]:
    """Run a script in its own process and return what it printed."""
    command = [sys.executable, "-c", HEAD + script + TAIL, folder, str(n), str(classes)]
    done = subprocess.run(command, capture_output=True, check=True, encoding="utf-8")
    result: dict[str, float] = json.loads(done.stdout)
    return result


def write_labels(folder: Path, n: int, classes: int) -> None:
    """Write labels and predictions, 70 % right, the rest anywhere."""
    generator = np.random.default_rng(n + classes)
    label = generator.integers(0, classes, n)
    wrong = generator.integers(0, classes, n)
    label.tofile(folder / "label")
    np.where(generator.random(n) < 0.7, label, wrong).tofile(folder / "prediction")


def write_scores(folder: Path, n: int, classes: int) -> None:
    """Write labels and float32 logits, the label's own somewhat higher."""
    generator = np.random.default_rng(n + classes)
    label = generator.integers(0, classes, n)
    label.tofile(folder / "label")
    with (folder / "scores").open("wb") as file:
        for start in range(0, n, BLOCK):
            part = label[start : start + BLOCK]
            scores = generator.standard_normal((len(part), classes), np.float32)
            scores[np.arange(len(part)), part] += 3
            scores.tofile(file)


def _apart(write: Callable[[Path, int, int], None], folder: str, n: int, classes: int) -> None:
    """Write in another process: Linux counts what this one ever held as its children's peak."""
    writer = multiprocessing.get_context("spawn").Process(
        target=write, args=(Path(folder), n, classes)
    )
    writer.start()
    writer.join()


def _compare(title: str, ours: str, theirs: str, folder: str, n: int, classes: int) -> None:
    found, reference = run(ours, folder, n, classes), run(theirs, folder, n, classes)
    _print(title, "pttool", found, reference["s"] / found["s"])
    _print(title, "scikit-learn", reference, 1.0)


def _bootstrap(folder: str, n: int, classes: int) -> None:
    """Compare 1000 resamples of the counts with one of the rows, 1000 times."""
    found, one = run(RESAMPLES, folder, n, classes), run(ROWS_RESAMPLED, folder, n, classes)
    title = "1000 resamples of these"
    _print(title, "pttool", found, 1000 * one["s"] / found["s"])
    _print(title, "rows (x 1000)", one | {"s": 1000 * one["s"]}, 1.0)


def _print(title: str, tool: str, result: dict[str, float], ratio: float | None) -> None:
    print(
        f"{title:<28}{tool:<14}{result['s']:>9.2f}{'-' if ratio is None else f'{ratio:.1f}x':>9}"
        f"{result['peak'] / 1e6:>8.0f}  {result['value']:.12f}",
        flush=True,
    )


if __name__ == "__main__":
    main()

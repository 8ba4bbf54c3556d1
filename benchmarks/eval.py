"""`eval report` and its core against scikit-learn: time, memory, and that the numbers agree.

Each tool runs in a process of its own, on files of random predictions written before. The core's
and scikit-learn's time (s) is wall time from the file to the numbers, after the imports; that of
`pttool eval` is the program's from its start to the last byte of its CSV (of scores: its JSON). The
first ratio is to scikit-learn's calls alone, the second of whole processes, whose wall and CPU time
and peak memory stand beside it.

scikit-learn is asked for what a per-class report needs: the confusion matrix, precision, recall and
F1 per class and in total; of scores, top-k, log-loss, Brier, and AUC and average precision of each
class. Run as `python -m benchmarks.eval`, with `--large` for scores of 4 GB (and 9 GB in $TMPDIR).
"""

import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
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
usage = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"s": spent, "cpu_s": usage.ru_utime + usage.ru_stime,
                  "peak": usage.ru_maxrss * 1024, "value": value}))
"""
OURS_LABELS = """
from pttool.core.eval.measuring.counts import ConfusionCounter
from pttool.core.eval.measuring.metrics import confused, totals
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
from pttool.core.eval.measuring.score_metrics import ScoreCounter
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
from pttool.core.eval.measuring.counts import from_arrays
from pttool.core.eval.trust.intervals import bootstrap
counts = from_arrays(np.fromfile(folder + "/label", np.int64),
                     np.fromfile(folder + "/prediction", np.int64), classes)
start = time.perf_counter()
value = bootstrap(counts, resamples=1000)["macro_f1"][0]
"""
ROWS_RESAMPLED = """
from pttool.core.eval.measuring.counts import from_arrays
from pttool.core.eval.measuring.metrics import totals
label = np.fromfile(folder + "/label", np.int64)
prediction = np.fromfile(folder + "/prediction", np.int64)
start = time.perf_counter()
rows = np.random.default_rng(0).integers(0, n, n)
value = totals(from_arrays(label[rows], prediction[rows], classes)).macro.f1
"""
OURS_SETS = """
from pttool.core.eval.measuring.multilabel import SetCounter, SetRanking, set_totals
start = time.perf_counter()
counter, ranking = SetCounter(classes), SetRanking(classes)
with open(folder + "/label", "rb") as label, open(folder + "/scores", "rb") as scores:
    while len(block := np.fromfile(label, np.bool_, 8192 * classes)):
        part = np.fromfile(scores, np.float32, 8192 * classes).reshape(-1, classes)
        counter.add(block.reshape(-1, classes), part >= 0)
        ranking.add(block.reshape(-1, classes), part)
totals = set_totals(counter.counts(), counter.samples)
value = ranking.result()[0].macro_auc
"""
THEIR_SETS = """
from sklearn import metrics
start = time.perf_counter()
label = np.fromfile(folder + "/label", np.bool_).reshape(n, classes)
scores = np.fromfile(folder + "/scores", np.float32).reshape(n, classes)
prediction = scores >= 0
for average in (None, "micro", "macro", "weighted", "samples"):
    metrics.precision_recall_fscore_support(label, prediction, average=average, zero_division=0)
losses = metrics.hamming_loss(label, prediction), metrics.accuracy_score(label, prediction)
areas = [metrics.roc_auc_score(label[:, c], scores[:, c]) for c in range(classes)]
precisions = [metrics.average_precision_score(label[:, c], scores[:, c]) for c in range(classes)]
value = float(np.mean(areas))
"""
BLOCK = 1 << 14
PTTOOL = str(Path(sys.executable).with_name("pttool"))
DTYPES = {"label": np.int64, "prediction": np.int64, "scores": np.float32}
Result = dict[str, float]


def main() -> None:
    """Print one row per input and tool."""
    print(
        f"{'input':<26}{'tool':<14}{'s':>8}{'ratio':>9}{'whole s':>9}{'ratio':>9}{'CPU s':>8}"
        f"{'MB':>7}  value"
    )
    for n, classes in ((10**7, 1000), (10**6, 21_841), (10**6, 10)):
        labels(n, classes)
    labels(10**6, 10**6, theirs=None)
    scores(50_000, 1000)
    sets(100_000, 100)
    if "--large" in sys.argv:
        scores(10**6, 1000, theirs=None)


def labels(n: int, classes: int, theirs: str | None = THEIR_LABELS) -> None:
    """Compare on one class per sample; of many classes, the bootstrap too."""
    with tempfile.TemporaryDirectory() as folder:
        _apart(write_labels, folder, n, classes)
        title = f"{n:,} x {classes:,}"
        reference = _compare(title, OURS_LABELS, theirs, folder, n, classes)
        if classes > 10:
            _bootstrap(folder, n, classes)
        _apart(pack, folder, n, classes)
        size = ("--num-classes", str(classes))
        _program(title, folder, reference, *size, "--csv")
        if classes >= 10**6:
            _program(f"{title} table", folder, reference, *size)
            _program(f"{title} html", folder, reference, *size, "--html")
            matrix = str(Path(folder) / "matrix.npz")
            _program(f"{title} matrix", folder, reference, *size, "--csv", "--matrix", matrix)


def scores(n: int, classes: int, theirs: str | None = THEIR_SCORES) -> None:
    """Compare on logits of one class per sample."""
    with tempfile.TemporaryDirectory() as folder:
        _apart(write_scores, folder, n, classes)
        title = f"{n:,} x {classes:,} logits"
        reference = _compare(title, OURS_SCORES, theirs, folder, n, classes)
        _apart(pack, folder, n, classes)
        _program(title, folder, reference, "--json")


def sets(n: int, classes: int) -> None:
    """Compare on logits of several labels per sample."""
    with tempfile.TemporaryDirectory() as folder:
        _apart(write_sets, folder, n, classes)
        title = f"{n:,} x {classes:,} multilabel"
        reference = _compare(title, OURS_SETS, THEIR_SETS, folder, n, classes)
        _apart(pack, folder, n, classes)
        _program(title, folder, reference, "--task", "multilabel", "--json")


def run(script: str, folder: str, n: int, classes: int) -> Result:
    """Run a script in its own process and return what it printed, with the whole wall time."""
    command = [sys.executable, "-c", HEAD + script + TAIL, folder, str(n), str(classes)]
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, check=True, encoding="utf-8")
    result: Result = json.loads(done.stdout)
    return result | {"whole_s": time.perf_counter() - start}


def program(*args: str) -> Result:
    """Run `pttool eval report` and return what the whole process took."""
    command = [PTTOOL, "eval", "report", *args]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    spent = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}")
    cpu = usage.ru_utime + usage.ru_stime
    return {"s": spent, "whole_s": spent, "cpu_s": cpu, "peak": usage.ru_maxrss * 1024}


def pack(folder: Path, n: int, classes: int) -> None:
    """Move the raw arrays into one stored .npz, block by block."""
    with zipfile.ZipFile(folder / "preds.npz", "w") as archive:
        for raw in sorted(folder.iterdir()):
            if raw.name not in DTYPES:
                continue
            dtype = np.dtype(DTYPES[raw.name])
            is_wide = raw.stat().st_size != n * dtype.itemsize
            if raw.name == "label" and is_wide:
                dtype = np.dtype(np.bool_)
            header = {
                "descr": np.lib.format.dtype_to_descr(dtype),
                "fortran_order": False,
                "shape": (n, classes) if is_wide else (n,),
            }
            name = "logits" if raw.name == "scores" else raw.name
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array_header_1_0(member, header)
                with raw.open("rb") as stream:
                    shutil.copyfileobj(stream, member, 1 << 20)
            raw.unlink()


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


def write_sets(folder: Path, n: int, classes: int) -> None:
    """Write about 5 % of all labels, and float32 logits that are somewhat higher for them."""
    generator = np.random.default_rng(n + classes)
    with (folder / "label").open("wb") as label, (folder / "scores").open("wb") as scores:
        for start in range(0, n, BLOCK):
            own = generator.random((min(BLOCK, n - start), classes), np.float32) < 0.05
            own.tofile(label)
            noise = generator.standard_normal(own.shape, np.float32)
            (noise - 2 + own * np.float32(3)).tofile(scores)


def _apart(write: Callable[[Path, int, int], None], folder: str, n: int, classes: int) -> None:
    """Write in another process: Linux counts what this one ever held as its children's peak."""
    writer = multiprocessing.get_context("spawn").Process(
        target=write, args=(Path(folder), n, classes)
    )
    writer.start()
    writer.join()


def _compare(
    title: str, ours: str, theirs: str | None, folder: str, n: int, classes: int
) -> Result | None:
    """Print the core's row and scikit-learn's, and return the latter."""
    found = run(ours, folder, n, classes)
    if theirs is None:
        _print(title, "core", found, None)
        return None
    reference = run(theirs, folder, n, classes)
    _print(title, "core", found, reference)
    _print(title, "scikit-learn", reference, reference)
    return reference


def _program(title: str, folder: str, reference: Result | None, *args: str) -> None:
    """Print the program's row, on the .npz in the folder."""
    _print(title, "pttool eval", program(str(Path(folder) / "preds.npz"), *args), reference)


def _bootstrap(folder: str, n: int, classes: int) -> None:
    """Compare 1000 resamples of the counts with one of the rows, 1000 times."""
    found, one = run(RESAMPLES, folder, n, classes), run(ROWS_RESAMPLED, folder, n, classes)
    title = "1000 resamples of these"
    thousand = one | {"s": 1000 * one["s"], "whole_s": one["whole_s"] + 999 * one["s"]}
    _print(title, "core", found, thousand)
    _print(title, "rows (x 1000)", thousand, thousand)


def _print(title: str, tool: str, result: Result, reference: Result | None) -> None:
    s, whole = (
        "-" if reference is None else f"{reference[time] / result[time]:.1f}x"
        for time in ("s", "whole_s")
    )
    value = f"{result['value']:.12f}" if "value" in result else "-"
    print(
        f"{title:<26}{tool:<14}{result['s']:>8.2f}{s:>9}{result['whole_s']:>9.2f}{whole:>9}"
        f"{result['cpu_s']:>8.2f}{result['peak'] / 1e6:>7.0f}  {value}",
        flush=True,
    )


if __name__ == "__main__":
    main()

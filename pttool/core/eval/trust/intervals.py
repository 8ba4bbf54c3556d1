"""How far the numbers can be trusted: Wilson and bootstrap intervals, McNemar's exact test."""

import math
from collections.abc import Collection
from statistics import NormalDist

import numpy as np

from pttool.core.eval.measuring.metrics import Macro
from pttool.core.eval.trust.resample import resample, resamples_of
from pttool.core.eval.types import Counts, Flags, Floats

Interval = tuple[float, float]
RESAMPLES = 1000
CELLS = 1 << 14  # resamples x classes worked on at a time: what a cache holds
EXACT_PAIRS = 4096  # discordant pairs up to which McNemar's p is a quotient of whole numbers


def wilson(hits: int, n: int, confidence: float = 0.95) -> Interval:
    """Return the score interval of a proportion (Wilson, JASA 1927), without continuity correction.

    Without samples it is (0, 1).
    """
    if n == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share, square = hits / n, z * z
    centre = share + square / (2 * n)
    half = z * math.sqrt(share * (1 - share) / n + square / (4 * n * n))
    low, high = (centre - half) / (1 + square / n), (centre + half) / (1 + square / n)
    # At the ends the interval touches 0 and 1, not what rounding makes of them.
    return 0.0 if hits == 0 else low, 1.0 if hits == n else high


def bootstrap(
    counts: Counts,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    confidence: float = 0.95,
    macro: Macro = "seen",
    ignored: Collection[int] = (),
) -> dict[str, Interval]:
    """Return percentile intervals (Efron 1979) from resampled counts.

    Keys: accuracy, balanced_accuracy, kappa, mcc, macro_precision, macro_recall, macro_f1,
    weighted_precision, weighted_f1. Drawing cells with their shares is drawing samples with
    replacement; see `resample` for the approximations, of very large tables, and
    `resamples_of` for when fewer are drawn. As in
    `totals`, 0/0 is 0.0 and each resample's macro average is over what it has seen.
    """
    if counts.n == 0:
        return {}
    chosen = np.ones(counts.num_classes, np.bool_)
    chosen[[c for c in ignored if 0 <= c < counts.num_classes]] = False
    # A class without samples never gets any: it only counts in a macro average over all classes.
    present = np.flatnonzero(counts.support + counts.predicted)
    divisor = int(chosen.sum()) if macro == "all" else None
    sums = []
    generator = np.random.default_rng(seed)
    present = present[np.argsort(counts.hits[present], kind="stable")]  # as they are drawn
    for margins in resample(
        counts, present, resamples_of(counts, len(present), resamples), generator
    ):
        sums.append(_sums(margins, chosen[present]))
    drawn = _metrics(np.concatenate(sums, axis=1), divisor)
    return {name: _percentiles(values, confidence) for name, values in drawn.items()}


def resamples_drawn(counts: Counts, wanted: int = RESAMPLES) -> int:
    """Return how many resamples `bootstrap` draws of these counts."""
    return resamples_of(counts, int(np.count_nonzero(counts.support + counts.predicted)), wanted)


def paired_bootstrap(
    only_a: int,
    only_b: int,
    n: int,
    *,
    resamples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Interval:
    """Return the percentile interval of accuracy B - accuracy A on the same n samples.

    `only_a` samples are right in A alone, `only_b` in B alone: pairs are drawn, so what both get
    right or wrong takes part and changes nothing. Without samples it is (0, 0).
    """
    if n == 0:
        return 0.0, 0.0
    shares = np.array([only_a, only_b, n - only_a - only_b]) / n
    drawn = np.random.default_rng(seed).multinomial(n, shares, resamples)
    return _percentiles((drawn[:, 1] - drawn[:, 0]) / n, confidence)


def mcnemar(b: int, c: int) -> float:
    """Return McNemar's exact two-sided p: b and c samples are right in one model alone.

    Twice the smaller tail of Binomial(b + c, 1/2), at most 1 (McNemar 1947; as statsmodels'
    `mcnemar(exact=True)`). b=10, c=2 gives .03857421875.
    """
    k, n = min(b, c), b + c
    if 2 * k == n:
        return 1.0
    if n <= EXACT_PAIRS:
        term = tail = 1
        for i in range(1, k + 1):
            term = term * (n - i + 1) // i
            tail += term
        return min(1.0, 2 * tail / (1 << n))
    return min(1.0, 2 * math.exp(_log_half_binomial(k, n)) * _tail_ratio(k, n))


def _log_half_binomial(k: int, n: int) -> float:
    """Return log(C(n, k) / 2^n), for k < n / 2, to about 1e-10 for any n.

    By Stirling's errors and deviance (Loader, "Fast and Accurate Computation of Binomial
    Probabilities", 2000): differences of lgamma would lose 10 digits at n = 1e9.
    """
    if k == 0:
        return -n * math.log(2)
    skew = (n - 2 * k) / n
    deviance = n / 2 * (math.log1p(-skew * skew) + 2 * skew * math.atanh(skew))
    errors = _stirling_error(n) - _stirling_error(k) - _stirling_error(n - k)
    return errors - deviance + 0.5 * math.log(n / (2 * math.pi * k * (n - k)))


def _stirling_error(n: int) -> float:
    """Return log(n!) - log(sqrt(2 pi n) (n / e)^n)."""
    if n < 16:
        return math.lgamma(n + 1) - (n + 0.5) * math.log(n) + n - 0.5 * math.log(2 * math.pi)
    square = n * n
    return (1 / 12 - (1 / 360 - (1 / 1260 - 1 / (1680 * square)) / square) / square) / n


def _tail_ratio(k: int, n: int) -> float:
    """Return the sum of C(n, i) / C(n, k) over i <= k: terms fall fast, so it is soon over."""
    total = term = 1.0
    while k > 0 and term > total * 1e-17:
        term *= k / (n - k + 1)
        total += term
        k -= 1
    return total


def _sums(margins: tuple[Floats, Floats, Floats], chosen: Flags) -> Floats:
    """Return what the metrics need of hits, support and predicted (resamples, classes).

    They are sums over classes, taken block by block: (13, resamples). See `_metrics`.
    """
    resamples, classes = margins[0].shape
    found = np.zeros((13, resamples))
    weight = chosen.astype(np.float64)
    rows, columns = max(1, CELLS // classes), min(CELLS, classes)
    for row in range(0, resamples, rows):
        for column in range(0, classes, columns):
            part = slice(row, row + rows), slice(column, column + columns)
            hits, support, predicted = (margin[part] for margin in margins)
            found[:, part[0]] += _sums_of(hits, support, predicted, weight[part[1]])
    return found


def _sums_of(hits: Floats, support: Floats, predicted: Floats, weight: Floats) -> list[Floats]:
    both = support + predicted
    # Whole numbers, and no hits where there are none: 0 / 1 stands for 0 / 0.
    precision, recall = hits / np.maximum(predicted, 1.0), hits / np.maximum(support, 1.0)
    f1 = 2 * hits / np.maximum(both, 1.0)
    seen = np.minimum(both, 1.0)
    return [
        support.sum(1), hits.sum(1),
        _dot(support, predicted), _dot(support, support), _dot(predicted, predicted),
        recall.sum(1), np.minimum(support, 1.0).sum(1),
        *(_weighed(values, weight) for values in (seen, precision, recall, f1)),
        _dot(precision, support), _dot(f1, support),
    ]  # fmt: skip


def _metrics(sums: Floats, divisor: int | None) -> dict[str, Floats]:
    """Return each metric of resampled tables."""
    (
        n, correct, chance, labels, predictions, recalls, with_support,
        seen, precision, recall, f1, by_precision, by_f1,
    ) = sums  # fmt: skip
    averaged = seen if divisor is None else np.full(len(n), float(divisor))
    square = n * n
    spread = (square - labels) * (square - predictions)
    return {
        "accuracy": _ratio(correct, n),
        "balanced_accuracy": _ratio(recalls, with_support),
        "kappa": _ratio(n * correct - chance, square - chance),
        "mcc": _ratio(n * correct - chance, np.sqrt(np.maximum(spread, 0.0))),
        "macro_precision": _ratio(precision, averaged),
        "macro_recall": _ratio(recall, averaged),
        "macro_f1": _ratio(f1, averaged),
        "weighted_precision": _ratio(by_precision, n),
        "weighted_f1": _ratio(by_f1, n),
    }


def _weighed(values: Floats, weight: Floats) -> Floats:
    # Not @: its threads cost more than such a small product.
    sums: Floats = np.einsum("ij,j->i", values, weight)
    return sums


def _dot(a: Floats, b: Floats) -> Floats:
    products: Floats = np.einsum("ij,ij->i", a, b)
    return products


def _ratio(part: Floats, whole: Floats) -> Floats:
    quotient = np.zeros(part.shape)
    np.divide(part, whole, out=quotient, where=whole != 0)
    return quotient


def _percentiles(values: Floats, confidence: float) -> Interval:
    low, high = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)

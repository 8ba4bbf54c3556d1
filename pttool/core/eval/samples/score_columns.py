"""Scores (N, C): what may hold them, their argmax, and whether they are probabilities."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pttool.core.eval.reading.tables import Column
from pttool.core.eval.types import Ints
from pttool.errors import InputError

# Probabilities in half precision, or written with few digits, sum to 1 only this nearly.
SUM_TOLERANCE = 1e-2


def as_scores(column: Column, what: str) -> NDArray[Any]:
    """Return (N, C) floats as they were stored; integers and bool as float64."""
    if isinstance(column, list):
        raise InputError(f"{what}: is text, not scores", "scores are (samples, classes) floats")
    if column.ndim != 2 or not column.shape[1]:
        message = f"{what}: has shape {column.shape}, not (samples, classes)"
        raise InputError(message, "save a column per class")
    return column if column.dtype.kind == "f" else column.astype(np.float64)


def argmax(scores: NDArray[Any]) -> Ints:
    """Return the class with the largest score, ties to the lower. Of NaN it is not defined."""
    if scores.dtype == np.float16:  # numpy compares these one by one
        scores = scores.astype(np.float32)
    return np.asarray(scores.argmax(axis=1), np.int64)


def are_finite(scores: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which rows are without NaN and infinity."""
    return np.asarray(np.isfinite(scores).all(axis=1))


def are_in_unit_interval(scores: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which rows lie in 0..1. The scores are finite."""
    return np.asarray((scores.min(axis=1) >= 0) & (scores.max(axis=1) <= 1))


def are_probabilities(scores: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which rows lie in 0..1 and sum to 1. The scores are finite."""
    wide = np.float64 if scores.dtype == np.float64 else np.float32
    inside = are_in_unit_interval(scores)
    if not inside.any():
        return inside
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(inside & (np.abs(scores.sum(axis=1, dtype=wide) - 1) <= SUM_TOLERANCE))

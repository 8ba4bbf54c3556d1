"""Which of a table's columns hold the labels, the predictions, the scores and the index."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pttool.core.eval.reading.tables import Shape, Table
from pttool.errors import InputError, UsageError

# The names that training code and libraries save under.
PAIRS = (
    ("label", "prediction"), ("labels", "predictions"), ("y_true", "y_pred"),
    ("target", "pred"), ("targets", "preds"), ("targets", "pred"), ("target", "preds"),
    ("labels", "preds"), ("references", "predictions"),
)  # fmt: skip
TRUE_KEYS = tuple(dict.fromkeys(true for true, _ in PAIRS))
PRED_KEYS = tuple(dict.fromkeys(pred for _, pred in PAIRS))
SCORES_KEYS = ("logits", "scores", "probs", "probabilities", "outputs")
INDEX_KEYS = ("index", "idx", "sample_id")


@dataclass(frozen=True, slots=True)
class Keys:
    """The columns to read. Without a prediction it comes from the scores.

    `beside` is a prediction saved beside scores, which is only compared with theirs.
    `are_sets`: labels and predictions have a column per class, of 0 and 1.
    """

    true: str
    pred: str | None
    scores: str | None
    index: str | None
    are_sets: bool = False
    beside: str | None = None

    def wanted(self) -> tuple[str, ...]:
        """Return the keys, each once."""
        keys = (self.true, self.pred, self.scores, self.index, self.beside)
        return tuple(dict.fromkeys(key for key in keys if key is not None))


def choose_keys(table: Table, true: str | None, pred: str | None, scores: str | None) -> Keys:
    """Return the columns that were named, and for those that weren't, the usual names.

    Scores that aren't named are used where they are (N, C) and no prediction is named: a
    prediction beside them is only compared. Raises UsageError for two possible choices, InputError
    for a missing column, and both for shapes that don't go together.
    """
    if pred is not None and scores is not None:
        hint = "the prediction is the scores' largest: give one of the two"
        raise UsageError("both --pred and --scores are given", hint)
    _check_named(table, true, pred, scores)
    if scores is None and pred is None:
        scores = _only(table, "--scores", _score_candidates(table))
    if scores is not None:
        true = true or _only(table, "--true", _true_candidates(table))
        pred = None
    else:
        true, pred = _pair(table, true, pred)
    return _complete(table, true, pred, scores)


def choose_set_keys(
    table: Table, true: str | None, pred: str | None, scores: str | None, *, by_threshold: bool
) -> Keys:
    """Return the columns of several labels per sample, as `choose_keys` does for one.

    A prediction beside scores is read too, unless only the scores are named, or the prediction is
    to come from them (`by_threshold`).
    """
    _check_named(table, true, pred, scores)
    if scores is None or pred is not None:
        scores = scores or _only(table, "--scores", _score_candidates(table))
        if not by_threshold:
            true, pred = _pair(table, true, pred)
        elif scores is None:
            message = f"{table.name}: has no scores by a usual name among {_listed(table.keys)}"
            raise InputError(message, "--threshold needs scores: --scores KEY")
    true = true or _only(table, "--true", _true_candidates(table))
    return _complete(table, true, pred, scores, are_sets=True)


def _check_named(table: Table, *keys: str | None) -> None:
    for key in keys:
        if key is not None and key not in table.keys:
            raise InputError(f"{table.name}: has no {key!r}", f"it has {_listed(table.keys)}")


def _complete(
    table: Table, true: str | None, pred: str | None, scores: str | None, *, are_sets: bool = False
) -> Keys:
    if true is None or (pred is None and scores is None):
        raise _missing(table, true, pred or scores)
    others = [key for key in table.keys if key not in (true, pred, scores)]
    index = next((key for key in INDEX_KEYS if key in others), None)
    keys = Keys(true, pred, scores, index, are_sets)
    check_shapes(table.name, table.shapes, keys)
    return keys if pred is not None else replace(keys, beside=_beside(table, keys))


def _beside(table: Table, keys: Keys) -> str | None:
    """Return the prediction saved beside scores, if there is one that can be compared."""
    usual = [pred for true, pred in PAIRS if true == keys.true and pred in table.keys]
    for pred in (*usual, *(key for key in PRED_KEYS if key in table.keys)):
        is_wide = pred in table.wide and (keys.are_sets or pred not in table.shapes)
        if pred == keys.true or is_wide != keys.are_sets:
            continue
        with contextlib.suppress(InputError, UsageError):
            check_shapes(table.name, table.shapes, replace(keys, pred=pred))
            next(table.read((pred,), 1), None)
            return pred
    return None


def check_shapes(name: str, shapes: Mapping[str, Shape], keys: Keys) -> None:
    """Raise for columns that are no (N,), scores that are no (N, C), or different N.

    Of label sets, labels and predictions must be (N, C) like the scores. `shapes` may lack columns
    whose shape isn't known yet.
    """
    if keys.are_sets:
        _check_sets(name, shapes, keys)
    for key in (keys.index,) if keys.are_sets else (keys.true, keys.pred, keys.index):
        if key is not None and key in shapes:
            _check_flat(name, key, shapes, keys)
    scores = shapes.get(keys.scores or "")
    if scores is not None and len(scores) != 2:
        _refuse_scores(name, keys, scores)
    lengths = [(key, shapes[key]) for key in keys.wanted() if key in shapes]
    for key, shape in lengths[1:]:
        if shape[0] != lengths[0][1][0]:
            first, other = lengths[0]
            raise InputError(
                f"{name}: {first} has shape {other}, {key} has {shape}",
                "they need one entry per sample each",
            )


def _check_flat(name: str, key: str, shapes: Mapping[str, Shape], keys: Keys) -> None:
    shape = shapes[key]
    if len(shape) == 1 or (len(shape) == 2 and shape[1] == 1):
        return
    if not shape:
        raise InputError(f"{name}: {key} is one number, not an array", "save one per sample")
    if key == keys.pred and len(shape) == 2 and len(shapes.get(keys.true, ())) == 1:
        message = f"{name}: {key} has shape {shape}, where one class per sample is expected"
        raise InputError(message, f"if these are scores of {shape[1]} classes: --scores {key}")
    raise UsageError(
        f"{name}: {key} has shape {shape}: one class per sample, several, or pixels?",
        "0 or 1 per class: --task multilabel; maps of classes: --task pixels",
    )


def _check_sets(name: str, shapes: Mapping[str, Shape], keys: Keys) -> None:
    wide = (keys.true, keys.pred, keys.scores)
    known = [(key, shapes[key]) for key in wide if key is not None and key in shapes]
    for key, shape in known:
        if len(shape) != 2 or not shape[1]:
            raise InputError(
                f"{name}: {key} has shape {shape}, where multilabel needs (samples, classes)",
                "save 0 or 1 per class and sample; with one class per sample leave out --task",
            )
        first, other = known[0]
        if shape != other:
            raise InputError(
                f"{name}: {first} has shape {other}, {key} has {shape}",
                "they need one entry per sample and class each",
            )


def _refuse_scores(name: str, keys: Keys, shape: Shape) -> None:
    message = f"{name}: {keys.scores} has shape {shape}, not (samples, classes)"
    if len(shape) > 2:
        raise UsageError(
            message,
            "of pixels: save the class of each, and --task pixels; else save (samples, classes)",
        )
    raise InputError(message, "save a column per class, or name the prediction: --pred KEY")


def _score_candidates(table: Table) -> list[str]:
    """Return the score columns by their usual names; a (N,) confidence beside them is none."""
    found = [key for key in SCORES_KEYS if key in table.keys]
    predicted = any(key in table.keys for key in PRED_KEYS)
    wide = [key for key in found if key in table.wide]
    return wide if wide or predicted else found


def _true_candidates(table: Table) -> list[str]:
    """Return the label columns: those of a pair whose prediction is there too come first."""
    paired = [true for true, pred in PAIRS if true in table.keys and pred in table.keys]
    return list(dict.fromkeys(paired)) or [key for key in TRUE_KEYS if key in table.keys]


def _pair(table: Table, true: str | None, pred: str | None) -> tuple[str | None, str | None]:
    """Complete a pair; two different ones are refused."""
    pairs = [
        pair
        for pair in PAIRS
        if pair[0] == (true or pair[0]) and pair[1] == (pred or pair[1])
        if pair[0] in table.keys and pair[1] in table.keys
    ]
    if len(pairs) > 1:
        names = " and ".join("/".join(pair) for pair in pairs)
        raise UsageError(f"{table.name}: holds {names}", "choose: --true KEY --pred KEY")
    if pairs:
        return pairs[0]
    if true is None and pred is not None:
        true = _only(table, "--true", [k for k in TRUE_KEYS if k in table.keys and k != pred])
    elif pred is None and true is not None:
        pred = _only(table, "--pred", [k for k in PRED_KEYS if k in table.keys and k != true])
    return true, pred


def _only(table: Table, option: str, found: Sequence[str]) -> str | None:
    if len(found) > 1:
        message = f"{table.name}: holds {' and '.join(found)}"
        raise UsageError(message, f"choose one: {option} {found[0]}")
    return found[0] if found else None


def _missing(table: Table, true: str | None, answer: str | None) -> InputError:
    """Say which half of a pair is missing; one half alone never names its partner by itself."""
    true = true or next((key for key in TRUE_KEYS if key in table.keys), None)
    answer = answer or next((key for key in PRED_KEYS if key in table.keys), None)
    if true is not None and answer is not None:
        message = f"{table.name}: {true!r} and {answer!r} are no usual pair"
        return InputError(message, f"if they belong together: --true {true} --pred {answer}")
    others = _listed([key for key in table.keys if key not in (true, answer)])
    among = f"by a usual name among {others}" if others else "beside it"
    if true is not None:
        message = f"{table.name}: has {true!r}, but no prediction and no scores {among}"
        return InputError(message, "name one of the two: --pred KEY or --scores KEY")
    if answer is not None:
        message = f"{table.name}: has {answer!r}, but no labels {among}"
        return InputError(message, "name them: --true KEY")
    return InputError(
        f"{table.name}: has no labels and no predictions {among}",
        "name the columns: --true KEY, and --pred KEY or --scores KEY",
    )


def _listed(keys: Sequence[str]) -> str:
    shown = ", ".join(repr(key) for key in keys[:20])
    return shown + (f" and {len(keys) - 20} more" if len(keys) > 20 else "")

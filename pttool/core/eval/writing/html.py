"""One self-contained page: totals, a table to sort, and where the confusions are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from pttool.core.eval.writing.rows import ClassRow, Pair
from pttool.core.printable import printable

STYLE = """
:root { color-scheme: light dark; --line: #8884; --hot: 210, 60, 40; --good: 40, 130, 90; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(11rem, 1fr)); gap: .6rem; }
dt { opacity: .7; font-size: .85rem; } dd { margin: 0; font-size: 1.2rem; }
table { border-collapse: collapse; } .wide { overflow-x: auto; }
th, td { padding: .2rem .6rem; text-align: right; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child, .text { text-align: left; }
#classes th { cursor: pointer; position: sticky; top: 0; background: Canvas; }
#classes th::after { content: " \\2195"; opacity: .4; }
.heat td { min-width: 2rem; text-align: center; border: 1px solid var(--line); padding: .15rem; }
.heat th { font-weight: normal; border: 0; font-size: .85rem; }
.heat thead th { writing-mode: vertical-rl; transform: rotate(180deg); text-align: left; }
"""
SCRIPT = """
for (const heading of document.querySelectorAll('#classes th')) {
  heading.addEventListener('click', () => {
    const column = heading.cellIndex, body = document.querySelector('#classes tbody');
    const order = heading.dataset.order = heading.dataset.order === '1' ? '-1' : '1';
    const key = row => row.cells[column].dataset.key ?? row.cells[column].textContent;
    const number = text => text === '' ? -Infinity : Number(text);
    const compare = heading.dataset.text
      ? (a, b) => key(a).localeCompare(key(b))
      : (a, b) => number(key(a)) - number(key(b));
    body.append(...[...body.rows].sort((a, b) => order * compare(a, b)));
  });
}
"""

# Of the scores that only some reports have.
TITLES = {"auc": "AUC", "ap": "AP", "iou": "IoU"}


def page(
    title: str,
    totals: Mapping[str, str],
    rows: Sequence[ClassRow],
    confusions: "Confusions | None" = None,
    *,
    digits: int = 3,
    left_out: int = 0,
    with_iou: bool = False,
) -> str:
    """Return the page. Names are escaped; nothing is loaded from elsewhere.

    Without confusions, as of several labels per sample, they are left out. `left_out` classes are
    not among the rows, which then are the worst.
    """
    told = [] if confusions is None else [_grid(confusions.grid), _pairs(confusions.pairs)]
    parts = [
        "<!doctype html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{_safe(title)}</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{STYLE}</style></head><body>",
        f"<h1>{_safe(title)}</h1>",
        _totals(totals),
        *told,
        _classes(rows, digits, left_out, with_confused=confusions is not None, with_iou=with_iou),
        f"<script>{SCRIPT}</script></body></html>\n",
    ]
    return "\n".join(parts)


def _safe(name: str) -> str:
    return escape(printable(name))


class Grid:
    """The part of a confusion matrix that is shown: the classes of the most confused pairs.

    `cells[i][j]` counts the samples of class i predicted to be class j, of `samples[i]` in all;
    `left_out` says how many classes are not shown.
    """

    def __init__(
        self,
        names: Sequence[str],
        cells: Sequence[Sequence[int]],
        samples: Sequence[int],
        left_out: int,
    ) -> None:
        self.names = names
        self.cells = cells
        self.samples = samples
        self.left_out = left_out


@dataclass(frozen=True, slots=True)
class Confusions:
    """What was taken for what: the matrix, or part of it, and the pairs most often confused."""

    grid: Grid
    pairs: Sequence[Pair]


def _totals(totals: Mapping[str, str]) -> str:
    items = "".join(
        f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in totals.items()
    )
    return f"<dl>{items}</dl>"


def _grid(grid: Grid) -> str:
    if not grid.names:
        return ""
    heading = "Confusion matrix"
    if grid.left_out:
        heading += f" of the {len(grid.names)} classes in the most confused pairs"
    names = [*grid.names, "other classes"] if grid.left_out else grid.names
    head = "".join(f"<th>{_safe(name)}</th>" for name in names)
    body = "".join(_grid_row(grid, index) for index in range(len(grid.names)))
    return (
        f"<h2>{heading}</h2><p>Rows are labels, columns predictions; red marks errors, by their "
        'share of all samples with the label.</p><div class="wide"><table class="heat">'
        f"<thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _grid_row(grid: Grid, index: int) -> str:
    counts, total = list(grid.cells[index]), grid.samples[index] or 1
    if grid.left_out:
        counts.append(grid.samples[index] - sum(counts))
    cells = []
    for column, count in enumerate(counts):
        colour = "--good" if column == index else "--hot"
        shade = f' style="background: rgba(var({colour}), {count / total:.3f})"' if count else ""
        cells.append(f"<td{shade}>{count or ''}</td>")
    return f'<tr><th class="text">{_safe(grid.names[index])}</th>{"".join(cells)}</tr>'


def _pairs(pairs: Sequence[Pair]) -> str:
    if not pairs:
        return "<h2>Most confused pairs</h2><p>None: every prediction is right.</p>"
    rows = "".join(
        f'<tr><td>{_safe(pair.label_name)}</td><td class="text">{_safe(pair.predicted_name)}</td>'
        f"<td>{pair.count}</td></tr>"
        for pair in pairs
    )
    return (
        "<h2>Most confused pairs</h2><table><thead><tr><th>Label</th>"
        f'<th class="text">Predicted</th><th>Samples</th></tr></thead><tbody>{rows}</tbody></table>'
    )


def _classes(
    rows: Sequence[ClassRow], digits: int, left_out: int, *, with_confused: bool, with_iou: bool
) -> str:
    more = ["auc", "ap"] if any(row.auc is not None for row in rows) else []
    more += ["iou"] if with_iou else []
    titles = ["Class", "Label", "Samples", "Precision", "Recall", "F1"]
    titles += [TITLES[field] for field in more]
    titles += ["Confused with"] if with_confused else []
    head = "".join(
        f'<th data-text="1">{title}</th>' if title == "Class" else f"<th>{title}</th>"
        for title in titles
    ).replace("<th>Confused", '<th class="text" data-text="1">Confused')
    body = "".join(_class(row, more, with_confused, digits) for row in rows)
    heading = "<h2>Classes</h2>"
    if left_out:
        heading += f"<p>The {len(rows):,} with the lowest F1; {left_out:,} more are in the CSV.</p>"
    return (
        f'{heading}<div class="wide"><table id="classes"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _class(row: ClassRow, more: Sequence[str], with_confused: bool, digits: int) -> str:
    fields = ("precision", "recall", "f1", *more)
    numbers: list[float | None] = [getattr(row, field) for field in fields]
    scores = "".join(
        '<td data-key=""></td>'
        if number is None
        else f'<td data-key="{number!r}">{number:.{digits}f}</td>'
        for number in numbers
    )
    confused = ", ".join(f"{_safe(other.name)}: {other.count}" for other in row.confused)
    others = f'<td class="text">{confused}</td>' if with_confused else ""
    return (
        f"<tr><td>{_safe(row.name)}</td><td>{row.label}</td><td>{row.support}</td>"
        f"{scores}{others}</tr>"
    )

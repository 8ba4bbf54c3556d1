"""The report as text for spreadsheets and papers: the settled CSV, Markdown and LaTeX."""

from collections.abc import Iterator, Sequence

from pttool.core.csv_cells import quoted
from pttool.core.eval.writing.rows import ClassRow, Pair
from pttool.core.printable import printable

CONFUSED_CELLS = 5
# Spreadsheets depend on this header, its spelling included.
HEADER = (
    "Class", "Label", "# occurence", "Precision", "Recall", "F1",
    *(f"Confused class {k}" for k in range(1, CONFUSED_CELLS + 1)),
)  # fmt: skip
# A cell that begins so is a formula to a spreadsheet (OWASP, "CSV Injection").
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
# What quotes carry (RFC 4180); other control characters would act on whoever prints the file.
CARRIED_BY_QUOTES = "\t\n\r"
BYTE_ORDER_MARK = "\ufeff"


def csv_text(
    rows: Sequence[ClassRow], total: ClassRow, *, digits: int, header: bool, excel: bool
) -> Iterator[str]:
    """Yield the lines of the CSV: 11 cells in each, the row All last.

    `excel` makes it one that Excel reads rightly: a byte order mark, CRLF line ends, and an
    apostrophe before a name that would be a formula.
    """
    end = "\r\n" if excel else "\n"
    mark = BYTE_ORDER_MARK if excel else ""
    if header:
        yield mark + ",".join(HEADER) + end
        mark = ""
    for row in rows:
        yield mark + ",".join(_cells(row, digits, excel)) + end
        mark = ""
    last = ["All", "", str(total.support), *_scores(total, digits)]
    yield mark + ",".join([*last, *[""] * CONFUSED_CELLS]) + end


def cell_of(name: str, *, excel: bool) -> str:
    """Return a class name as a CSV cell; `excel` keeps it from being a formula."""
    name = printable(name, CARRIED_BY_QUOTES)
    return quoted(f"'{name}" if excel and name.startswith(FORMULA_STARTS) else name)


def markdown(
    rows: Sequence[ClassRow],
    total: ClassRow,
    pairs: Sequence[Pair],
    *,
    digits: int,
    with_iou: bool = False,
) -> Iterator[str]:
    """Yield the lines of a table in GitHub's Markdown, and of one of the pairs if there are any."""
    title, line, none = (" IoU |", "---:|", " |") if with_iou else ("", "", "")
    yield f"| Class | Label | Samples | Precision | Recall | F1 |{title} Confused with |\n"
    yield f"|---|---:|---:|---:|---:|---:|{line}---|\n"
    for row in rows:
        name = _for_markdown(row.name)
        confused = _for_markdown(_confused(row))
        scores = " | ".join(_scores(row, digits))
        scores += f" | {row.iou:.{digits}f}" if with_iou else ""
        yield f"| {name} | {row.label} | {row.support} | {scores} | {confused} |\n"
    yield f"| **All** | | {total.support} | {' | '.join(_scores(total, digits))} |{none} |\n"
    if pairs:
        yield "\n| Label | Predicted | Samples |\n|---|---|---:|\n"
    for pair in pairs:
        label, predicted = _for_markdown(pair.label_name), _for_markdown(pair.predicted_name)
        yield f"| {label} | {predicted} | {pair.count} |\n"


def latex(rows: Sequence[ClassRow], total: ClassRow, *, digits: int) -> Iterator[str]:
    """Yield the lines of a tabular with the rules of booktabs."""
    yield "\\begin{tabular}{lrrrrr}\n\\toprule\n"
    yield "Class & Label & Samples & Precision & Recall & F1 \\\\\n\\midrule\n"
    for row in rows:
        scores = " & ".join(_scores(row, digits))
        yield f"{_for_latex(row.name)} & {row.label} & {row.support} & {scores} \\\\\n"
    yield "\\midrule\n"
    yield f"All & & {total.support} & {' & '.join(_scores(total, digits))} \\\\\n"
    yield "\\bottomrule\n\\end{tabular}\n"


def _cells(row: ClassRow, digits: int, excel: bool) -> list[str]:
    confused = [f"{other.name}:{other.count}" for other in row.confused[:CONFUSED_CELLS]]
    names = [cell_of(name, excel=excel) for name in (row.name, *confused)]
    padding = [""] * (CONFUSED_CELLS - len(confused))
    return [names[0], str(row.label), str(row.support), *_scores(row, digits), *names[1:], *padding]


def _scores(row: ClassRow, digits: int) -> list[str]:
    return [f"{score:.{digits}f}" for score in (row.precision, row.recall, row.f1)]


def _confused(row: ClassRow) -> str:
    return ", ".join(f"{other.name}:{other.count}" for other in row.confused[:CONFUSED_CELLS])


def _for_markdown(text: str) -> str:
    text = printable(" ".join(text.split()))
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def _for_latex(text: str) -> str:
    """Escape what LaTeX reads as a command."""
    text = printable(" ".join(text.split()))
    return "".join(_LATEX.get(character, character) for character in text)


_LATEX = {
    "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}  # fmt: skip

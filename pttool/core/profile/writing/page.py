"""A profile as one self-contained page: where the time went, what to do about it, and pictures."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from pttool.core.printable import printable
from pttool.core.profile.labels import short_place
from pttool.core.profile.types import PHASES, Finding, Profile
from pttool.core.profile.writing.flame import flame_svg
from pttool.core.profile.writing.palette import colour_of
from pttool.core.profile.writing.report import sorted_ops
from pttool.core.profile.writing.sections import NONE, counted, headline, loading, modules_of
from pttool.core.profile.writing.timeline import timeline_svg

STYLE = """
:root { color-scheme: light dark; --line: #8884; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.bar { display: flex; height: 1.6rem; border-radius: .3rem; overflow: hidden; margin: .2rem 0; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; padding: 0; list-style: none; }
.legend i { display: inline-block; width: .8rem; height: .8rem; margin-right: .4rem; }
.finding { border-left: .3rem solid #888; padding: .1rem .8rem; margin: .8rem 0; }
.warning { border-color: #d2603c; } .finding p { margin: .2rem 0; }
.finding b { font-family: ui-monospace, monospace; }
table { border-collapse: collapse; } .wide { overflow-x: auto; }
th, td { padding: .2rem .7rem; text-align: right; border-bottom: 1px solid var(--line); }
.text { text-align: left; font-family: ui-monospace, monospace; font-size: .9rem; }
th.text { font-family: inherit; font-size: inherit; }
"""


def page(profile: Profile, *, sort: str = "self") -> str:
    """Return the page. Names are escaped; nothing is loaded from elsewhere."""
    title = _safe(f"pttool profile: {headline(profile)}")
    parts = [
        "<!doctype html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{title}</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{STYLE}</style></head><body>",
        f"<h1>{title}</h1>",
        _time(profile),
        _part("Findings", "".join(map(_finding, profile.findings)) or f"<p>{NONE}</p>"),
        _part("Data loading", _loading(profile)),
        _part("Flame graph of Python", flame_svg(profile.stacks) if profile.stacks else ""),
        _part(modules_of(profile), _modules(profile)),
        _part(f"Ops of {counted(profile.ops.steps, 'step')}", _ops(profile, sort)),
        _part("Notes", "".join(f"<p>{_safe(note)}</p>" for note in profile.notes)),
        "</body></html>\n",
    ]
    return "\n".join(part for part in parts if part)


def _safe(name: str) -> str:
    return escape(printable(name))


def _part(heading: str, body: str) -> str:
    return f"<h2>{heading}</h2>\n{body}" if body else ""


def _time(profile: Profile) -> str:
    shown = _bar("Whole run", profile.phases_s) + _legend(profile.phases_s)
    if profile.steady is not None:
        steady = profile.steady
        shown += _bar(counted(steady.steps, "steady step"), steady.phases_s)
        shown += _legend(steady.phases_s)
    return _part("Where the time went", shown + timeline_svg(profile.timeline))


def _bar(heading: str, phases_s: Mapping[str, float]) -> str:
    whole = sum(phases_s.values()) or 1.0
    slices = "".join(
        f'<span style="width: {100 * spent / whole:.3f}%; background: {colour_of(phase)}" '
        f'title="{_phase(phase)} {spent:.3f} s"></span>'
        for phase, spent in _in_order(phases_s)
    )
    return f'<div>{heading}, {whole:.2f} s</div><div class="bar">{slices}</div>'


def _legend(phases_s: Mapping[str, float]) -> str:
    whole = sum(phases_s.values()) or 1.0
    keys = "".join(
        f'<li><i style="background: {colour_of(phase)}"></i>{_phase(phase)} '
        f"{spent:.2f} s ({100 * spent / whole:.1f} %)</li>"
        for phase, spent in _in_order(phases_s)
    )
    return f'<ul class="legend">{keys}</ul>'


def _in_order(phases_s: Mapping[str, float]) -> list[tuple[str, float]]:
    return [(phase, phases_s[phase]) for phase in PHASES if phases_s.get(phase)]


def _phase(phase: str) -> str:
    return phase.replace("_", " ")


def _finding(finding: Finding) -> str:
    fix = f"<p>Fix: {_safe(finding.fix)}</p>" if finding.fix else ""
    return (
        f'<div class="finding {finding.severity}"><p><b>{finding.code}</b> '
        f"{_safe(finding.text)}</p>{fix}</div>"
    )


def _loading(profile: Profile) -> str:
    if profile.loader is None:
        return ""
    lines = [
        (short_place(hot.file, hot.line), hot.function, f"{100 * hot.fraction:.1f} %")
        for hot in profile.hot_lines
    ]
    table = _table(("Line", "Function"), ("Share of the samples",), lines) if lines else ""
    return f"<p>{_safe(loading(profile.loader))}</p>{table}"


def _modules(profile: Profile) -> str:
    rows = [
        (module.name or "(root)", module.type, f"{module.self_ms:,.3f}", f"{module.calls:,}")
        for module in profile.modules
    ]
    return _table(("Module", "Type"), ("Self ms", "Calls"), rows)


def _ops(profile: Profile, sort: str) -> str:
    ops = sorted_ops(profile.ops.rows, sort)
    has_bytes = any(op.self_bytes is not None for op in ops)
    has_shapes = any(op.shapes is not None for op in ops)
    rows = [
        (
            op.name,
            *([str(op.shapes)] if has_shapes else []),
            f"{op.self_ms:,.3f}",
            f"{op.total_ms:,.3f}",
            f"{op.calls:,}",
            *([f"{op.self_bytes or 0:,}"] if has_bytes else []),
        )
        for op in ops
    ]
    texts = ("Op", "Shapes") if has_shapes else ("Op",)
    numbers = ("Self ms", "Total ms", "Calls", "Memory in bytes")
    return _table(texts, numbers if has_bytes else numbers[:-1], rows)


def _table(texts: Sequence[str], numbers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose first columns are texts, and the others numbers; "" without rows."""
    kinds = [' class="text"'] * len(texts) + [""] * len(numbers)
    head = "".join(
        f"<th{kind}>{title}</th>" for kind, title in zip(kinds, (*texts, *numbers), strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(f"<td{kind}>{_safe(cell)}</td>" for kind, cell in zip(kinds, row, strict=True))
        + "</tr>"
        for row in rows
    )
    if not body:
        return ""
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )

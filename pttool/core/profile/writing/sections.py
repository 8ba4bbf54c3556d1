"""A profile in words and small tables, for people who read stderr."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from pttool.core.profile.labels import short_place
from pttool.core.profile.types import PHASES, Finding, Loader, Profile
from pttool.core.profile.writing.report import report
from pttool.core.report import Column, Report

PHASE_COLUMNS = (
    Column("phase", "Phase"),
    Column("wall_s", "Whole run", "seconds"),
    Column("share", "Share", "ratio"),
    Column("steady_s", "Steady steps", "seconds"),
    Column("steady_share", "Steady share", "ratio"),
)
NONE = "none: no known fault takes a noticeable part of the time"
LINE_COLUMNS = (
    Column("fraction", "Share", "ratio"),
    Column("place", "Line"),
    Column("function", "Function"),
)
MODULE_COLUMNS = (
    Column("name", "Module"),
    Column("type", "Type", optional=True),
    Column("self_ms", "Self ms", "number"),
    Column("calls", "Calls", "count"),
)


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, and below it lines of text or a table."""

    heading: str
    lines: Sequence[str] = ()
    table: Report | None = None


def sections(profile: Profile, *, top: int = 10, sort: str = "self") -> Iterator[Section]:
    """Yield what is shown, most telling first; tables have at most `top` rows."""
    yield Section(headline(profile))
    yield Section("Where the time went", table=_phases(profile))
    yield Section("Findings", [line for each in profile.findings for line in told(each)] or [NONE])
    if profile.loader is not None:
        yield Section("Data loading", [loading(profile.loader)])
    if top and profile.hot_lines:
        yield Section("Lines that make the batches", table=_hot_lines(profile, top))
    if top and profile.modules:
        yield Section(modules_of(profile), table=_modules(profile, top))
    if top and profile.ops.rows:
        steps = counted(profile.ops.steps, "step")
        yield Section(f"Ops of {steps}", table=_ops(profile, top, sort))


def headline(profile: Profile) -> str:
    """Return one line that says what ran, for how long, and how it ended."""
    ending = "interrupted" if profile.interrupted else f"exit code {profile.exit_code}"
    parts = [f"{profile.wall_s:.2f} s", counted(profile.steps, "step"), ending]
    if not profile.final:
        parts.append("killed, so its last 2 s may be missing")
    return f"{profile.script}: {', '.join(parts)}"


def told(finding: Finding) -> Iterator[str]:
    """Yield a finding's lines: what is so, and what to do."""
    yield f"{finding.severity}: {finding.code}: {finding.text}"
    if finding.fix:
        yield f"  fix: {finding.fix}"


def modules_of(profile: Profile) -> str:
    """Return the heading of the modules."""
    steps = counted(profile.module_steps, "step")
    return f"Modules in forward of {steps}, without what they call"


def loading(loader: Loader) -> str:
    """Return one line on how a batch is made."""
    parts = [counted(loader.workers, "worker"), f"{loader.fetch_ms:.4g} ms a batch"]
    if loader.batch_size is not None:
        parts.insert(1, f"batch size {loader.batch_size:,}")
    if loader.sample_ms is not None:
        parts.append(f"{loader.sample_ms:.4g} ms a sample")
    parts += [
        f"{100 * loader.collate_fraction:.0f} % of it collate",
        f"{100 * loader.cpu_fraction:.0f} % of it CPU",
    ]
    return ", ".join(parts)


def counted(number: int, thing: str) -> str:
    """Return a number of things: 1 step, 2 steps."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _phases(profile: Profile) -> Report:
    steady = profile.steady
    items = []
    for phase in PHASES:
        spent = profile.phases_s[phase]
        if not spent:
            continue
        in_steps = None if steady is None else steady.phases_s.get(phase)
        items.append(
            {
                "phase": phase.replace("_", " "),
                "wall_s": spent,
                "share": spent / profile.wall_s if profile.wall_s else None,
                "steady_s": in_steps,
                "steady_share": steady.fraction(phase) if steady and in_steps is not None else None,
            }
        )
    return Report((), PHASE_COLUMNS, items)


def _hot_lines(profile: Profile, top: int) -> Report:
    items = [
        {**asdict(hot), "place": short_place(hot.file, hot.line)} for hot in profile.hot_lines[:top]
    ]
    return Report((), LINE_COLUMNS, items)


def _modules(profile: Profile, top: int) -> Report:
    items = [
        {**asdict(module), "name": module.name or "(root)", "self_ms": round(module.self_ms, 3)}
        for module in profile.modules[:top]
    ]
    return Report((), MODULE_COLUMNS, items)


def _ops(profile: Profile, top: int, sort: str) -> Report:
    whole = report(profile, sort=sort)
    rounded = ("self_ms", "total_ms")
    items = [
        {**item, **{key: round(item[key], 3) for key in rounded}} for item in whole.items[:top]
    ]
    return Report(whole.fields, whole.columns, items)

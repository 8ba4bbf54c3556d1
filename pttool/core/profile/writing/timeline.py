"""A picture of a run from left to right: what each stretch of it was spent on."""

from collections.abc import Iterator, Sequence

from pttool.core.profile.types import PHASES, Span
from pttool.core.profile.writing.palette import colour_of

WIDTH, HEIGHT = 1200, 120


def timeline_svg(spans: Sequence[Span]) -> str:
    """Return an SVG picture: a bar per span, as wide as it is long, divided by its phases."""
    whole = spans[-1].end_s if spans else 0.0
    if whole <= 0:
        return ""
    bars = "\n".join(bar for span in spans for bar in _bars(span, WIDTH / whole))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT + 20}" '
        f'width="100%" role="img" aria-label="timeline of phases">\n{bars}\n'
        f'<g font-size="12" fill="currentColor"><text y="{HEIGHT + 15}">0 s</text>'
        f'<text x="{WIDTH}" y="{HEIGHT + 15}" text-anchor="end">{whole:.2f} s</text></g></svg>\n'
    )


def _bars(span: Span, scale: float) -> Iterator[str]:
    """Yield the rectangles of a span from the bottom up, in the order of PHASES."""
    spent = sum(span.phases_s.values())
    bottom = float(HEIGHT)
    for phase in PHASES:
        seconds = span.phases_s.get(phase, 0.0)
        if not spent or not seconds:
            continue
        height = HEIGHT * seconds / spent
        bottom -= height
        yield (
            f'<rect x="{span.start_s * scale:.2f}" y="{bottom:.2f}" height="{height:.2f}" '
            f'width="{(span.end_s - span.start_s) * scale:.2f}" fill="{colour_of(phase)}">'
            f"<title>{phase.replace('_', ' ')}: {seconds:.3f} s of {spent:.3f} s, "
            f"{span.start_s:.2f} s after the start</title></rect>"
        )

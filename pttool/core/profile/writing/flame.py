"""Where samples of the Python side fell: folded stacks, and their flame graph as SVG."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape

from pttool.core.printable import printable
from pttool.core.profile.writing.palette import colour_of

# Labels from the outermost in, the phase first, to the number of samples.
Stacks = Mapping[tuple[str, ...], int]

WIDTH = 1200
ROW = 18
LEAST_WIDTH = 1.0  # of a frame that is drawn, in pixels
CHARACTER_WIDTH = 6.6  # of 11 px monospace
STYLE = """<style>
  .flame text { font: 11px ui-monospace, monospace; fill: #111; pointer-events: none; }
  .flame rect { stroke: #fff; stroke-width: .5; } .flame g:hover rect { stroke: #000; }
</style>"""


def folded(stacks: Stacks) -> str:
    """Return a line per stack, `outer;inner;innermost SAMPLES`, as flamegraph.pl reads it.

    https://github.com/brendangregg/FlameGraph: a semicolon or a new line in a label would split it.
    """
    return "".join(
        ";".join(printable(label).replace(";", ",") for label in stack) + f" {samples}\n"
        for stack, samples in sorted(stacks.items())
    )


def flame_svg(stacks: Stacks) -> str:
    """Return an SVG picture, the outermost frames at the top; pointing at one tells its share.

    It is as wide as the page it stands in. Frames too narrow to see are left out.
    """
    root = _tree(stacks)
    boxes = list(_boxes(root, 0.0, 0, WIDTH / max(root.samples, 1)))
    height = ROW * (1 + max((box.depth for box in boxes), default=0))
    drawn = "\n".join(_drawn(box, root.samples) for box in boxes)
    return (
        f'<svg class="flame" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="100%" role="img" aria-label="flame graph">\n{STYLE}\n{drawn}\n</svg>\n'
    )


@dataclass(slots=True)
class _Frame:
    label: str
    phase: str
    samples: int = 0
    callees: dict[str, "_Frame"] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Box:
    frame: _Frame
    left: float
    width: float
    depth: int


def _tree(stacks: Stacks) -> _Frame:
    root = _Frame("all", "all")
    for stack, samples in sorted(stacks.items()):
        frame = root
        frame.samples += samples
        for label in stack:
            phase = label if frame is root else frame.phase
            frame = frame.callees.setdefault(label, _Frame(label, phase))
            frame.samples += samples
    return root


def _boxes(frame: _Frame, left: float, depth: int, scale: float) -> Iterator[_Box]:
    """Yield a frame's box and those of what it calls, the most sampled first."""
    width = frame.samples * scale
    if width < LEAST_WIDTH:
        return
    yield _Box(frame, left, width, depth)
    for callee in sorted(frame.callees.values(), key=lambda callee: -callee.samples):
        yield from _boxes(callee, left, depth + 1, scale)
        left += callee.samples * scale


def _drawn(box: _Box, all_samples: int) -> str:
    label = printable(box.frame.label)
    share = f"{100 * box.frame.samples / all_samples:.1f} % ({box.frame.samples:,} samples)"
    room = int((box.width - 4) / CHARACTER_WIDTH)
    shown = label if len(label) <= room else f"{label[: room - 1]}…" if room >= 3 else ""
    top = box.depth * ROW
    return (
        f"<g><title>{escape(label)}: {share}</title>"
        f'<rect x="{box.left:.1f}" y="{top}" width="{box.width:.1f}" height="{ROW}" '
        f'fill="{colour_of(box.frame.phase)}"/>'
        f'<text x="{box.left + 3:.1f}" y="{top + 13}">{escape(shown)}</text></g>'
    )

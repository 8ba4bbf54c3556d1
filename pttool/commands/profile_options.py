"""The options of `pttool profile`: what is recorded, what is written, what is shown."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from pttool.core.files import check_writable
from pttool.errors import UsageError
from pttool.options import Force, a_number
from pttool.output import Format, Output, save

if TYPE_CHECKING:
    from pttool.core.profile.launch import Settings
    from pttool.core.profile.types import Profile

Script = Annotated[
    str,
    Argument(
        metavar="SCRIPT",
        help="The script, or, with -m, the module, that Python runs.",
        show_default=False,
    ),
]
Arguments = Annotated[
    list[str] | None,
    Argument(metavar="[ARGS]...", help="Its arguments; -- may stand first.", show_default=False),
]
IsModule = Annotated[bool, Option("-m", help="SCRIPT is a module, as for python -m.")]
Quiet = Annotated[bool, Option("-q", "--quiet", help="No report on stderr, only the files.")]


class SortKey(StrEnum):
    """What the table of ops is ordered by, the largest first."""

    SELF = "self"
    TOTAL = "total"
    CALLS = "calls"
    MEMORY = "memory"


Top = Annotated[int, Option("--top", metavar="N", min=0, help="Rows of each table shown.")]
Sort = Annotated[SortKey, Option("--sort", help="What the ops are sorted by.")]


@dataclass(frozen=True, slots=True)
class RecordingOptions:
    """What is recorded while the script runs."""

    hz: Annotated[
        float,
        Option(
            "--hz",
            metavar="N",
            min=0,
            max=1000,
            help="Samples a second; 0: none.",
            callback=a_number,
        ),
    ] = 100.0
    window: Annotated[
        str,
        Option("--window", metavar="SKIP:STEPS", help="Steps to skip, and then to record ops in."),
    ] = "5:3"
    windows: Annotated[
        int,
        Option("--windows", metavar="N", min=0, help="How many windows, of SKIP:STEPS; 0: no ops."),
    ] = 1
    shapes: Annotated[
        bool, Option("--shapes", help="A row for each op and shapes of its inputs.")
    ] = False
    memory: Annotated[bool, Option("--memory", help="What each op allocates.")] = False

    def settings(self) -> "Settings":
        """Return the settings; raises UsageError for a window that is none."""
        from pttool.core.profile.launch import Settings
        from pttool.core.profile.windows import parse_window

        skip_steps, window_steps = parse_window(self.window)
        return Settings(self.hz, skip_steps, window_steps, self.windows, self.shapes, self.memory)


@dataclass(frozen=True, slots=True)
class DocumentOptions:
    """The files that are written once the script has ended."""

    json: Annotated[
        Path | None,
        Option("--json", metavar="FILE", help="All that was found.", show_default=False),
    ] = None
    csv: Annotated[
        Path | None, Option("--csv", metavar="FILE", help="The ops.", show_default=False)
    ] = None
    html: Annotated[
        Path | None,
        Option("--html", metavar="FILE", help="A page with pictures.", show_default=False),
    ] = None
    trace: Annotated[
        Path | None,
        Option(
            "--trace",
            metavar="FILE",
            help="The windows for https://ui.perfetto.dev: .json or .json.gz.",
            show_default=False,
        ),
    ] = None
    flame: Annotated[
        Path | None,
        Option(
            "--flame", metavar="FILE", help="A flame graph: .svg or .folded.", show_default=False
        ),
    ] = None
    force: Force = False

    def check(self, script: str) -> None:
        """Refuse, before anything runs, a file that can't be written, or two of one name.

        Raises UsageError; UnavailableError for a folder that may not be written.
        """
        asked = {"json": self.json, "csv": self.csv, "html": self.html}
        asked |= {"trace": self.trace, "flame": self.flame}
        given = {option: path for option, path in asked.items() if path is not None}
        for option, path in given.items():
            if str(path) == "-":
                raise UsageError(f"--{option} -: standard output is the script's", "name a file")
            suffixes = _SUFFIXES.get(option, ("",))
            if not path.name.lower().endswith(suffixes):
                raise UsageError(
                    f"{path}: the suffix names no format", f"end it in {' or '.join(suffixes)}"
                )
            check_writable(path, force=self.force, inputs=[Path(script)])
        if len({path.resolve() for path in given.values()}) < len(given):
            raise UsageError("two documents have one name", "give each a file of its own")

    def write(self, found: "Profile", sort: str) -> None:
        """Write the files asked for, each complete or not at all."""
        from pttool.core.profile.writing.documents import write_documents
        from pttool.core.profile.writing.report import report

        for path, format in ((self.json, Format.JSON), (self.csv, Format.CSV)):
            if path is not None:
                save("profile", report(found, sort=sort), Output(format), path)
        write_documents(found, html=self.html, trace=self.trace, flame=self.flame, sort=sort)


_SUFFIXES = {"trace": (".json", ".json.gz"), "flame": (".svg", ".folded")}

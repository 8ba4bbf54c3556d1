"""`pttool profile`: run a script as Python does, and say in words where its time goes."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from typer import Exit

from pttool.app import running_noun, verb
from pttool.commands.profile_model import model
from pttool.commands.profile_options import (
    Arguments,
    DocumentOptions,
    IsModule,
    Quiet,
    RecordingOptions,
    Script,
    Sort,
    SortKey,
    Top,
)
from pttool.output import note, talk, talk_table
from pttool.values import printable

if TYPE_CHECKING:
    from pttool.core.profile.types import Profile


def profile(
    script: Script,
    arguments: Arguments = None,
    *,
    is_module: IsModule = False,
    recorded: RecordingOptions,
    top: Top = 10,
    sort: Sort = SortKey.SELF,
    quiet: Quiet = False,
    documents: DocumentOptions,
) -> None:
    """Run a script as Python does, unchanged, and say in words where its time goes.

    The options stand before the script; what follows it is the script's own. Its output and exit
    code are those of plain Python; the report follows on stderr, also after Ctrl-C or a kill.
    Phases of the wall time, what making batches costs inside the workers, ops of a few steps,
    modules, and findings, each with what to do. No torch.profiler is to be put into the code.

    A script is a path, or a module behind -m; the first word `model` profiles a model instead.

    Examples:
        pttool profile train.py --epochs 1
        pttool profile --html profile.html --trace trace.json.gz train.py -- --epochs 1
        pttool profile --window 20:5 --shapes --json profile.json -m package.train
    """
    settings = recorded.settings()
    documents.check(script)
    from pttool.core.profile.profile import profile as run

    words = arguments[1:] if arguments and arguments[0] == "--" else arguments or []
    with TemporaryDirectory(prefix="pttool-profile-") as folder:
        found = run([*(["-m"] if is_module else []), script, *words], settings, Path(folder))
        if not quiet:
            _tell(found, top, sort)
        documents.write(found, sort)
    raise Exit(found.exit_code)


app = running_noun(profile)
verb(app)(model)


def _tell(found: "Profile", top: int, sort: str) -> None:
    from pttool.core.profile.writing.sections import sections

    for section in sections(found, top=top, sort=sort):
        talk(f"\n{printable(section.heading)}")
        for line in section.lines:
            talk(printable(line))
        if section.table is not None:
            talk_table(section.table)
    for text in found.notes:
        note(text)

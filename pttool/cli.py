"""The command line's root: which nouns there are, its help, and usage errors on one line."""

import importlib
import itertools
import re
from difflib import get_close_matches
from typing import Annotated, Any

from typer import BadParameter, Exit, Option, Typer

from pttool.app import Noun, noun, verb
from pttool.errors import UsageError

# noun: (module, one line for the help). The module holds the noun's `app`, or, for a noun without
# verbs, a function of its name.
COMMANDS = {
    "model": ("pttool.commands.model", "layers, parameters and MACs of a model, without weights"),
    "ckpt": ("pttool.commands.ckpt", "checkpoints: inspect, repair, scan, convert, without torch"),
    "eval": ("pttool.commands.eval", "precision, recall, F1 from saved predictions"),
    "video": ("pttool.commands.video", "facts and frames of videos: the right frame, always"),
    "features": ("pttool.commands.features", "what a layer sees, for a folder of images"),
    "lr": ("pttool.commands.lr", "the learning rate of a schedule, per epoch or step"),
    "curve": ("pttool.commands.curve", "learning curves of logs, in the terminal or a picture"),
    "gpu": ("pttool.commands.gpu", "GPUs: see, pick, wait for, free, reset; why there is none"),
    "profile": ("pttool.commands.profile", "where the time of a training script or model goes"),
    "env": ("pttool.commands.env", "versions and settings, for bug reports and CI"),
    "recipes": ("pttool.commands.recipes", "41 recipes of the PyTorch cookbooks, each made right"),
}

HELP = """\
Usage: pttool NOUN VERB [OPTIONS] ...

pttool does the jobs that people who work with PyTorch do all day, one command
each. It starts at once, never runs a file that it was only asked to look at,
and never leaves a half-written file behind.

Nouns:
{nouns}

`pttool NOUN` lists the verbs of a noun, and `pttool NOUN VERB --help` tells all
about one. `pttool --version` prints the version.

Results go to standard output: a table by default, or --json, --ndjson, --csv,
--tsv, or -o FILE. Everything else goes to standard error.

Examples:
  pttool model summary resnet18 -i 3,224,224
  pttool model summary net.py:Net -i ids:int64:128 -b 8 --json | jq .summary
  pttool gpu info --json | jq '.items[].memory.free_bytes'
  pttool model params vit_b_16 --tsv | sort -t "$(printf '\\t')" -k4,4nr | head

Exit codes:
  0    done (also when the reader closed the pipe)
  1    the check said no: a gate failed, a comparison differs
  2    the command line is wrong
  3    an input can't be read or isn't what it should be
  4    something this needs is not here: driver, weights, package, permission
  70   a bug in pttool; PTTOOL_DEBUG=1 shows its traceback
  130  interrupted by Ctrl-C
"""


class Root(Noun):
    """The root group: lists the nouns without importing them, and writes its own help."""

    def main(  # type: ignore[override]
        self, args: Any = None, prog_name: str | None = None, **extra: Any
    ) -> Any:
        # Typer's own turns a closed pipe into exit code 1 and Ctrl-C into its own exceptions.
        with self.make_context(prog_name, list(args)) as context:
            return self.invoke(context)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        nouns = "\n".join(f"  {name:<9} {line}" for name, (_, line) in COMMANDS.items())
        formatter.write(HELP.format(nouns=nouns))


def run(args: list[str]) -> int:
    """Run one command line and return its exit code; raises UsageError when it is wrong."""
    try:
        build(args[:1])(args, prog_name="pttool")
    except Exit as leaving:
        return leaving.exit_code
    except _UsageError as error:
        raise _in_one_line(error, args) from error
    return 0


def build(nouns: list[str]) -> Typer:
    """Return the application with just these nouns loaded; unknown ones are left out."""
    app = noun("The command-line toolbox for people who work with PyTorch.", Root)
    app.callback()(_root)
    for name in nouns:
        if name in COMMANDS:
            module = importlib.import_module(COMMANDS[name][0])
            if hasattr(module, "app"):
                app.add_typer(module.app, name=name)
            else:
                verb(app)(getattr(module, name))
    return app


# The class that all of Typer's usage errors share, whichever Click it carries.
_UsageError: type[Any] = BadParameter.__mro__[1]


def _root(
    version: Annotated[bool, Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        raise UsageError("--version stands alone", "pttool --version")


def _in_one_line(error: Any, args: list[str]) -> UsageError:
    """Return Typer's usage error as ours: what is wrong, and where to look or what was meant."""
    message = re.sub(r"\s*\((Possible|Did you).*\)$", "", " ".join(error.format_message().split()))
    message = message.removesuffix(".")
    context = error.ctx
    # The parser of options raises without a context: the command is what the line begins with.
    words = " ".join(["pttool", *itertools.takewhile(str.isidentifier, args[:2])])
    path = context.command_path if context is not None else words
    hint = f"see '{path} --help'"
    meant = _meant(error, message)
    if meant:
        hint = f"Did you mean {' or '.join(map(repr, meant))}? S{hint[1:]}"
    return UsageError(message[:1].lower() + message[1:], hint)


def _meant(error: Any, message: str) -> list[str]:
    wrong_command = re.match(r"No such command '(.*)'", message)
    if wrong_command and error.ctx is not None:
        known = error.ctx.command.list_commands(error.ctx)
        return get_close_matches(wrong_command[1], known)
    return sorted(getattr(error, "possibilities", None) or [])

"""Completion in real shells behind a terminal: what Tab does, and that it starts nothing."""

import os
import re
import shutil
import subprocess
import time
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Annotated

import pexpect
import pytest
from typer import Argument, Option

from pttool.app import noun, running_noun, verb
from pttool.cli import COMMANDS
from pttool.completion import scripts
from pttool.completion.__main__ import MODEL_NAMES, TIMM_NAMES, generated, write_names
from pttool.completion.tree import command_tree
from pttool.options import Mode, Model

REPOSITORY = Path(__file__).parents[2]
SCRIPTS = sorted((REPOSITORY / "completions").iterdir())
BASH_COMPLETION = Path("/usr/share/bash-completion/bash_completion")
FILES = ["my file.pt", "my:colon.pt", "net.py", "weights.pt", "nets/deep net.py"]
# How each shell comes by the script in {share}, the folder that a wheel fills.
SETUPS = {
    "bash": "source {share}/bash-completion/completions/pttool",
    "bash with bash-completion": f"source {BASH_COMPLETION}",
    "bash without words split at colons": "source {share}/bash-completion/completions/pttool; "
    "COMP_WORDBREAKS=${{COMP_WORDBREAKS//:}}",
    "zsh with fpath": "fpath=({share}/zsh/site-functions $fpath); compinit -u -D",
    "zsh with source": "compinit -u -D; source {share}/zsh/site-functions/_pttool",
    "fish": "true",
}
ARGUMENTS = {"bash": ["--norc", "--noprofile", "-i"], "zsh": ["-f", "-i"], "fish": ["-i"]}
# How a shell tells the words of a line, and which keys put all that it offers on that line.
POSIX = r"""words() { printf '%s\0' "${@:2}" > ~/part; mv ~/part ~/words; };"""
ZSH = """
autoload -U compinit; zle -C insert-all complete-word _generic; bindkey '^X^A' insert-all
zstyle ':completion:insert-all:*' completer _all_matches _complete
zstyle ':completion:insert-all:*' insert true
"""
FISH = """
function words; string join0 -- $argv[2..-1] > ~/part; mv ~/part ~/words; end
function offers; words _ (complete -C $argv[1] | string split -f 1 \\t); end
"""
REPORT = {"bash": POSIX, "zsh": POSIX + ZSH, "fish": FISH}
INSERT_ALL = {"bash": "\x1b*", "zsh": "\x18\x01"}

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")


class Terminal:
    """A shell behind a terminal, among FILES, where pttool and Python only leave a mark."""

    def __init__(self, setup: str, home: Path, files: dict[str, str]) -> None:
        self.shell = setup.split()[0]
        self._words, self._mark = home / "words", home / "started"
        furnish(home, files)
        script = home / "setup"
        script.write_text(REPORT[self.shell] + SETUPS[setup].format(share=home / "share"))
        self.child = pexpect.spawn(
            self.shell,
            ARGUMENTS[self.shell],
            cwd=str(home / "files"),
            env={
                "HOME": str(home),
                "PATH": f"{home / 'bin'}:{os.environ['PATH']}",
                "XDG_DATA_DIRS": str(home / "share"),
                "INPUTRC": "/dev/null",
                "LC_ALL": "C.UTF-8",
                "TERM": "dumb",
            },
            dimensions=(50, 300),
        )
        self.child.delaybeforesend = None
        self.child.send(f"source {script}\r")
        assert self.words("pttool ready") == ["ready"]

    def tab(self, line: str) -> str:
        """Type a line and Tab, and return the last word as a command would get it."""
        return self.words(f"{line}\t")[-1]

    def offered(self, before: str, word: str) -> set[str]:
        """Return the values that the shell offers for a word; a folder without its slash."""
        if self.shell == "fish":
            offers = self._typed(f"offers '{before} {word}'\r")
        else:
            offers = self.words(f"{before} {word}{INSERT_ALL[self.shell]}")
            offers = offers[len(before.split()) - 1 :]
        return {re.sub(r"^--[a-z-]+=", "", offer).rstrip("/") for offer in offers if offer != word}

    def words(self, line: str) -> list[str]:
        """Return the words of a line as typed, less the first, without running it."""
        return self._typed(f"{line}\x01words \r")

    def _typed(self, keys: str) -> list[str]:
        self._words.unlink(missing_ok=True)
        self.child.send(keys)
        shown, deadline = b"", time.monotonic() + 10
        while not self._words.exists():
            assert time.monotonic() < deadline, f"no answer to {keys!r}: {shown!r}"
            with suppress(pexpect.TIMEOUT):
                shown += self.child.read_nonblocking(4096, timeout=0.005)
        assert not self._mark.exists(), f"{keys!r} started {self._mark.read_text()}"
        return self._words.read_text().split("\0")[:-1]


def furnish(home: Path, files: dict[str, str]) -> None:
    """Make FILES, put completion scripts where the wheel puts them, and programs on the PATH."""
    hatch = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["hatch"]
    placed = hatch["build"]["targets"]["wheel"]["shared-data"]
    shells = {target: Path(source).name for source, target in placed.items()}
    contents = {target: files[name] for target, name in shells.items() if name in files}
    contents |= {f"files/{name}": "" for name in FILES}
    for program in ("pttool", "python", "python3"):
        contents[f"bin/{program}"] = f"#!/bin/sh\necho {program} > ~/started\n"
    # Without these, fish reads all manual pages, with Python, when it first starts.
    contents[".local/share/fish/generated_completions/none.fish"] = ""
    for name, text in contents.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
        (home / name).chmod(0o755)


def open_terminal(request: pytest.FixtureRequest, files: dict[str, str]) -> Iterator[Terminal]:
    need(request.param.split()[0])
    if request.param.endswith("bash-completion") and not BASH_COMPLETION.exists():
        pytest.skip("bash-completion is not installed")
    home = request.getfixturevalue("tmp_path_factory").mktemp("home")
    terminal = Terminal(request.param, home, files)
    yield terminal
    terminal.child.close(force=True)


def need(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")


@pytest.fixture(scope="module", params=SETUPS)
def terminal(request: pytest.FixtureRequest) -> Iterator[Terminal]:
    """A terminal with the scripts of completions/."""
    yield from open_terminal(request, {path.name: path.read_text() for path in SCRIPTS})


@pytest.fixture(scope="module", params=SETUPS)
def other(request: pytest.FixtureRequest) -> Iterator[Terminal]:
    """A terminal with the scripts of another program, which has all kinds of arguments."""
    yield from open_terminal(request, other_scripts())


def other_scripts() -> dict[str, str]:
    """Return the scripts of a program that calls itself pttool.

    Its nouns are `ckpt`, `eval`, and `run`, which runs a script.
    """
    root, ckpt, evaluation = noun("A program."), noun("It's for [files]."), noun("Numbers.")
    root.add_typer(ckpt, name="ckpt")
    root.add_typer(evaluation, name="eval")

    @verb(ckpt)
    def diff(
        mode: Annotated[Mode, Argument()],
        files: Annotated[list[str], Argument(metavar="FILE...")],
        into: Annotated[Path | None, Option("--into", "-t", metavar="DIR", help="a: [b]")] = None,
        tag: Annotated[list[str], Option("--tag", metavar="[NAME:]$X", help="It's `c`.")] = [],  # noqa: B006
        secret: Annotated[bool, Option("--secret", hidden=True)] = False,
        like: Annotated[str | None, Option("--like", metavar="MODEL")] = None,
        verbose: Annotated[int, Option("-v", count=True)] = 0,
    ) -> None:
        """Compare checkpoints."""

    @verb(ckpt)
    def convert_cpu(file: Annotated[Path, Argument()]) -> None:
        """Convert one. Or not."""

    @verb(evaluation)
    def report(model: Model, folder: Annotated[Path, Argument(file_okay=False)]) -> None:
        """Report."""

    def run(
        script: Annotated[str, Argument(metavar="SCRIPT")],
        args: Annotated[list[str], Argument(metavar="[ARGS]...")] = [],  # noqa: B006
        fast: Annotated[bool, Option("--fast")] = False,
    ) -> None:
        """Run a script."""

    def weigh(model: Model) -> None:
        """Weigh a model."""

    running = running_noun(run)
    verb(running)(weigh)
    root.add_typer(running, name="run")
    return scripts(command_tree(root), ["resnet18"], ["resnet18", "vit_tiny"])


def test_scripts_in_the_repository_are_as_generated() -> None:
    written = {path.name: path.read_text(encoding="utf-8") for path in SCRIPTS}
    assert written == generated(), "run `make generate`"


def test_model_names_are_those_of_torchvision() -> None:
    torchvision = pytest.importorskip("torchvision", minversion="0.29")
    assert MODEL_NAMES.read_text().split() == sorted(torchvision.models.list_models())


def test_timm_names_are_those_of_timm() -> None:
    """Of the release that the list was made with: each release has new names."""
    timm = pytest.importorskip("timm")
    if timm.__version__ != "1.0.31":
        pytest.skip(f"the list is that of timm 1.0.31, installed is {timm.__version__}")
    assert TIMM_NAMES.read_text().split() == sorted(timm.list_models())


def test_a_list_stays_where_its_library_is_missing(tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("vit_tiny\n")
    write_names(tmp_path / "names.txt", lambda: import_module("no_such_library").list_models())
    assert (tmp_path / "names.txt").read_text() == "vit_tiny\n"


CHECKS = {"pttool.bash": "bash -n", "_pttool": "zsh -n", "pttool.fish": "fish --no-execute"}


@pytest.mark.parametrize("name", CHECKS)
def test_scripts_are_free_of_syntax_errors(name: str) -> None:
    check = CHECKS[name].split()
    need(check[0])
    for text in (generated()[name], other_scripts()[name]):
        subprocess.run(check, input=text, text=True, check=True)


def test_powershell_script_closes_what_it_opens() -> None:
    """Syntax only, and roughly: PowerShell is on none of the machines that run the tests."""
    text = other_scripts()["pttool.ps1"]
    code = re.sub(r"@'\n.*?\n'@|'(?:[^']|'')*'|\"[^\"]*\"|^ *#.*?$", "", text, flags=re.S | re.M)
    count = 1
    while count:
        code, count = re.subn(r"\([^(){}[\]]*\)|\{[^(){}[\]]*\}|\[[^(){}[\]]*\]", "", code)
    assert not re.search(r"[(){}\[\]'\"]", code)


def test_commands_options_and_choices_are_offered(terminal: Terminal) -> None:
    assert terminal.offered("pttool", "") == set(COMMANDS)
    assert {"summary", "params"} <= terminal.offered("pttool model", "")
    assert terminal.offered("pttool", "--v") == {"--version"}
    assert terminal.offered("pttool model summary", "--mo") == {"--mode"}
    assert terminal.offered("pttool model summary --device", "c") == {"cpu", "cuda"}
    assert terminal.offered("pttool model summary", "--device=c") == {"cpu", "cuda"}
    assert terminal.tab("pttool model summary --device=me") == "--device=meta"


def test_models_are_offered_where_one_is_expected(terminal: Terminal) -> None:
    resnets = {"resnet101", "resnet152", "resnet18"}
    assert terminal.offered("pttool model summary", "resnet1") == resnets
    assert terminal.offered("pttool model summary -i a:3,8 -b 2 --device=cpu", "resnet1") == resnets
    assert terminal.offered("pttool model summary resnet18", "resnet1") == set()
    assert terminal.offered("pttool model summary --device", "resnet1") == set()
    assert terminal.offered("pttool model", "resnet1") == set()
    offered = {name.rstrip(":") for name in terminal.offered("pttool model summary", "")}
    assert offered == {*MODEL_NAMES.read_text().split(), "timm", "net.py", "nets"}


def test_models_of_timm_are_offered_after_its_prefix_alone(terminal: Terminal) -> None:
    names = TIMM_NAMES.read_text().split()
    for command in ("pttool model summary", "pttool model freeze"):
        # Where words are split at colons, bash puts the prefix before the first alone.
        offered = terminal.offered(command, "timm:resnet1")
        assert {name.removeprefix("timm:") for name in offered} == {
            name for name in names if name.startswith("resnet1")
        }
    assert len(terminal.offered("pttool model summary", "timm:")) == len(names)
    assert terminal.offered("pttool model summary", "t") == {"timm:"}
    assert terminal.offered("pttool model summary", "xcit_") == set()
    assert terminal.offered("pttool model summary", "timm:no_such") == set()
    assert terminal.offered("pttool model summary resnet18", "timm:resnet1") == set()
    assert terminal.offered("pttool model summary --weights", "timm:resnet1") == set()


@pytest.mark.parametrize("typed", ["timm:", '"timm:', "'timm:", "timm\\:", '"timm:"', "tim\t"])
def test_prefix_of_timm_however_it_is_typed(terminal: Terminal, typed: str) -> None:
    line = f"pttool model summary {typed}resnet101_clip_"
    assert terminal.words(f"{line}\t--json")[2:] == ["timm:resnet101_clip_gap", "--json"]


@pytest.mark.parametrize(
    "before",
    ["freeze resnet18", "freeze resnet18 conv1", "conv-size", "conv-size conv:k3", "conv-size -i"],
)
def test_nothing_is_offered_for_what_only_the_user_knows(terminal: Terminal, before: str) -> None:
    assert terminal.offered(f"pttool model {before}", "") == set()


def test_model_can_be_a_python_file(terminal: Terminal) -> None:
    assert terminal.tab("pttool model summary net.").rstrip(":") == "net.py"
    assert terminal.tab("pttool model summary net.py:Ne") == "net.py:Ne"
    assert terminal.tab("pttool model summary nets/d").rstrip(":") == "nets/deep net.py"
    assert terminal.offered("pttool model summary", "wei") == set()


FILE_NAMES = {
    "we": "weights.pt",
    "my\\ ": "my file.pt",
    '"my f': "my file.pt",
    "'my f": "my file.pt",
    "my:c": "my:colon.pt",
    "my\\:c": "my:colon.pt",
    '"my:c': "my:colon.pt",
    "nets/d": "nets/deep net.py",
    "~/files/we": "files/weights.pt",
}


@pytest.mark.parametrize("before", ["-o ", "--output ", "--output=", "resnet18 --csv -o "])
def test_file_names_survive(terminal: Terminal, before: str) -> None:
    for typed, name in FILE_NAMES.items():
        word = terminal.tab(f"pttool model summary {before}{typed}")
        assert word.endswith(name), typed
        assert word.startswith("--output=") == before.endswith("="), typed


def test_a_word_may_end_at_the_colon(terminal: Terminal) -> None:
    assert "my:colon.pt" in terminal.offered("pttool model summary -o", "my:")


def test_the_rest_of_the_line_stays(terminal: Terminal) -> None:
    back = "\x1b[D" * len(" --json")
    words = terminal.words(f"pttool model summary --device=cu --json{back}\t")
    assert words == ["model", "summary", "--device=cuda", "--json"]


@pytest.mark.parametrize(
    ("before", "word", "offered"),
    [
        ("pttool", "", "ckpt eval run"),
        ("pttool ckpt", "", "diff convert-cpu"),
        ("pttool nonsense", "c", ""),
        ("pttool ckpt", "--h", "--help"),
        ("pttool ckpt diff", "--", "--into --tag --like --help"),
        ("pttool ckpt diff", "", "eval train"),
        ("pttool ckpt diff eval", "w", "weights.pt"),
        ("pttool ckpt diff eval weights.pt net.py", "w", "weights.pt"),
        ("pttool ckpt diff --tag a --tag b -v", "t", "train"),
        ("pttool ckpt diff --tag a", "--ta", "--tag"),
        ("pttool ckpt diff --tag", "", ""),
        ("pttool ckpt diff", "--tag=", ""),
        ("pttool ckpt diff -t", "", "nets"),
        ("pttool ckpt diff", "--into=", "nets"),
        ("pttool ckpt diff --like", "re", "resnet18"),
        ("pttool ckpt diff", "--like=", "resnet18 timm net.py nets"),
        ("pttool ckpt diff --like", "timm:v", "timm:vit_tiny"),
        ("pttool ckpt diff", "--like=timm:v", "timm:vit_tiny"),
        ("pttool ckpt diff --", "--", ""),
        ("pttool ckpt diff -- eval", "w", "weights.pt"),
        ("pttool ckpt convert-cpu", "w", "weights.pt"),
        ("pttool ckpt convert-cpu net.py", "", "--help -h"),
        ("pttool eval report resnet18", "", "nets"),
        ("pttool run", "we", "weigh weights.pt"),
        ("pttool run --fast", "we", "weigh weights.pt"),
        ("pttool run weigh", "re", "resnet18"),
        ("pttool run net.py", "we", "weights.pt"),
        ("pttool run net.py weigh", "we", "weights.pt"),
    ],
)
def test_every_kind_of_argument(other: Terminal, before: str, word: str, offered: str) -> None:
    names = {name.rstrip(":") for name in other.offered(before, word)}
    assert names == set(offered.split())

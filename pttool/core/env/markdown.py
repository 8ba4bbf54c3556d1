"""The settings as Markdown to paste into an issue: without the home folder or the user's name."""

import contextlib
import getpass
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from pttool.core.printable import printable
from pttool.core.report import Report


def markdown(report: Report, environ: Mapping[str, str] = os.environ) -> Iterator[str]:
    """Yield the lines of a table in GitHub's Markdown, folded as long ones are in an issue."""
    mask = Mask.of_user(environ)
    yield "<details><summary>pttool env</summary>\n\n| name | value | advice |\n|---|---|---|\n"
    for item in report.items:
        cells = (item["name"], *(_cell(item[key], mask) for key in ("shown", "advice")))
        yield f"| {' | '.join(cells)} |\n"
    yield "\n</details>\n"


class Mask:
    """Writes ~ for home folders and USER for names of the user, where they stand as a word."""

    def __init__(self, homes: set[str], names: set[str]) -> None:
        self._homes = _words(homes, following=r"(?![\w.-])")
        self._names = _words(names, following=r"(?![A-Za-z0-9])")

    @classmethod
    def of_user(cls, environ: Mapping[str, str]) -> "Mask":
        """Return the mask of who runs this, as the environment and the system know them."""
        homes = {environ.get("HOME", ""), environ.get("USERPROFILE", "")}
        homes |= {str(Path(home).resolve()) for home in homes if home}
        names = {environ.get(name, "") for name in ("USER", "LOGNAME", "USERNAME", "SUDO_USER")}
        with contextlib.suppress(KeyError, OSError, ImportError):  # a user without a name
            names.add(getpass.getuser())
        return cls(homes - {"", "/"}, names - {"", "root"})

    def __call__(self, text: str) -> str:
        """Return the text masked."""
        if self._homes:
            text = self._homes.sub("~", text)
        return self._names.sub("USER", text) if self._names else text


def _words(texts: set[str], following: str) -> re.Pattern[str] | None:
    """Return what finds the texts, the longest first, where no word goes on."""
    if not texts:
        return None
    longest_first = sorted(texts, key=len, reverse=True)
    return re.compile(rf"(?<![A-Za-z0-9])({'|'.join(map(re.escape, longest_first))}){following}")


def _cell(value: object, mask: Mask) -> str:
    text = "" if value is None else printable(mask(str(value)))
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")

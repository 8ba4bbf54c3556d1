"""The names that wrappers of modules leave in state dicts, and how to be rid of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from pttool.errors import UsageError

DATA_PARALLEL = "module."
# The attributes under which torch.compile, FSDP and activation checkpointing keep what they wrap.
WRAPPERS = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")


@dataclass(frozen=True, slots=True)
class Renaming:
    """What becomes of a name: a prefix goes, `wrappers` go anywhere, a prefix comes.

    With `anywhere` a segment `module` goes wherever it stands; with `partial` the prefix goes even
    where not all names of a state dict have it.
    """

    prefix: str = DATA_PARALLEL
    added: str = ""
    anywhere: bool = False
    partial: bool = False
    wrappers: tuple[str, ...] = WRAPPERS

    @classmethod
    def of(
        cls, prefix: str | None, added: str | None, *, anywhere: bool, partial: bool
    ) -> "Renaming":
        """Return what the options say: prefixes end in a dot, and adding one strips none.

        Raises UsageError for a prefix that is no text of Unicode.
        """
        if any(0xD800 <= ord(character) <= 0xDFFF for character in f"{prefix}{added}"):
            raise UsageError(
                "a prefix isn't valid UTF-8", "type it in the encoding of the terminal"
            )
        if added is not None and prefix is None:
            return cls("", _dotted(added), anywhere, partial, ())
        stripped = DATA_PARALLEL if prefix is None else prefix
        return cls(_dotted(stripped), _dotted(added or ""), anywhere, partial)

    def renamed(self, name: str, *, strip: bool = True) -> str:
        """Return the new name of a tensor."""
        segments = [part for part in name.split(".") if part not in self.wrappers]
        if self.anywhere:
            segments = [part for part in segments if part != "module"]
        name = ".".join(segments)
        if strip and self.prefix:
            name = name.removeprefix(self.prefix)
        return name

    def all_renamed(self, names: Sequence[str]) -> list[str]:
        """Return the new names of the tensors of one state dict, in order."""
        strip = self.strips(names)
        return [self.added + self.renamed(name, strip=strip) for name in names]

    def strips(self, names: Sequence[str]) -> bool:
        """Whether the prefix goes from the names of one state dict."""
        return self.partial or all(map(self.has_prefix, names))

    def has_prefix(self, name: str) -> bool:
        """Whether the prefix would go from a name."""
        unwrapped = ".".join(part for part in name.split(".") if part not in self.wrappers)
        return bool(self.prefix) and unwrapped.startswith(self.prefix)


def _dotted(prefix: str) -> str:
    return f"{prefix}." if prefix and not prefix.endswith(".") else prefix

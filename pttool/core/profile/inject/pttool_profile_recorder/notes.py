"""What the recorder has to say besides numbers, its own failures included."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

LONGEST = 20


class Notes:
    """Texts for the report. As a context, it takes in what goes wrong: the script goes on.

    This is the one place where every exception is caught: nothing that the recorder does may end
    or change the script. KeyboardInterrupt and SystemExit are the script's, and pass.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []

    def add(self, text: str) -> None:
        """Keep a text, once."""
        if text not in self.texts and len(self.texts) < LONGEST:
            self.texts.append(text)

    def __enter__(self) -> None:
        """Begin what may fail."""

    def __exit__(
        self,
        kind: "type[BaseException] | None",
        error: "BaseException | None",
        traceback: "TracebackType | None",
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        self.add(f"the recorder failed in part: {type(error).__name__}: {error}")
        return True

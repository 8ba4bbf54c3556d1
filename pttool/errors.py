"""The failures a user can cause or meet, and the exit code of each."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What a shell script may rely on."""

    OK = 0
    CHECK_FAILED = 1
    USAGE = 2
    BAD_INPUT = 3
    UNAVAILABLE = 4
    INTERNAL = 70
    INTERRUPTED = 130


class PttoolError(Exception):
    """An expected failure: one line that says what is wrong and where, one that says what to do."""

    exit_code: ExitCode

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class CheckFailedError(PttoolError):
    """The check said no: a gate failed, a comparison differs, a condition is not met."""

    exit_code = ExitCode.CHECK_FAILED


class UsageError(PttoolError):
    """The command line is wrong."""

    exit_code = ExitCode.USAGE


class InputError(PttoolError):
    """An input can't be read or isn't what it should be."""

    exit_code = ExitCode.BAD_INPUT


class UnavailableError(PttoolError):
    """Something this needs is not here: a driver, weights, an optional package, room on a disk."""

    exit_code = ExitCode.UNAVAILABLE

"""`pttool` and `python -m pttool`."""

import sys


def main() -> None:
    """Answer --version at once; else run the command line. Ends the process with its exit code."""
    from pttool.guard import guarded

    sys.exit(guarded(_print_version if sys.argv[1:] == ["--version"] else _run_cli))


def _print_version() -> int:
    from pttool import __version__

    if sys.stdout is not None:
        sys.stdout.write(f"pttool {__version__}\n")
    return 0


def _run_cli() -> int:
    import gc
    import signal

    from pttool.cli import run

    # Importing torch makes a million objects that live as long as the process; looking through
    # them for garbage again and again takes a fifth of that time.
    gc.set_threshold(200_000)
    interrupts: list[int] = []

    def interrupt(number: int, frame: object) -> None:
        interrupts.append(128 + number)
        raise KeyboardInterrupt

    # So that temporary files go, whoever ends the process: a user, a scheduler, a closed terminal.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) in (signal.default_int_handler, signal.SIG_DFL):
            signal.signal(number, interrupt)
    try:
        code = run(sys.argv[1:])
    except BaseException:
        if interrupts:
            raise KeyboardInterrupt(interrupts[0]) from None
        raise
    # Libraries swallow an interrupt that comes while they are imported.
    return interrupts[0] if interrupts else code


if __name__ == "__main__":
    # `python -m` puts the working folder first, where a stray enum.py would shadow Python's own.
    if not sys.flags.safe_path:
        del sys.path[0]
    main()

"""The colour of each phase, the same in every picture of a profile."""

# Far apart for most kinds of colour blindness (Okabe and Ito, https://jfly.uni-koeln.de/color/),
# lightened so that black text can be read on each.
_COLOURS = {
    "data_wait": "#f0a35e",
    "forward": "#8cc8f0",
    "backward": "#6fb3a0",
    "optimizer": "#f0e070",
    "save": "#d9a3c4",
    "other": "#c9c9c9",
    "startup": "#b7b2e0",
    "interpreter": "#d8d5ee",
    "profiler": "#e8e8e8",
    "exit": "#d6cfc4",
    "worker": "#f6cfa8",
}
_ELSE = "#dddddd"


def colour_of(phase: str) -> str:
    """Return the colour of a phase as CSS has it."""
    return _COLOURS.get(phase, _ELSE)

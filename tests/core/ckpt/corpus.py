"""The corpus: one small checkpoint of every kind, written with the libraries themselves."""

from pathlib import Path

from tests.core.ckpt import (
    corpus_containers,
    corpus_objects,
    corpus_old,
    corpus_state_dicts,
    corpus_tensors,
    corpus_zips,
)
from tests.core.ckpt.corpus_kinds import Kind

THEMES = (
    corpus_state_dicts,
    corpus_tensors,
    corpus_objects,
    corpus_zips,
    corpus_containers,
    corpus_old,
)
KINDS: dict[str, Kind] = {kind.name: kind for theme in THEMES for kind in theme.THEME}


def write_all(folder: Path) -> dict[str, Path]:
    """Write every kind below a folder; return the path of each by its name."""
    return {name: kind.write(folder) for name, kind in KINDS.items()}

"""The side of core.children that runs in the child: it imports little, to start at once."""

import importlib
import json
import os
from collections.abc import Callable
from typing import Any


def run_child(module: str) -> None:
    """Run `tell_all` of a module; what it tells goes to stdout, and all else printed to stderr."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as stream:
        os.dup2(2, 1)

        def tell(**values: Any) -> None:
            stream.write(json.dumps(values) + "\n")
            stream.flush()

        tell_all: Callable[[Callable[..., None]], None] = importlib.import_module(module).tell_all
        tell_all(tell)

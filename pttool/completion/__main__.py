"""`python -m pttool.completion`: write completions/, and the lists of names in pttool/data."""

from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path

from pttool.cli import COMMANDS, build
from pttool.completion import scripts
from pttool.completion.tree import command_tree

REPOSITORY = Path(__file__).parents[2]
DATA = Path(__file__).parents[1] / "data"
MODEL_NAMES = DATA / "model_names.txt"
TIMM_NAMES = DATA / "timm_names.txt"
TORCH_GLOBALS = DATA / "torch_globals.txt"


def main() -> None:
    """Write the lists of names, then the scripts, over those of the repository."""
    write_names(MODEL_NAMES, lambda: import_module("torchvision.models").list_models())
    write_names(TIMM_NAMES, lambda: import_module("timm").list_models())
    write_names(TORCH_GLOBALS, torch_globals)
    folder = REPOSITORY / "completions"
    folder.mkdir(exist_ok=True)
    for name, text in generated().items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")


def generated() -> dict[str, str]:
    """Return the scripts as the commands and the listed models are now."""
    models, timm = (file.read_text(encoding="utf-8").split() for file in (MODEL_NAMES, TIMM_NAMES))
    return scripts(command_tree(build(list(COMMANDS))), models, timm)


def torch_globals() -> list[str]:
    """Return the names that torch.load(weights_only=True) imports unless told otherwise."""
    return list(import_module("torch._weights_only_unpickler")._get_allowed_globals())


def write_names(file: Path, listed: Callable[[], Iterable[str]]) -> None:
    """Write the names that a library lists; where it can't be imported the file stays as it is."""
    try:
        names = listed()
    except (ImportError, RuntimeError):
        return
    file.write_text("".join(f"{name}\n" for name in sorted(names)), newline="\n")


if __name__ == "__main__":
    main()

"""`python -m pttool.completion`: write completions/ and the lists of model names they hold."""

from importlib import import_module
from pathlib import Path

from pttool.cli import COMMANDS, build
from pttool.completion import scripts
from pttool.completion.tree import command_tree

REPOSITORY = Path(__file__).parents[2]
DATA = Path(__file__).parents[1] / "data"
MODEL_NAMES = DATA / "model_names.txt"
TIMM_NAMES = DATA / "timm_names.txt"


def main() -> None:
    """Write the names of the models, then the scripts, over those of the repository."""
    write_names(MODEL_NAMES, "torchvision.models")
    write_names(TIMM_NAMES, "timm")
    folder = REPOSITORY / "completions"
    folder.mkdir(exist_ok=True)
    for name, text in generated().items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")


def generated() -> dict[str, str]:
    """Return the scripts as the commands and the listed models are now."""
    models, timm = (file.read_text(encoding="utf-8").split() for file in (MODEL_NAMES, TIMM_NAMES))
    return scripts(command_tree(build(list(COMMANDS))), models, timm)


def write_names(file: Path, library: str) -> None:
    """Write the names of a library's models; where it can't be imported the list stays as it is."""
    try:
        names = import_module(library).list_models()
    except (ImportError, RuntimeError):
        return
    file.write_text("".join(f"{name}\n" for name in sorted(names)), newline="\n")


if __name__ == "__main__":
    main()

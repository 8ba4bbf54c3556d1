"""`python -m pttool.completion`: write completions/ and the list of model names they hold."""

from pathlib import Path

from pttool.cli import COMMANDS, build
from pttool.completion import scripts
from pttool.completion.tree import command_tree

REPOSITORY = Path(__file__).parents[2]
MODEL_NAMES = Path(__file__).parents[1] / "data" / "model_names.txt"


def main() -> None:
    """Write the names of the models, then the scripts, over those of the repository."""
    write_model_names()
    folder = REPOSITORY / "completions"
    folder.mkdir(exist_ok=True)
    for name, text in generated().items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")


def generated() -> dict[str, str]:
    """Return the scripts as the commands and the listed models are now."""
    models = MODEL_NAMES.read_text(encoding="utf-8").split()
    return scripts(command_tree(build(list(COMMANDS))), models)


def write_model_names() -> None:
    """Write the names that torchvision publishes; without torchvision the list stays as it is."""
    try:
        from torchvision.models import list_models
    except (ImportError, RuntimeError):
        return
    MODEL_NAMES.write_text("".join(f"{name}\n" for name in sorted(list_models())), newline="\n")


if __name__ == "__main__":
    main()

"""The book of recipes: each is answered, each answer exists and runs."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import av
import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from torchvision.models import resnet18

import pttool.recipes
from pttool.cli import COMMANDS
from pttool.core.recipes.book import BOOK, Recipe, book, without_arguments
from pttool.core.recipes.page import page
from pttool.core.recipes.readme import with_table
from pttool.core.recipes.recipes import COLUMNS
from tests.conftest import Program, Pttool, assert_refused

ROOT = Path(__file__).parents[2]
RECIPES = book()
# Nouns that issues promise: their lines are tested as soon as the nouns are there.
PROMISED = {"features", "profile"}
# Lines that need no GPU, no weights and no script of a user, and so are run as they stand.
RUN = {"model", "ckpt", "eval", "video", "curve", "lr"}
LINES = sorted({line for recipe in RECIPES for line in recipe.commands})


@pytest.fixture(scope="session")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the book's lines and codes name."""
    folder = tmp_path_factory.mktemp("inputs")
    torch.save(resnet18().state_dict(), folder / "weights.pt")
    torch.save(nn.Linear(2, 2).state_dict(), folder / "gpu.pt")
    torch.save(nn.DataParallel(nn.Linear(2, 2)).state_dict(), folder / "ddp.pt")
    labels = np.arange(20) % 4
    np.savez(folder / "preds.npz", label=labels, logits=np.eye(4)[labels])
    (folder / "log.csv").write_text("epoch,loss\n0,1.0\n1,0.5\n2,0.25\n")
    Image.new("RGB", (32, 24), (255, 0, 0)).save(folder / "picture.jpg")
    with av.open(folder / "clip.mp4", "w") as container:
        stream = container.add_stream("mpeg4", rate=25, width=64, height=48)
        for _ in range(12):
            container.mux(stream.encode(av.VideoFrame(64, 48, "yuv420p")))
        container.mux(stream.encode())
    return folder


@pytest.fixture(scope="session")
def failures(inputs: Path) -> dict[str, str]:
    """What went wrong in the pages of all recipes, run as a user would who saves and runs them."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.cli.snippets"],
        cwd=inputs,
        env={"PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""},
        input=json.dumps({recipe.number: page(recipe) for recipe in RECIPES}),
        capture_output=True,
        encoding="utf-8",
        check=True,
        timeout=300,
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found


def _numbered(recipe: Recipe) -> str:
    return f"{recipe.number}-{recipe.name}"


def test_all_41_are_there_with_an_answer_and_code() -> None:
    assert [recipe.number for recipe in RECIPES] == list(range(1, 42))
    assert len({recipe.name for recipe in RECIPES}) == 41
    for recipe in RECIPES:
        assert recipe.kinds
        assert recipe.code.strip()
    text = BOOK.read_text(encoding="utf-8")
    assert text.isascii(), "a page goes to terminals of any encoding"
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize("recipe", RECIPES, ids=_numbered)
def test_the_page_runs(recipe: Recipe, failures: dict[str, str]) -> None:
    assert failures.get(str(recipe.number)) is None


@pytest.mark.parametrize("recipe", RECIPES, ids=_numbered)
def test_functions_exist_and_the_code_uses_them(recipe: Recipe) -> None:
    for name in recipe.functions:
        assert name in pttool.recipes.__all__
        assert f"{name}(" in recipe.code


def test_every_function_answers_a_recipe() -> None:
    functions = {name for name in pttool.recipes.__all__ if name.islower()}
    assert functions == {name for recipe in RECIPES for name in recipe.functions}


@pytest.mark.parametrize("line", LINES)
def test_a_command_exists_and_runs_where_it_can(
    line: str, pttool: Pttool, inputs: Path, tmp_path: Path
) -> None:
    noun = line.split()[1]
    if noun not in COMMANDS:
        assert noun in PROMISED
        pytest.skip(f"`pttool {noun}` isn't there yet")
    asked = pttool(*without_arguments(line).split()[1:], "--help")
    assert asked.returncode == 0, asked.stderr
    assert without_arguments(line) in asked.stdout
    if noun in RUN:
        for file in inputs.iterdir():
            (tmp_path / file.name).symlink_to(file)
        done = pttool(*shlex.split(line)[1:])
        assert done.returncode == 0, done.stderr


def test_the_list_names_every_answer(pttool: Pttool) -> None:
    done = pttool("recipes")
    assert (done.returncode, done.stderr) == (0, "")
    rows = done.stdout.splitlines()[1:]
    assert len(rows) == 41
    for row, recipe in zip(rows, RECIPES, strict=True):
        assert row.split()[:2] == [str(recipe.number), recipe.name]
        assert ", ".join(recipe.answers) in row


@pytest.mark.parametrize("shown", ["27", "mixup", " MixUp "])
def test_one_is_shown_as_a_program(shown: str, pttool: Pttool) -> None:
    done = pttool("recipes", shown)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == page(RECIPES[26])
    assert done.stdout.startswith("# 27. Mixup\n#\n# Library:     torchvision")
    assert done.stdout.endswith(RECIPES[26].code)


def test_a_word_lists_what_it_is_about(pttool: Pttool) -> None:
    items = json.loads(pttool("recipes", "param_groups", "--json").stdout)["items"]
    assert [item["number"] for item in items] == [23, 29]
    assert "warmup_cosine" in pttool("recipes", "Schedule").stdout


@pytest.mark.parametrize(
    ("word", "number"),
    [("syncbn", 11), ("GAP", 9), ("onehot", 6), ("mixed precision", 39), ("dropout", 37)],
)
def test_the_words_that_people_use_find_it(word: str, number: int, pttool: Pttool) -> None:
    items = json.loads(pttool("recipes", word, "--json").stdout)["items"]
    assert number in [item["number"] for item in items]


def test_a_narrow_terminal_keeps_what_the_recipe_is_for() -> None:
    shown = {column.key: column.optional for column in COLUMNS}
    assert (shown["title"], shown["answers"]) == (False, True)


def test_data_formats_carry_the_fields(pttool: Pttool, tmp_path: Path) -> None:
    (item,) = json.loads(pttool("recipes", "36", "--json").stdout)["items"]
    assert (item["name"], item["kinds"]) == ("resume", "F")
    assert item["functions"] == ["save_checkpoint", "load_checkpoint"]
    assert item["code"] == RECIPES[35].code
    assert pttool("recipes", "36", "-o", "page.txt").returncode == 0
    assert (tmp_path / "page.txt").read_text() == page(RECIPES[35])


@pytest.mark.parametrize(
    ("wanted", "hint"),
    [
        ("42", "they go from 1 to 41"),
        ("0", "they go from 1 to 41"),
        ("1.5", "they go from 1 to 41"),
        ("mixpu", "nearest: mixup"),
        ("", "`pttool recipes` lists them"),
        ("\x1b[31m", "`pttool recipes` lists them"),
    ],
)
def test_an_unknown_one_is_refused_with_the_nearest(wanted: str, hint: str, pttool: Pttool) -> None:
    assert_refused(pttool("recipes", wanted), 2, "there is no recipe", hint)


def test_the_book_is_read_without_torch(program: Program) -> None:
    done = program("recipes", "2", env={"PYTHONPROFILEIMPORTTIME": "1"})
    assert done.stdout == page(RECIPES[1])
    assert "pttool.core.recipes.book" in done.stderr
    assert " torch" not in done.stderr


def test_the_table_in_the_readme_is_current() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text == with_table(text), "make generate rewrites it"
    for recipe in RECIPES:
        assert f"| {recipe.number} | {recipe.title} |" in text

"""`pttool lr` as users run it."""

import json
from pathlib import Path

import pytest

from tests.conftest import Program, Pttool, assert_refused

CHAIN = ("warmup(5)+cosine", "--epochs", "10", "--lr", "0.1")


def test_the_table_holds_what_each_epoch_is_trained_with(pttool: Pttool) -> None:
    done = pttool("lr", "table", *CHAIN, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert [item["epoch"] for item in document["items"]] == list(range(10))
    rates = [item["lr"] for item in document["items"]]
    # (k + 1) / 6 of the lr in the warm-up; then half a cosine over 5 epochs.
    assert rates[:6] == pytest.approx([0.1 * k / 6 for k in range(1, 7)])
    assert rates[-1] == pytest.approx(0.00954915)
    assert all(item["momentum"] is None for item in document["items"])
    assert document["summary"]["scheduler"].startswith("SequentialLR(optimizer, [LinearLR(")


def test_csv_and_a_piped_table(pttool: Pttool) -> None:
    args = ("lr", "table", "multistep(1, 2, g=0.5)", "--epochs", "3", "--lr", "1")
    assert pttool(*args, "--csv").stdout == (
        "epoch,step,lr,momentum\n0,0,1.0,\n1,1,0.5,\n2,2,0.25,\n"
    )
    table = pttool(*args).stdout.splitlines()
    assert [line.split() for line in table[:4]] == [
        ["Epoch", "LR"], ["0", "1.0"], ["1", "0.5"], ["2", "0.25"],
    ]  # fmt: skip
    assert table[-1].endswith("MultiStepLR(optimizer, milestones=[1, 2], gamma=0.5)")


def test_steps_and_every_so_many_of_them(pttool: Pttool) -> None:
    done = pttool(
        "lr", "table", "onecycle", "--epochs", "2", "--lr", "0.01",
        "--steps-per-epoch", "100", "--every", "50", "--ndjson",
    )  # fmt: skip
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["epoch"], row["step"]) for row in rows] == [(0, 0), (0, 50), (1, 100), (1, 150)]
    assert rows[0]["lr"] == pytest.approx(0.01 / 25)
    assert rows[0]["momentum"] == pytest.approx(0.95)


def test_what_is_wrong_in_spec_is_pointed_at(program: Program, pttool: Pttool) -> None:
    args = ("--epochs", "10", "--lr", "0.1")
    refused = program("lr", "plot", "warmup(5)+cosin", *args)
    assert_refused(refused, 2, "no scheduler 'cosin' (character 11)", "Did you mean 'cosine'?")
    assert_refused(pttool("lr", "table", "plateau", *args), 2, "only training knows")
    assert_refused(pttool("lr", "table", "lambda", *args), 2, "Python function")
    assert_refused(pttool("lr", "table", "cosine", "--epochs", "3", "--lr", "0"), 2, "--lr 0")
    assert_refused(pttool("lr", "table", "cosine", "--epochs", "0", "--lr", "1"), 2, "--epochs")


def test_a_plot_in_characters_and_as_pictures(pttool: Pttool, tmp_path: Path) -> None:
    drawn = pttool("lr", "plot", *CHAIN)
    assert drawn.returncode == 0
    assert drawn.stdout.startswith("warmup(5)+cosine, lr 0.1\nlr\n")
    assert "\x1b" not in drawn.stdout
    assert max(map(len, drawn.stdout.splitlines())) <= 80
    for name, magic in (("lr.png", b"\x89PNG"), ("lr.svg", b"<?xml"), ("lr.txt", b"warmup")):
        done = pttool("lr", "plot", *CHAIN, "-o", name)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert (tmp_path / name).read_bytes().startswith(magic)
    assert_refused(pttool("lr", "plot", *CHAIN, "-o", "lr.png"), 2, "already exists")
    assert_refused(pttool("lr", "plot", *CHAIN, "-o", "lr.gif"), 2, ".png .svg")
    assert_refused(pttool("lr", "plot", *CHAIN, "-o", "x.png", "--csv"), 2, "two formats")


def test_rates_at_the_edge_of_floats_are_drawn_without_a_warning(program: Program) -> None:
    args = ("exp(10)", "--epochs", "300", "--lr", "0.1", "--log", "-o", "x.png")
    done = program("lr", "plot", *args)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_momentum_has_a_panel_where_it_moves(pttool: Pttool) -> None:
    args = ("--epochs", "20", "--lr", "0.1")
    assert "\nmomentum\n" in pttool("lr", "plot", "onecycle", *args).stdout
    assert "\nmomentum\n" not in pttool("lr", "plot", "cosine", *args).stdout

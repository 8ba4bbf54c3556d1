"""`pttool features` as its users run it: what it writes and refuses, and by which exit code."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import PTTOOL, Program, Pttool, assert_refused
from tests.core.features.edge_set import KINDS, make_all
from tests.core.features.small import made, tree

NET = ("net.py:Net", "pictures", "--batch-size", "2", "--part-size", "4")
EXTRACT = ("features", "extract", *NET, "-l", "conv,head")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder that the program runs in, with a network and 9 pictures; the fourth is empty."""
    return made(tmp_path, 9, broken=[3])


def summary(stdout: str) -> dict[str, object]:
    """Return the summary of a JSON document."""
    found: dict[str, object] = json.loads(stdout)["summary"]
    return found


def test_every_key_that_scripts_rely_on_is_in_the_json(pttool: Pttool, folder: Path) -> None:
    done = pttool(*EXTRACT, "-o", "out", "--json")
    assert done.returncode == 3
    assert "1 of 9 pictures are left out" in done.stderr
    found = summary(done.stdout)
    assert {
        "model", "weights", "layers", "images", "failed", "parts", "parts_reused", "seconds",
        "images_per_s", "forward_fraction", "peak_rss_bytes",
    } <= found.keys()  # fmt: skip
    assert found["layers"] == {
        "conv": {"shape": [8, 4, 14, 14], "dtype": "float32", "bytes": 25088},
        "head": {"shape": [8, 3], "dtype": "float32", "bytes": 96},
    }
    assert (found["images"], found["failed"], found["parts"]) == (9, 1, 3)


def test_the_same_command_goes_on(pttool: Pttool, folder: Path) -> None:
    pttool(*EXTRACT, "-o", "out", "--merge")
    before = tree(folder / "out")
    (folder / "out" / "part-00001.json").unlink()
    done = pttool(*EXTRACT, "-o", "out", "--merge", "--json")
    assert summary(done.stdout)["parts_reused"] == 2
    assert tree(folder / "out") == before


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("features", "extract", *NET, "-l", "conv"), 2, ("-o DIR",)),
        (("features", "extract", *NET, "-o", "out"), 2, ("features layers",)),
        (("features", "extract", "net.py:Net", "-l", "conv", "-o", "out"), 2, ("no FILE",)),
        (("features", "extract", *NET, "-l", "cnv", "-o", "out"), 2, ("no such layer", "conv")),
        ((*EXTRACT, "-o", "pictures"), 2, ("holds other things than features",)),
        ((*EXTRACT, "-o", "out", "--shard", "2/2"), 2, ("0/4 to --shard 3/4",)),
        ((*EXTRACT, "-o", "out", "--pool", "cls"), 2, ("--pool cls",)),
        ((*EXTRACT, "-o", "out", "--weights", "no.pt"), 3, ("no.pt",)),
        ((*EXTRACT, "-o", "out", "--device", "cuda"), 4, ("CUDA",)),
        (("features", "merge", "pictures"), 3, ("holds no features",)),
        (("features", "merge", "out", "--format", "hdf5"), 2, ("hdf5",)),
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_is_written(
    pttool: Pttool, folder: Path, arguments: tuple[str, ...], code: int, words: tuple[str, ...]
) -> None:
    assert_refused(pttool(*arguments), code, *words)
    assert not (folder / "out").exists()


def test_another_configuration_is_refused_by_name(pttool: Pttool, folder: Path) -> None:
    pttool(*EXTRACT, "-o", "out")
    other = (*EXTRACT, "-o", "out", "--threads", "2")
    assert_refused(pttool(*other), 2, "running.threads was 1, is now 2", "--overwrite")
    assert pttool(*other, "--overwrite").returncode == 3


def test_shards_are_joined_by_merge(pttool: Pttool, folder: Path) -> None:
    pttool(*EXTRACT, "-o", "alone", "--merge")
    assert pttool(*EXTRACT, "-o", "out", "--shard", "1/2").returncode == 0
    assert_refused(pttool("features", "merge", "out"), 3, "2 of 3 parts are missing: 0, 2")
    assert pttool(*EXTRACT, "-o", "out", "--shard", "0/2").returncode == 3
    assert pttool("features", "merge", "out").returncode == 0
    assert tree(folder / "out") == tree(folder / "alone")


def test_ranks_of_torchrun_share_the_parts(
    pttool: Pttool, folder: Path, environment: dict[str, str]
) -> None:
    pttool(*EXTRACT, "-o", "alone", "--merge")
    for_ranks = {**environment, "WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pttool", *EXTRACT, "-o", "out", "--merge", "--json"]
    ranks = [
        subprocess.Popen(
            command,
            cwd=folder,
            env={**for_ranks, "RANK": rank},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for rank in ("0", "1")
    ]
    found = [rank.communicate()[0] for rank in ranks]
    assert [summary(stdout)["parts"] for stdout in found] == [2, 1]
    # A rank that fails before the others are done would have torchrun end them.
    assert {rank.returncode for rank in ranks} <= {0, 3}
    assert 3 in [rank.returncode for rank in ranks]
    assert tree(folder / "out") == tree(folder / "alone")


def test_a_list_of_pictures_on_standard_input(folder: Path, environment: dict[str, str]) -> None:
    names = b"pictures/2.png\0pictures/0.png\0"
    command = [
        PTTOOL, "features", "extract", "net.py:Net", "-", "-0", "-l", "head", "-o", "out", "--merge"
    ]  # fmt: skip
    done = subprocess.run(command, cwd=folder, env=environment, input=names, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert (folder / "out" / "ids.txt").read_text() == "pictures/2.png\npictures/0.png\n"
    assert np.load(folder / "out" / "head.npy", mmap_mode="r").shape == (2, 3)


def test_every_kind_of_picture_has_its_row_and_four_are_logged(
    pttool: Pttool, tmp_path: Path
) -> None:
    made(tmp_path, 0)
    make_all(tmp_path / "pictures")
    done = pttool(*EXTRACT, "-o", "out", "--merge")
    assert done.returncode == 3
    readable = [name for name, kind in KINDS.items() if kind.pixels is not None]
    ids = (tmp_path / "out" / "ids.txt").read_text(encoding="utf-8").splitlines()
    assert sorted(ids) == sorted(readable)
    assert len(np.load(tmp_path / "out" / "conv.npy")) == len(readable) == 23
    assert len((tmp_path / "out" / "failures.jsonl").read_text().splitlines()) == 4


def test_exif_turns_pictures_unless_told_not_to(pttool: Pttool, tmp_path: Path) -> None:
    made(tmp_path, 0)
    (tmp_path / "all").mkdir()
    make_all(tmp_path / "all")
    os.rename(tmp_path / "all" / "on-its-side.png", tmp_path / "pictures" / "1.png")
    os.rename(tmp_path / "all" / "rgb.png", tmp_path / "pictures" / "2.png")
    pttool(*EXTRACT, "-o", "turned", "--merge")
    pttool(*EXTRACT, "-o", "stored", "--merge", "--no-exif")
    turned, upright = np.load(tmp_path / "turned" / "conv.npy")
    assert not np.array_equal(turned, upright)
    stored, upright = np.load(tmp_path / "stored" / "conv.npy")
    assert np.array_equal(stored, upright)
    manifest = json.loads((tmp_path / "stored" / "manifest.json").read_text())
    assert manifest["configuration"]["images"]["exif"] is False


def test_tokens_of_a_vision_transformer(pttool: Pttool, folder: Path) -> None:
    done = pttool(
        "features", "extract", "vit_b_16", "pictures/0.png", "--weights", "none", "-o", "out",
        "--layer", "encoder.ln", "--merge",
    )  # fmt: skip
    assert done.returncode == 0
    assert "random weights" in done.stderr
    assert np.load(folder / "out" / "encoder.ln.npy").shape == (1, 197, 768)


def test_without_a_network_it_says_so_in_one_line(program: Program, folder: Path) -> None:
    done = program(
        "features", "extract", "resnet18", "pictures", "-l", "avgpool", "-o", "out",
        env={"TORCH_HOME": str(folder / "nothing"), "https_proxy": "http://127.0.0.1:9"},
    )  # fmt: skip
    assert_refused(done, 4, "weights are not kept here", "--weights")
    assert not (folder / "out").exists()


def test_layers_are_listed_by_the_names_that_extract_takes(pttool: Pttool) -> None:
    done = pttool("features", "layers", "vgg16", "--json")
    listed = {item["name"]: item for item in json.loads(done.stdout)["items"]}
    assert listed["features.29"]["output_shape"] == [1, 512, 14, 14]
    assert "relu5_3" in listed["features.29"]["aliases"]
    assert listed["features.29"]["image_bytes"] == 512 * 14 * 14 * 4


def test_layers_of_a_model_without_a_size_of_its_own(pttool: Pttool, folder: Path) -> None:
    assert_refused(pttool("features", "layers", "net.py:Net"), 2, "-i 3,224,224")
    done = pttool("features", "layers", "net.py:Net", "-i", "3,32,32", "--csv")
    assert done.stdout.splitlines()[1].startswith("conv,Conv2d,")

"""Features are those of the model, row for row; what is left out is said; a folder is one run's."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision import transforms

from pttool.core.features.requests import ModelRequest, Sharing
from pttool.core.features.types import Format, Pool
from pttool.core.foreign import load_from_file
from pttool.core.model.spec import FileModel
from pttool.errors import InputError, PttoolError, UnavailableError, UsageError
from tests.core.features.small import extracted, made, request, tree

# torchvision's reference recipe for ImageNet's validation pictures.
RECIPE = transforms.Compose([
    transforms.Resize(256),
    transforms.CenterCrop(224),
    transforms.ToTensor(),
    transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
])  # fmt: skip


def references(folder: Path, batches: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what conv and head give for batches of pictures; None in a batch is zeros."""
    torch.manual_seed(0)
    net = load_from_file(folder / "net.py", "Net")().eval()
    convs, heads = [], []
    for numbers in batches:
        pictures = torch.zeros(len(numbers), 3, 224, 224)
        readable = []
        for slot, number in enumerate(numbers):
            path = folder / "pictures" / f"{number}.png"
            if path.stat().st_size:
                pictures[slot] = RECIPE(Image.open(path))
                readable.append(slot)
        with torch.inference_mode():
            conv = net.conv(pictures)
            convs.append(conv[readable].clone())
            heads.append(net(pictures)[readable])
    return torch.cat(convs), torch.cat(heads)


def test_rows_are_what_the_model_gives_and_a_bad_picture_keeps_its_slot(tmp_path: Path) -> None:
    made(tmp_path, 7, broken=[1, 4])
    report = extracted(request(tmp_path, batch_size=3, part_size=5), tmp_path / "out")
    torch.set_num_threads(1)
    conv, head = references(tmp_path, [[0, 1, 2], [3, 4], [5, 6]])
    parts = [np.load(tmp_path / "out" / "conv" / f"part-0000{part}.npy") for part in (0, 1)]
    assert [len(part) for part in parts] == [3, 2]
    assert np.array_equal(np.concatenate(parts), conv.numpy())
    heads = [np.load(path) for path in sorted((tmp_path / "out" / "head").iterdir())]
    assert np.array_equal(np.concatenate(heads), head.numpy())
    ids = (tmp_path / "out" / "ids.txt").read_text().splitlines()
    assert ids == ["0.png", "2.png", "3.png", "5.png", "6.png"]
    lines = (tmp_path / "out" / "failures.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [
        {"input": 1, "id": "1.png", "reason": "empty file"},
        {"input": 4, "id": "4.png", "reason": "empty file"},
    ]
    assert isinstance(report.failure, InputError)
    assert "2 of 7 pictures are left out" in report.failure.message


def test_the_report_and_the_manifest_say_what_there_is(tmp_path: Path) -> None:
    made(tmp_path, 5)
    report = extracted(request(tmp_path), tmp_path / "out", joined=Format.NPY)
    assert report.failure is None
    assert report.summary["layers"] == {
        "conv": {"shape": [5, 4, 14, 14], "dtype": "float32", "bytes": 5 * 4 * 14 * 14 * 4},
        "head": {"shape": [5, 3], "dtype": "float32", "bytes": 60},
    }
    counted = {key: report.summary[key] for key in ("images", "failed", "parts", "parts_reused")}
    assert counted == {"images": 5, "failed": 0, "parts": 2, "parts_reused": 0}
    assert 0 < report.summary["forward_fraction"] < 1
    assert report.summary["images_per_s"] > 0
    assert report.summary["peak_rss_bytes"] > 1 << 20
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["layers"]["head"] == {"folder": "head", "shape": [3], "dtype": "float32"}
    assert manifest["parts"] == {"count": 2, "size": 4}
    assert manifest["totals"] == {"images": 5, "failed": 0, "rows": 5}
    configuration = manifest["configuration"]
    assert configuration["running"]["threads"] == 1
    assert configuration["images"]["exif"] is True
    assert configuration["versions"]["torch"] == torch.__version__
    assert len(configuration["model"]["weights_sha256"]) == 64


def test_one_process_and_two_write_the_same_files(tmp_path: Path) -> None:
    made(tmp_path, 9, broken=[3])
    asked = request(tmp_path)
    extracted(asked, tmp_path / "one", joined=Format.NPY)
    two = extracted(asked, tmp_path / "two", Sharing(processes=2), joined=Format.NPY)
    assert two.summary["processes"] == 2
    assert tree(tmp_path / "one") == tree(tmp_path / "two")


def test_what_is_finished_is_kept(tmp_path: Path) -> None:
    asked = request(made(tmp_path, 10))
    extracted(asked, tmp_path / "out")
    before = tree(tmp_path / "out")
    (tmp_path / "out" / "part-00001.json").unlink()
    (tmp_path / "out" / "head" / "part-00002.npy").write_bytes(b"cut short")
    kept = (tmp_path / "out" / "conv" / "part-00000.npy").stat().st_mtime_ns
    report = extracted(asked, tmp_path / "out")
    assert report.summary["parts_reused"] == 1
    assert tree(tmp_path / "out") == before
    assert (tmp_path / "out" / "conv" / "part-00000.npy").stat().st_mtime_ns == kept


def test_another_configuration_is_refused_unless_it_is_to_be_overwritten(tmp_path: Path) -> None:
    made(tmp_path, 5)
    extracted(request(tmp_path), tmp_path / "out", joined=Format.NPZ)
    (tmp_path / "out" / "mine.txt").write_text("stays")
    other = request(tmp_path, batch_size=3, part_size=9, pool=Pool.GAP)
    with pytest.raises(UsageError, match=r"running.pool was none, is now gap"):
        extracted(other, tmp_path / "out")
    extracted(other, tmp_path / "out", overwrite=True)
    extracted(other, tmp_path / "new")
    assert tree(tmp_path / "out") == {**tree(tmp_path / "new"), "mine.txt": b"stays"}


@pytest.mark.parametrize("change", ["a picture more", "other code", "another seed", "threads"])
def test_all_that_values_hang_on_is_in_the_configuration(tmp_path: Path, change: str) -> None:
    asked = request(made(tmp_path, 3))
    extracted(asked, tmp_path / "out")
    match change:
        case "a picture more":
            Image.new("RGB", (8, 8)).save(tmp_path / "pictures" / "3.png")
        case "other code":
            with (tmp_path / "net.py").open("a") as stream:
                stream.write("# changed\n")
        case "another seed":
            asked = replace(asked, model=replace(asked.model, seed=1))
        case "threads":
            asked = replace(asked, running=replace(asked.running, threads=2))
    with pytest.raises(UsageError, match="another configuration"):
        extracted(asked, tmp_path / "out")


def test_a_moved_file_of_weights_is_the_same_configuration(tmp_path: Path) -> None:
    made(tmp_path, 3)
    torch.save(load_from_file(tmp_path / "net.py", "Net")().state_dict(), tmp_path / "net.pt")
    (tmp_path / "moved").mkdir()
    for name in ("net.pt", "net.py"):
        shutil.copy(tmp_path / name, tmp_path / "moved" / name)
    for folder, reused in ((tmp_path, 0), (tmp_path / "moved", 1)):
        spec = FileModel(folder / "net.py", "Net")
        model = ModelRequest(spec, f"{folder}/net.py:Net", weights=str(folder / "net.pt"))
        report = extracted(replace(request(tmp_path), model=model), tmp_path / "out")
        assert report.summary["parts_reused"] == reused


def test_a_model_made_where_its_file_is_read_is_the_same_every_time(tmp_path: Path) -> None:
    made(tmp_path, 2)
    (tmp_path / "made.py").write_text("from net import Net\n\nnet = Net()\n")
    model = ModelRequest(FileModel(tmp_path / "made.py", "net"), "made.py:net")
    asked = replace(request(tmp_path), model=model)
    extracted(asked, tmp_path / "out")
    assert extracted(asked, tmp_path / "out").summary["parts_reused"] == 1


def test_bfloat16_is_stored_as_float32_that_holds_it_exactly(tmp_path: Path) -> None:
    made(tmp_path, 2)
    report = extracted(request(tmp_path, dtype="bfloat16"), tmp_path / "out")
    stored = np.load(tmp_path / "out" / "head" / "part-00000.npy")
    assert stored.dtype == np.float32
    assert report.summary["layers"]["head"]["dtype"] == "float32"
    assert not (stored.view(np.uint32) & 0xFFFF).any()
    assert stored.any()


def test_a_folder_with_other_things_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    made(tmp_path, 1)
    with pytest.raises(UsageError, match="holds other things than features"):
        extracted(request(tmp_path), tmp_path)
    with pytest.raises(UsageError, match="is not a folder"):
        extracted(request(tmp_path), tmp_path / "net.py" / "out")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "manifest.json").write_text("{")
    with pytest.raises(InputError, match="is damaged"):
        extracted(request(tmp_path), tmp_path / "out")


def test_no_readable_picture_is_a_failure_and_leaves_arrays_without_rows(tmp_path: Path) -> None:
    made(tmp_path, 3, broken=[0, 1, 2])
    report = extracted(request(tmp_path), tmp_path / "out", joined=Format.NPY)
    assert report.failure is not None
    assert "none of the 3 pictures can be read" in report.failure.message
    assert np.load(tmp_path / "out" / "head.npy").shape == (0, 3)


@pytest.mark.parametrize(
    ("fault", "error", "words", "hint"),
    [
        ("os.kill(os.getpid(), 9)", UnavailableError, "part 2 was killed", "a smaller -j"),
        ("raise ValueError('one')", InputError, "ValueError: one", "PTTOOL_DEBUG=1"),
    ],
)
def test_what_goes_wrong_in_a_process_is_told_with_a_hint(
    tmp_path: Path, fault: str, error: type[PttoolError], words: str, hint: str
) -> None:
    made(tmp_path, 9)
    net = (tmp_path / "net.py").read_text()
    last_batch = "len(pictures) == 1 and not pictures.is_meta"
    faulty = f"import os\n        if {last_batch}: {fault}\n        return"
    (tmp_path / "net.py").write_text(net.replace("return", faulty))
    with pytest.raises(error, match=words) as told:
        extracted(request(tmp_path), tmp_path / "out", Sharing(processes=2))
    assert hint in str(told.value.hint)
    assert not list((tmp_path / "out").glob(".*"))

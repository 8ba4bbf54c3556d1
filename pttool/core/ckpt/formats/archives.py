"""Archives and folders that hold no checkpoint, or one that must be taken out first."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from pttool.core.ckpt.files.words import listed
from pttool.errors import InputError

CHECKPOINT_SUFFIXES = (
    ".pt", ".pth", ".ckpt", ".bin", ".safetensors", ".pkl", ".pt2", ".npz", ".npy", ".tar"
)  # fmt: skip


def refused_zip(path: Path, names: Sequence[str]) -> InputError:
    """Return what to say of a zip in which torch finds nothing."""
    said = f"{path}: is a zip of {contents(names)}, without the data.pkl of torch.save"
    file = shlex.quote(str(path))
    if not names:
        return InputError(f"{path}: is an empty zip", "copy or download it again")
    if any(name.endswith(".data/extern_modules") for name in names):
        what = f"{path}: is a torch.package archive, of code and pickles"
        return InputError(what, "torch.package.PackageImporter opens it")
    if "config.json" in names and any(name.endswith(".weights.h5") for name in names):
        return InputError(f"{path}: is a Keras model", "keras.saving.load_model opens it")
    if any(name.split("/")[-1] == "data.pkl" for name in names):
        return InputError(
            f"{path}: is a torch checkpoint that was packed again in another folder",
            "torch wants NAME/data.pkl: unpack it, then zip -0 -r OUT NAME beside the folder NAME",
        )
    inside = next((name for name in names if name.endswith(CHECKPOINT_SUFFIXES)), None)
    if inside:
        return InputError(
            said, f"unpack it, then give its file: unzip {file} {shlex.quote(inside)}"
        )
    return InputError(said, f"unzip -l {file} lists what is in it")


def refused_tar(path: Path, names: Sequence[str], *, is_cut: bool) -> InputError:
    """Return what to say of a tar that is none of torch's."""
    if is_cut:
        return InputError(f"{path}: is a cut tar archive", "copy or download it again")
    hint = f"unpack it, then give a file in it: tar -xf {shlex.quote(str(path))}"
    return InputError(f"{path}: is a tar archive of {contents(names)}, not a checkpoint", hint)


def refused_folder(path: Path, names: Sequence[str], indices: Sequence[str]) -> InputError:
    """Return what to say of a folder that is no checkpoint."""
    if not names:
        return InputError(
            f"{path}: is an empty folder", "give a file, or the folder of a checkpoint"
        )
    if len(indices) > 1:
        first = shlex.quote(str(path / indices[0]))
        what = f"{path}: has {len(indices)} indices: {listed(indices)}"
        return InputError(what, f"give one of them: {first}")
    if any(name.endswith(".distcp") for name in names):
        return InputError(
            f"{path}: is a distributed checkpoint without its .metadata: the save didn't finish",
            "copy .metadata too, or take an earlier checkpoint",
        )
    if ".metadata" in names:
        what = f"{path}: has the .metadata of a distributed checkpoint, but no .distcp file"
        return InputError(what, "copy the .distcp files of all ranks into it")
    if "saved_model.pb" in names:
        return InputError(
            f"{path}: is a TensorFlow SavedModel", "get the weights from torch.save or safetensors"
        )
    if "data.pkl" in names and "data" in names:
        folder = shlex.quote(path.resolve().name)
        return InputError(
            f"{path}: is an unpacked torch checkpoint: a browser or a tool unzipped it",
            f"pack it again, in the folder above: zip -0 -r model.pt {folder}",
        )
    inside = [name for name in names if name.endswith(CHECKPOINT_SUFFIXES)]
    if inside:
        return InputError(
            f"{path}: is a folder of {contents(names)}", f"give a file in it: {listed(inside)}"
        )
    return InputError(
        f"{path}: is a folder without a checkpoint",
        f"it holds {listed(names)}: give a file, or a folder of .distcp files or *.index.json",
    )


def contents(names: Sequence[str]) -> str:
    """Return how many files there are, with the names of the first."""
    return f"{len(names):,} file{'s' * (len(names) != 1)} ({listed(names)})"

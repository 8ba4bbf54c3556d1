"""`pttool ckpt scan`: whether loading a checkpoint could run code."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pttool.core.ckpt import batch
from pttool.core.ckpt.containers.distributed_chunks import records_in
from pttool.core.ckpt.containers.legacy import read_legacy
from pttool.core.ckpt.containers.sharded import read_index
from pttool.core.ckpt.files.patching import recover
from pttool.core.ckpt.files.payload import mapped, opened, read_at
from pttool.core.ckpt.files.words import quoted
from pttool.core.ckpt.formats.recognition import recognise
from pttool.core.ckpt.formats.signatures import ZIP_HEADS
from pttool.core.ckpt.reading import read
from pttool.core.ckpt.safety.audits import Findings, Verdict, shown
from pttool.core.ckpt.safety.searching import LEGACY_PICKLES, Search, has_zip_end, said
from pttool.core.ckpt.types import Format, Record
from pttool.core.report import Column, Report
from pttool.errors import CheckFailedError, InputError, PttoolError

FailOn = Literal["unknown", "dangerous"]
COLUMNS = (
    Column("file", "File"),
    Column("verdict", "Verdict"),
    Column("reasons", "Reasons", "list"),
)
FIELDS = ("file", "verdict", "reasons", "globals")
PROGRAMS = {
    Format.TORCHSCRIPT: "contains code: a program of TorchScript, which isn't judged",
    Format.EXPORTED: "contains a program of torch.export, which isn't judged",
}
# How many pickles a file begins with.
EXPECTED = {Format.PICKLE: 1, Format.TORCH_LEGACY: LEGACY_PICKLES}
# What no shard can be.
FOLDERS = (Format.SHARDED, Format.DISTRIBUTED)
# Kinds that are opened too, as something in them may be no pickle but wrong.
CHECKED = (Format.SAFETENSORS, Format.NPZ, Format.NPY, Format.TORCH_TAR)


def scan(
    paths: Sequence[Path], *, allow: Sequence[str] = (), fail_on: FailOn = "unknown"
) -> Report:
    """Return a verdict on each file; `allow` are names, or patterns of names, to be vouched for.

    A pattern with a wildcard doesn't allow what is dangerous: its full name does, unless it is in a
    module that torch never allows. The report's failure is a CheckFailedError where a file isn't
    clean, or is dangerous, as `fail_on` says. Raises InputError for a single file that can't be
    read, or is no checkpoint.
    """
    done = batch.each(paths, lambda path: audit_file(path, allow))
    items = [
        {
            "file": name,
            "verdict": str(found.verdict),
            "reasons": list(found.reasons),
            "globals": sorted({shown(each) for each in found.globals}),
        }
        for name, found in done.results
    ]
    counts = {str(verdict): 0 for verdict in Verdict}
    for item in items:
        counts[str(item["verdict"])] += 1
    failure = _failure(counts, fail_on)
    notes = done.notes
    if failure is not None and done.failure is not None and not notes:
        notes = (done.failure.message,)
    return Report(
        fields=FIELDS,
        columns=COLUMNS,
        items=items,
        summary={**{name.lower(): count for name, count in counts.items()}, "files": len(items)},
        footer=tuple(Column(key.lower(), key.capitalize(), "count") for key in counts),
        notes=notes,
        failure=failure or done.failure,
    )


def audit_file(path: Path, allow: Sequence[str] = ()) -> Findings:
    """Return what a file or folder is found to hold.

    Raises InputError for what is no checkpoint, where no pickle is found in it either.
    """
    search = Search(Findings(allow))
    form: Format | None = None
    refusal: InputError | None = None
    try:
        form = recognise(path)
    except InputError as error:
        if not os.path.isfile(path):
            raise
        refusal = error
    if form is Format.DISTRIBUTED:
        _distributed(path, search)
    elif form is Format.SHARDED:
        _sharded(path, search)
    else:
        _file(path, form, search)
    if refusal is not None and not search.budget.found:
        raise refusal
    return search.findings


def _file(path: Path, form: Format | None, search: Search) -> None:
    """Look at a file from its start, and from its end, where readers of zips begin."""
    with opened(path) as file:
        size = os.fstat(file).st_size
        is_zip = read_at(file, 0, 4, path) in ZIP_HEADS
    if is_zip:
        search.archive(path)
    else:
        expected = EXPECTED.get(form, 0) if form else 0
        search.record(Record("", path, 0, size, size), "the file", expected=expected)
    if form is Format.TORCH_LEGACY:
        _check_end(path, size, search)
    elif form is Format.TORCH_TAR:
        search.members(path)
    if form in CHECKED:
        for pickle in read(path).pickles:
            search.findings.judge(pickle.globals, quoted(pickle.record.name))
    if not is_zip and has_zip_end(path):
        search.findings.doubt("a zip lies in the file, which some programs would read instead")
        search.archive(path)
    if form in PROGRAMS:
        search.findings.doubt(PROGRAMS[form])


def _check_end(path: Path, size: int, search: Search) -> None:
    try:
        with opened(path) as file, mapped(path) as whole:
            end = read_legacy(whole, path, 0, file).end
    except InputError as error:
        search.findings.doubt(said(error, path))
    else:
        if end < size:
            search.findings.doubt(f"{size - end:,} bytes follow the last storage")


def _distributed(path: Path, search: Search) -> None:
    """Look at the metadata, and at the torch files that are its chunks."""
    for record in read(path).records:
        if record.name == ".metadata":
            search.record(record, ".metadata")
            continue
        where = f"the chunk of {quoted(record.name)}"
        try:
            for inner in records_in(record):
                search.record(inner, f"{where}: {quoted(inner.name)}")
        except InputError as error:
            search.findings.doubt(said(error, record.file))


def _sharded(path: Path, search: Search) -> None:
    """Look at every shard: one that can't be read must not hide what another holds."""
    index = read_index(path)
    for name in index.shards:
        shard = index.path.parent / name
        form = None
        try:
            recover(shard)
            form = recognise(shard)
            if form in FOLDERS:
                search.findings.doubt(f"{quoted(name)} is a checkpoint of several files, not one")
        except PttoolError as error:
            search.findings.doubt(said(error, shard, quoted(name)))
        if os.path.isfile(shard):
            _shard(shard, form, search)


def _shard(shard: Path, form: Format | None, search: Search) -> None:
    try:
        _file(shard, form, search)
    except InputError as error:
        search.findings.doubt(said(error, shard, quoted(shard.name)))


def _failure(counts: dict[str, int], fail_on: FailOn) -> CheckFailedError | None:
    dangerous, unknown = counts[Verdict.DANGEROUS], counts[Verdict.UNKNOWN]
    total = sum(counts.values())
    many = f"of {total} file{'s' * (total != 1)}"
    if dangerous:
        what = f"{dangerous} {many} can run code when loaded"
        return CheckFailedError(what, "don't load it: get the weights from someone you trust")
    if unknown and fail_on == "unknown":
        hint = "--allow NAME vouches for a name; --fail-on dangerous lets unknown ones pass"
        return CheckFailedError(f"{unknown} {many} can't be called clean", hint)
    return None

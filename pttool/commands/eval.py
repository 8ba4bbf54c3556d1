"""`pttool eval`: from saved predictions to the numbers."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from pttool.app import noun, verb
from pttool.commands.eval_options import (
    MATRIX_SUFFIXES,
    WORST_OF_MANY,
    DocumentOptions,
    GateOptions,
    ListingOptions,
    Seed,
    check_matrix,
)
from pttool.commands.eval_reading import ReadOptions
from pttool.options import OutputOptions
from pttool.output import DOCUMENTS, choose_text_output, emit, emit_document, emit_text

app = noun("Precision, recall, F1 and more from saved predictions.")


@verb(app)
def report(
    files: Annotated[
        list[Path] | None,
        Argument(metavar="FILE...", help="npz, csv, tsv, jsonl, parquet or pt; - reads stdin."),
    ] = None,
    *,
    read: ReadOptions,
    listing: ListingOptions,
    matrix: Annotated[
        Path | None,
        Option(
            "--matrix",
            metavar="FILE",
            show_default=False,
            help="Write the confusion matrix too: .csv, .npz or .png.",
        ),
    ] = None,
    normalize: Annotated[
        bool, Option("--normalize", help="Divide each row of a .csv matrix by its sum.")
    ] = False,
    verify: Annotated[
        bool, Option("--verify", help="Compare with scikit-learn's figures.")
    ] = False,
    gates: GateOptions,
    output: DocumentOptions,
) -> None:
    """Report precision, recall, F1 and confusions per class, with the totals.

    Labels and predictions are found under their usual keys (label, y_true, targets ...), or named
    with --true and --pred; scores (N, C) give the prediction and more metrics. Several files are
    shards of one run. Nothing in a file is run. With --task multilabel labels and predictions are
    (N, C) of 0 and 1, and scores predict every class whose probability reaches --threshold.

    Examples:
        pttool eval report preds.npz --csv
        pttool eval report preds.npz --classes names.txt --worst 10
        pttool eval report --true y.npy --scores logits.npy --topk 1,5 --json
        pttool eval report tags.npz --task multilabel --scores logits --threshold 0.3
        pttool eval report preds.npz --fail-under accuracy=0.9 --fail-under recall:cat=0.8
    """
    files = files or []
    inputs = read.inputs(files)
    destination = output.choose(inputs, matrix)
    check_matrix(matrix, read, normalize=normalize)
    if verify:
        read.refuse_streams("--verify", files)
    matrix_file = choose_text_output(matrix, MATRIX_SUFFIXES, force=output.force, inputs=inputs)
    options = listing.parse(read, gates, destination)
    from pttool.core.eval.report import make

    names = read.names()
    made = make(read.open(files, names), options)
    if matrix_file is not None:
        from pttool.core.eval.writing.matrix import matrix_file as content

        cells = content(made.evaluation, matrix_file, normalize=normalize, excel=output.excel)
        emit_text(cells, matrix_file)
    if verify:
        from pttool.core.eval.verify import largest_difference

        name, difference = largest_difference(made.evaluation, read.open(files, names))
        note = f"scikit-learn differs by at most {difference:.2g} ({name})"
        made = replace(made, report=made.report.noting(note))
    if destination.format in DOCUMENTS:
        from pttool.core.eval.writing.documents import document

        texts = document(
            destination.format.value,
            made,
            title=", ".join(map(str, files)) or "Evaluation",
            digits=output.digits,
            header=destination.header,
            excel=output.excel,
            most_pairs=listing.pairs,
        )
        emit_document(texts, made.report, destination)
    else:
        emit("eval report", made.report, destination)


@verb(app)
def compare(
    a: Annotated[Path, Argument(metavar="FILE", help="Predictions of model A.")],
    b: Annotated[Path, Argument(metavar="FILE", help="Predictions of model B.")],
    *,
    read: ReadOptions,
    ci: Annotated[
        float, Option("--ci", metavar="LEVEL", min=0.5, max=0.9999, help="Level of the interval.")
    ] = 0.95,
    seed: Seed = 0,
    fail_if_worse: Annotated[
        bool, Option("--fail-if-worse", help="Exit with 1 if B's accuracy is lower.")
    ] = False,
    output: OutputOptions,
) -> None:
    """Compare two models on the same samples: differences, and whether they can be chance.

    Samples are aligned by their index where both have one, else by row. McNemar's p is exact, the
    interval of the difference a paired bootstrap's. With --task multilabel a sample is right if all
    of its labels are.

    Examples:
        pttool eval compare old.npz new.npz
        pttool eval compare old.npz new.npz --fail-if-worse --json | jq .summary.mcnemar_p
    """
    destination = output.choose(inputs=read.inputs([a, b]))
    from pttool.core.eval.compare import compare as compare_models

    names = read.names()
    report = compare_models(
        read.open([a], names),
        read.open([b], names),
        confidence=ci,
        seed=seed,
        fail_if_worse=fail_if_worse,
        most_worse=WORST_OF_MANY if destination.is_for_people else None,
        ignored=read.ignored,
    )
    emit("eval compare", report, destination)

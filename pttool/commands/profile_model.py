"""`pttool profile model`: the verb of `pttool profile` that needs no script."""

import os
from dataclasses import dataclass
from typing import Annotated

from typer import Option

from pttool.commands.progress import counting
from pttool.core.profile.model_choices import By, parse_batches
from pttool.errors import UsageError
from pttool.options import (
    A_DAY_S,
    BuildOptions,
    Device,
    InputOptions,
    Mode,
    Model,
    OutputOptions,
    a_number,
)
from pttool.output import emit


@dataclass(frozen=True, slots=True)
class TimedBuildOptions(BuildOptions):
    """How MODEL is built, on a device where its time can be measured."""

    device: Annotated[Device, Option("--device", help="Where to run it: cpu or cuda.")] = Device.CPU

    def check(self) -> None:
        """Raise UsageError for a device that computes nothing."""
        if self.device is Device.META:
            raise UsageError("--device meta: computes nothing, so takes no time", "--device cpu")


@dataclass(frozen=True, slots=True)
class BatchesOptions(InputOptions):
    """What the model is called with, at several batch sizes."""

    batch: Annotated[
        str, Option("-b", "--batch", metavar="N,...", help="Batch sizes put before each shape.")
    ] = "1"  # type: ignore[assignment]

    @property
    def batch_sizes(self) -> list[int | None]:
        """The batch sizes, or None when the shapes stand as they are. Raises UsageError."""
        sizes = parse_batches(self.batch)
        return [None] if self.no_batch else [*sizes]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How the model is run, and for how long."""

    mode: Annotated[
        Mode, Option("--mode", help="A forward, or a forward and a backward in training mode.")
    ] = Mode.EVAL
    channels_last: Annotated[
        bool, Option("--channels-last", help="Put weights and inputs into channels_last format.")
    ] = False
    compile: Annotated[bool, Option("--compile", help="Run it under torch.compile.")] = False
    threads: Annotated[
        int | None,
        Option(
            "--threads",
            metavar="N",
            min=1,
            help="Threads of an operator; torch's choice by default.",
            show_default=False,
        ),
    ] = None
    min_time: Annotated[
        float,
        Option(
            "--min-time",
            metavar="SECONDS",
            min=0,
            max=A_DAY_S,
            help="How long to time a batch size.",
            callback=a_number,
        ),
    ] = 2.0


def model(
    model: Model,
    *,
    inputs: BatchesOptions,
    run: RunOptions,
    by: Annotated[By, Option("--by", help="A row per batch size, or per module or op.")] = By.BATCH,
    shapes: Annotated[
        bool, Option("--shapes", help="Tell ops with inputs of other shapes apart.")
    ] = False,
    build: TimedBuildOptions,
    output: OutputOptions,
) -> None:
    """Time a model at each batch size: latency, throughput, memory, its slowest modules and ops.

    A call is timed as its user waits for it; p99 of fewer than 100 runs is the slowest. MACs are
    counted; the ceiling is the fastest matrix product that this machine does with the same dtype
    and threads. Peak memory is that of tensors: weights, inputs, and what a call allocates.
    Modules and ops are those of the largest batch, for one call on average.

    Examples:
        pttool profile model resnet18 -i 3,224,224 --batch 1,8,32
        pttool profile model resnet50 --batch 16 --mode train --by op
        pttool profile model net.py:Net -i ids:int64:128 --compile --threads 1 --json
    """
    destination, specs, batches = output.choose(model), inputs.specs(), inputs.batch_sizes
    build.check()
    if run.compile:
        os.environ.setdefault("TORCH_COMPILE_DISABLE", "0")
    resolved = build.resolve(model)
    from pttool.core.profile.measuring.running import Conditions
    from pttool.core.profile.model import model as profile_model

    training = run.mode is Mode.TRAIN
    conditions = Conditions(training, run.channels_last, run.compile, run.threads, run.min_time)
    with counting("batch sizes") as progress:
        report = profile_model(
            resolved,
            specs,
            batches=batches,
            conditions=conditions,
            by=by,
            by_shape=shapes,
            progress=progress,
        )
    emit("profile model", report, destination)

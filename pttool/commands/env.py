"""`pttool env`: versions and settings, for bug reports and CI."""

from dataclasses import dataclass
from typing import Annotated

from typer import Option

from pttool.core.env.check import Check
from pttool.options import OutputOptions
from pttool.output import SUFFIXES, Format, Output, choose_output, emit, emit_document


@dataclass(frozen=True, slots=True)
class DocumentOptions(OutputOptions):
    """How the settings are written, and where; Markdown too."""

    md: Annotated[
        bool,
        Option("--md", help="Write Markdown for an issue, without your home folder and name."),
    ] = False

    def choose_document(self) -> Output:
        """Return the output asked for; raises UsageError for two formats or a hopeless FILE."""
        return choose_output(
            self.asked,
            header=not self.no_header,
            path=self.output,
            force=self.force,
            suffixes={**SUFFIXES, ".md": Format.MD},
        )


def env(
    *,
    check: Annotated[
        Check | None,
        Option(
            "--check",
            help="Show just that part, and exit with 1 where CUDA is not usable, or runs may not "
            "repeat.",
            show_default=False,
        ),
    ] = None,
    output: DocumentOptions,
) -> None:
    """Show versions and settings that decide whether a run works, is fast, and repeats.

    torch, torchvision and whether they fit, CUDA, cuDNN and NCCL, why there is no GPU, threads
    against the CPUs granted, shared memory, determinism, OpenMP, OpenCV and environment variables.
    torch is not imported in full: its C library tells, in a process of its own, in under a second.

    --check deterministic looks at what a run inherits: PYTHONHASHSEED, and CUBLAS_WORKSPACE_CONFIG
    where torch has CUDA. torch's own switches live inside each process and can't be seen from
    outside: set them in the script with pttool.recipes.seed_everything(seed, deterministic=True).

    Examples:
        pttool env
        pttool env --md
        pttool env --check gpu || export DEVICE=cpu
        PYTHONHASHSEED=0 CUBLAS_WORKSPACE_CONFIG=:4096:8 pttool env --check deterministic
        pttool env --json | jq -r '.items[] | select(.name == "torch.cudnn").value'
    """
    destination = output.choose_document()
    from pttool.core.env.env import env as settings

    report = settings(check)
    if destination.format is Format.MD:
        from pttool.core.env.markdown import markdown

        emit_document(markdown(report), report, destination)
    else:
        emit("env", report, destination)

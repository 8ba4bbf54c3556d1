"""What `info` says with torch's view of the GPUs, which knows those of other makers too."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pttool.core.gpu.info import info
from pttool.core.gpu.nvml import NoDriverError
from pttool.core.gpu.rows import COLUMNS, FIELDS, shown_memory
from pttool.core.gpu.torch_view import TorchDevice, TorchView, ask_torch
from pttool.core.gpu.types import Memory, MemorySource
from pttool.core.report import Column, Report

COLUMN = Column("torch_device", "Torch")
FOOTER = (
    Column("torch.version", "torch"),
    Column("torch.built_for", "Built for"),
    Column("torch.devices", "Seen by it", "count"),
)
OF_TORCH = ("shown_index", "shown_name", "shown_memory", "uuid")


def info_with_torch(names: Sequence[str] = (), *, visible: bool = False) -> Report:
    """Return what `info` does, with torch's name of each GPU; torch is asked in a child process.

    Where there is no NVIDIA driver, but torch sees devices, the rows are those. Raises as `info`
    otherwise.
    """
    view = ask_torch()
    try:
        report = info(names, visible=visible)
    except NoDriverError as error:
        if names or not view.devices:
            raise
        return _alone(view, error.message)
    return _beside(report, view)


def _beside(report: Report, view: TorchView) -> Report:
    items = [{**item, "torch_device": view.name_of(item["uuid"])} for item in report.items]
    return replace(
        report,
        fields=(*report.fields, "torch_device"),
        columns=(*report.columns[:2], COLUMN, *report.columns[2:]),
        items=items,
        summary={**report.summary, "torch": _summary(view)},
        footer=(*report.footer, *FOOTER),
        notes=(*report.notes, *_notes(view)),
    )


def _alone(view: TorchView, why: str) -> Report:
    return Report(
        fields=(*FIELDS, "torch_device"),
        columns=(COLUMN, *(column for column in COLUMNS if column.key in OF_TORCH)),
        items=[_item(number, device) for number, device in enumerate(view.devices)],
        summary={
            "driver_version": None,
            "cuda_driver_version": None,
            "gpus": len(view.devices),
            "healthy": None,
            "errors": {},
            "torch": _summary(view),
        },
        footer=FOOTER,
        notes=(why, *_notes(view)),
    )


def _item(number: int, device: TorchDevice) -> dict[str, Any]:
    unified = device.device == "mps"
    memory = Memory(device.total_bytes, None, None, MemorySource.TORCH, unified)
    return {
        **dict.fromkeys(FIELDS),
        "index": number,
        "uuid": device.uuid,
        "name": device.name,
        "memory": memory,
        "errors": {},
        "torch_device": device.device,
        "shown_index": str(number),
        "shown_name": device.name,
        "shown_memory": shown_memory(memory),
    }


def _summary(view: TorchView) -> dict[str, Any]:
    return {
        "version": view.version,
        "built_for": view.built_for,
        "devices": len(view.devices),
        "error": view.error,
    }


def _notes(view: TorchView) -> Iterator[str]:
    if view.error is not None:
        yield f"torch: {view.error}"
    elif not view.devices:
        yield "torch sees no GPU: pttool gpu doctor says why"

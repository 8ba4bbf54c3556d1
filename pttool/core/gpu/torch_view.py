"""What torch sees of the GPUs, asked in a process of its own: importing it here would take long."""

from dataclasses import dataclass

from pttool.core.children import Child

CHILD = "pttool.core.gpu.torch_child"
LIMIT_S = 60


@dataclass(frozen=True, slots=True)
class TorchDevice:
    """A device by torch's name for it, as cuda:0 or mps; `uuid` is as NVML writes it."""

    device: str
    name: str
    total_bytes: int
    uuid: str | None


@dataclass(frozen=True, slots=True)
class TorchView:
    """torch's version, what it is built for, and the devices that it sees; or how it fails."""

    version: str | None
    built_for: str | None
    devices: tuple[TorchDevice, ...]
    error: str | None = None

    def name_of(self, uuid: str | None) -> str | None:
        """Return torch's name of the device with this UUID, None where torch doesn't see it."""
        return next((each.device for each in self.devices if uuid and each.uuid == uuid), None)


def ask_torch() -> TorchView:
    """Import torch in a child process and return what it sees; a failure is the view's error."""
    with Child(CHILD) as child:
        answer = child.answer(LIMIT_S)
    told = answer.told
    return TorchView(
        told.get("version"),
        told.get("built_for"),
        tuple(_device(**each) for each in told.get("devices", ())),
        told.get("error", None if answer.is_done else f"{answer.ending}: {answer.detail}"),
    )


def _device(device: str, name: str, total_bytes: int, uuid: str | None) -> TorchDevice:
    """torch leaves out the beginning of NVML's UUIDs."""
    known = uuid if uuid is None or uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
    return TorchDevice(device, name, total_bytes, known)

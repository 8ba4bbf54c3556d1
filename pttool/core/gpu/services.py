"""The known services and displays that hold a GPU: stopped by their own means, never by a kill."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Service:
    """What a process belongs to, and what stops it."""

    name: str
    remedy: str


_DISPLAY = Service("the display", "sudo systemctl isolate multi-user.target")
_DCGM = Service("dcgm", "sudo systemctl stop nvidia-dcgm dcgm-exporter")

# By the names of /proc/PID/stat, which are cut after 15 characters.
_BY_NAME = {
    "nvidia-persiste": Service(
        "nvidia-persistenced", "sudo systemctl stop nvidia-persistenced"
    ),
    "nv-hostengine": _DCGM,
    "dcgm-exporter": _DCGM,
    "nv-fabricmanage": Service("Fabric Manager", "sudo systemctl stop nvidia-fabricmanager"),
    "X": _DISPLAY,
    "Xorg": _DISPLAY,
    "Xwayland": _DISPLAY,
    "gnome-shell": _DISPLAY,
    "kwin_wayland": _DISPLAY,
    "kwin_x11": _DISPLAY,
}  # fmt: skip


def service_of(process_name: str) -> Service | None:
    """Return the service that a process of this name belongs to, if it is a known one."""
    return _BY_NAME.get(process_name)

"""Published weights: in the caches where torch and timm keep them, or fetched, failing fast."""

import contextlib
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import torch

from pttool.core.foreign import foreign_code, one_line
from pttool.errors import InputError, UnavailableError

# Within two seconds a user is to know that there is no network; name servers may take longer.
CONNECT_SECONDS = 1.5
HF_HUB = "https://huggingface.co"


def fetch_entry(entry: Any) -> None:
    """Have the values of torchvision's weights in torch.hub's cache.

    Raises UnavailableError when they are not there and can't be fetched.
    """
    if not in_hub_cache(entry.url):
        check_reachable(entry.url, str(entry))
        with unavailable(str(entry)):
            entry.get_state_dict(progress=sys.stderr.isatty(), check_hash=True)


def in_hub_cache(url: str) -> bool:
    """Tell whether torch.hub has kept the file of an address."""
    return Path(torch.hub.get_dir(), "checkpoints", Path(urlsplit(url).path).name).is_file()


def timm_file(configuration: Any, name: str) -> str | None:
    """Return the file of a timm model's weights in the cache of the Hugging Face hub.

    None if timm itself is to fetch them, or has them in torch.hub's cache.

    Raises UnavailableError when they are nowhere here and their host can't be reached.
    """
    hub_id, url = configuration.get("hf_hub_id"), configuration.get("url")
    if hub_id and (path := _in_hf_cache(hub_id, configuration.get("hf_hub_filename"))):
        return path
    if url and not hub_id and in_hub_cache(url):
        return None
    if not (hub_id or url):
        raise UnavailableError(f"{name}: timm publishes no weights for it", "--weights none")
    check_reachable(_hf_endpoint() if hub_id else url, name)
    return None


def check_reachable(url: str, what: str, seconds: float = CONNECT_SECONDS) -> None:
    """Raise UnavailableError unless the host of `url` answers within some seconds, proxies and all.

    In a thread of its own: a name server that doesn't answer can't be given a time limit.
    """
    reasons: list[str] = []
    asking = Thread(target=_ask, args=(url, seconds, reasons), daemon=True)
    asking.start()
    asking.join(seconds)
    reason = "no answer" if asking.is_alive() else "".join(reasons)
    if reason:
        raise UnavailableError(
            f"{what}: its weights are not kept here, and {urlsplit(url).hostname} can't be "
            f"reached: {reason}",
            "--weights FILE or none, or run once where there is a network",
        )


@contextlib.contextmanager
def unavailable(what: str) -> Iterator[None]:
    """Turn whatever fetching raises into an UnavailableError."""
    try:
        with foreign_code(what):
            yield
    except InputError as error:
        cause = error.__cause__ or error
        raise UnavailableError(
            f"{what}: its weights can't be fetched: {one_line(cause)}",
            "try again, or --weights FILE",
        ) from cause


def _ask(url: str, seconds: float, reasons: list[str]) -> None:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=seconds):
            pass
    except urllib.error.HTTPError as error:
        if error.code >= 500:  # it answered; whether it has the file is seen when it is fetched
            reasons.append(f"HTTP {error.code}")
    except (OSError, ValueError) as error:
        reasons.append(one_line(error))


def _in_hf_cache(hub_id: str, filename: str | None) -> str | None:
    """Return the path of a file that timm would fetch, newer formats first."""
    from huggingface_hub import try_to_load_from_cache

    repository, _, revision = hub_id.partition("@")
    for name in (filename,) if filename else ("model.safetensors", "pytorch_model.bin"):
        path = try_to_load_from_cache(repository, name, revision=revision or None)
        if isinstance(path, str):
            return path
    return None


def _hf_endpoint() -> str:
    from huggingface_hub import constants

    endpoint: str = getattr(constants, "ENDPOINT", HF_HUB)
    return endpoint

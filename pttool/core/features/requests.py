"""What a user asks `extract` for, as plain values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pttool.core.features.batches import Reading
from pttool.core.features.ranks import DeviceChoice, Shard
from pttool.core.features.types import Format, Pool
from pttool.core.features.weights import DEFAULT
from pttool.core.model.spec import ModelSpec


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """MODEL, and which values its weights have; `name` is MODEL as it was typed."""

    spec: ModelSpec
    name: str
    keywords: Mapping[str, Any] = field(default_factory=dict)
    weights: str = DEFAULT
    seed: int = 0
    imagenet_val: bool = False
    trust_pickle: bool = False


@dataclass(frozen=True, slots=True)
class Running:
    """How the model is run: all of it may change bits, and nothing does by default.

    `dtype` is torch's name of the model's type, `threads` those of each process.
    """

    pool: Pool = Pool.NONE
    dtype: str = "float32"
    amp: bool = False
    channels_last: bool = False
    compiled: bool = False
    device: DeviceChoice = "auto"
    batch_size: int = 32
    threads: int = 1


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be extracted: all that values hang on. `layers` are as -l takes them.

    `part_size` is how many inputs a part has, chosen if None; ids are relative to `root`.
    """

    paths: Sequence[Path]
    layers: Sequence[str]
    model: ModelRequest
    running: Running = field(default_factory=Running)
    reading: Reading = field(default_factory=Reading)
    part_size: int | None = None
    root: Path | None = None


@dataclass(frozen=True, slots=True)
class Sharing:
    """Who does the work, which changes nothing of what comes out.

    `processes` and `decoders` (threads of each process that read ahead) are chosen by the `cpus`
    that may be used where they are None.
    """

    shard: Shard = field(default_factory=Shard)
    processes: int | None = None
    decoders: int | None = None
    cpus: int = 1


@dataclass(frozen=True, slots=True)
class Target:
    """The folder that features go to, and what their parts are joined into, if at all."""

    out: Path
    overwrite: bool = False
    joined: Format | None = None

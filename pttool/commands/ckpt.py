"""`pttool ckpt`: checkpoints of any kind, read, repaired and judged without running them."""

from pttool.app import noun, verb
from pttool.commands.ckpt_reading import diff, inspect, match, scan, verify
from pttool.commands.ckpt_rewriting import convert_cpu, strip_dataparallel
from pttool.commands.ckpt_writing import cast, extract, merge, shard, to_safetensors, to_torch

VERBS = (
    inspect, convert_cpu, strip_dataparallel, scan, verify, diff, match,
    extract, to_safetensors, to_torch, cast, shard, merge,
)  # fmt: skip

app = noun("Read, repair and judge checkpoints without running them.")

for function in VERBS:
    verb(app)(function)

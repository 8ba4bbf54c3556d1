"""The torture set: one small film of every kind, whose pictures say which frame they are."""

from tests.core.video import (
    torture_codecs,
    torture_containers,
    torture_damaged,
    torture_gops,
    torture_packed,
    torture_pictures,
    torture_timing,
)
from tests.core.video.kinds import Kind

# By the name of the file or, for a sequence of images, of the folder.
WHOLE: dict[str, Kind] = {
    **torture_codecs.KINDS,
    **torture_packed.KINDS,
    **torture_timing.KINDS,
    **torture_gops.KINDS,
    **torture_pictures.KINDS,
    **torture_containers.KINDS,
}
DAMAGED: dict[str, Kind] = torture_damaged.KINDS
KINDS: dict[str, Kind] = {**WHOLE, **DAMAGED}

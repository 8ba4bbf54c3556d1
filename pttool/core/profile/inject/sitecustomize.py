"""Start the recorder before the script, then leave Python as if this file weren't here.

Python's `site` imports it because its folder is first on PYTHONPATH. The user's own sitecustomize,
which it hides, is imported in its place.
"""

import os
import sys

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_hidden = sys.modules.pop("sitecustomize")
try:
    import pttool_profile_recorder  # type: ignore[import-not-found]

    pttool_profile_recorder.start()
finally:
    sys.path[:] = [entry for entry in sys.path if entry != _FOLDER]
    for _entry in [each for each in sys.path_importer_cache if each.startswith(_FOLDER)]:
        del sys.path_importer_cache[_entry]
# Where the user has none, its ImportError is what `site` expects.
import sitecustomize  # type: ignore[import-not-found]  # noqa: E402, F401

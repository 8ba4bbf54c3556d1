"""The library behind `pttool video`."""

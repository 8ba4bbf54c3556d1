"""Files as runs of bytes: read, copied, patched in place, written complete or not at all."""

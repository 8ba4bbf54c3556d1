"""`pttool env`: versions and settings that decide whether a run works, and repeats."""

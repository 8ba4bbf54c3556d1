"""Models: find them, build them without weights, run them once and count."""

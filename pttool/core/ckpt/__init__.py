"""Checkpoints of every kind, read, judged and repaired without running them."""

"""Running a model again and again: how long calls take, and what they do meanwhile."""

"""Features: what a layer of a model gives for each of many pictures."""

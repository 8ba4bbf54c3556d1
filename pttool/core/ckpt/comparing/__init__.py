"""How tensors, values and names of two checkpoints differ."""

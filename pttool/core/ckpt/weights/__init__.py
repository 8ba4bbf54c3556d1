"""The weights in a checkpoint: found, selected, laid out for another file."""

"""Files of predictions: told apart, read in blocks, nothing in them run."""

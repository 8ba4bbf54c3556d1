"""`pttool lr`: learning rates written in one line, stepped by torch's own schedulers."""

"""Why CUDA is not usable: facts that probes gather, and the table that turns them into a cause."""

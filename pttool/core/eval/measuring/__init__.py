"""Counts of samples, and the metrics that are functions of them."""

"""The rows, totals and documents of an evaluation."""

"""From saved predictions to the numbers: read a stream, count once, compute from the counts."""

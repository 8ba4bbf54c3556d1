"""Whether records hold the bytes that they were written with."""

"""One module per kind of container: what it holds, and where the bytes are."""

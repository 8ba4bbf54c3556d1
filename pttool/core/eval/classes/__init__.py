"""The names of classes."""

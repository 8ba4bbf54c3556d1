"""Tell what kind of file something is, and of what is no checkpoint, what it is instead."""

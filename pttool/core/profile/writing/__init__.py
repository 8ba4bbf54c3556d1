"""A profile put into words, tables, pictures and files."""

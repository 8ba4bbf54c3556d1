"""The command line: one file per noun, whose bodies parse, call core and emit."""

"""The library under the commands: one folder per noun, which prints nothing and returns Reports."""

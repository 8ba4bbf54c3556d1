"""`python -m pttool.core.recipes`: write the table of recipes in the README of the repository."""

from pathlib import Path

from pttool.core.recipes.readme import with_table

README = Path(__file__).parents[3] / "README.md"

if __name__ == "__main__":
    README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")

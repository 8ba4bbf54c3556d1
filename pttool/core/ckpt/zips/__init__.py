"""Zips as torch writes them: read with every claim checked, patched and written."""

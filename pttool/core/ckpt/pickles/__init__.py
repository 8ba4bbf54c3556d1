"""Pickles as inert nodes: walked, traced, edited, never run."""

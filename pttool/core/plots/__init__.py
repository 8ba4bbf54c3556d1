"""Plots of curves, as text for a terminal and as pictures."""

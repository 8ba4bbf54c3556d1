"""What loading a pickle would import and call, and who allows it."""

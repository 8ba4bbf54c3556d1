"""Changes to single texts of a checkpoint that leave all else as it is."""

"""From columns to samples: which class each has, what is refused, what comes twice."""

"""`pttool curve`: what training logs hold, run by run and column by column."""

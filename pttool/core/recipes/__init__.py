"""The book of recipes: what is wrong with the common copies, and what answers each."""

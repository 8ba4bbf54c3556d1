"""The frame indices of other libraries, to the bit."""

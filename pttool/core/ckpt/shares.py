"""How much memory the objects of a pickle take, counted in shares of about 35 bytes."""

# A checkpoint of 250,000 tensors fits, and so does a list of 5 million numbers; no pickle can take
# more than a quarter of a GB.
MAX_SHARES = 7_300_000
BYTES_OF_A_SHARE = 35
NUMBER, OBJECT, MARKED, CALL, PAIR, CONTAINER = 1, 2, 3, 3, 3, 4

"""How much memory the objects of a pickle take, counted in shares of about 24 bytes."""

# A checkpoint of 250,000 tensors fits, and so does a list of 5 million numbers; no pickle can take
# more than a quarter of a GB.
MAX_SHARES = 10_100_000
BYTES_OF_A_SHARE = 24
NUMBER, OBJECT, CALL, PAIR, CONTAINER = 2, 3, 4, 4, 6

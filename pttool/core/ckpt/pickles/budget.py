"""What a pickle may ask for at most: opcodes, marks, memory in shares of about 24 bytes."""

# A checkpoint of 250,000 tensors takes 12 million.
MAX_OPCODES = 20_000_000
MOST_MARKS = 500_000
# Kept under numbers that don't count up: honest picklers write none.
MOST_SCATTERED = 250_000
# Longer bytes, texts and numbers are left where they are.
LONGEST_BYTES = 32
LONGEST_NUMBER = 256
LONGEST_TEXT = 1 << 16

# A checkpoint of 250,000 tensors fits, and so does a list of 5 million numbers; no pickle can take
# more than a quarter of a GB.
MAX_SHARES = 10_100_000
BYTES_OF_A_SHARE = 24
# What an object costs, in shares; a text over so many bytes costs what it takes.
SHORT_TEXT = 64
NUMBER, OBJECT, CALL, PAIR, CONTAINER = 2, 3, 4, 4, 6

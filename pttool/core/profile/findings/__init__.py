"""What a profile says in words: one function per finding, each a rule over the evidence."""

"""Where parses come from, other than the bundled pipeline: spaCy, CoNLL-U files, Universal Dependencies v2."""

"""What parses come from beside the bundled pipeline: spaCy, CoNLL-U files, Universal Dependencies v2."""

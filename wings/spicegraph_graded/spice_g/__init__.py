"""SPICE-G: scene graphs matched by degrees, with vectors of words that people use for the same images."""

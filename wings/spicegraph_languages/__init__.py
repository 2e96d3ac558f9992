"""Captions in other languages than English: tables of words, wording of trees, and open wordnets."""

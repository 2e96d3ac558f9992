"""SPICE's own way from a parse to a scene graph: collapse, clean up, rules, concepts of WordNet, merging."""

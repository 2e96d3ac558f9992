"""SPICE: match the candidate's scene graph against the references' one, count by category, and score."""

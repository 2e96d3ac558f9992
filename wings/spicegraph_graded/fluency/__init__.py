"""Fluency: a detector of broken captions, the metric of that name, and SPIDEr-FL."""

"""Scores of descriptions of many sentences, and their differences from references."""

"""The contract of descriptions, version 1."""

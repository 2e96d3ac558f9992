"""The contract of descriptions."""

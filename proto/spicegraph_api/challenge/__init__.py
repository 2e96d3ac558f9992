"""The contract of the evaluation server."""

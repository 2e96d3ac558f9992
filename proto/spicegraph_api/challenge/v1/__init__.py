"""The contract of the evaluation server, version 1."""

"""The contract of error reports, version 1."""

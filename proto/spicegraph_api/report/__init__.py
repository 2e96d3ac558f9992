"""The contract of error reports."""

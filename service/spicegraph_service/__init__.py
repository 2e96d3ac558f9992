"""The ways in and out: the command line."""

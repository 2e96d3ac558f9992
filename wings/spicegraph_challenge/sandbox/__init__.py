"""Strangers' files, read in processes with limits on memory and time."""

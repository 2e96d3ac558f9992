"""The commands ``spicegraph agree`` and ``spicegraph bounds``."""

"""A metric, a command and a service for spicegraph."""

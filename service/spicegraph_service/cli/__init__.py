"""The command ``spicegraph``."""

from spicegraph_service.cli.app import main

__all__ = ["main"]

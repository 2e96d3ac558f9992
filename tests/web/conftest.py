"""Browsers for the tests in this folder."""

from servers import axe, program, start_browser

__all__ = ["axe", "program", "start_browser"]

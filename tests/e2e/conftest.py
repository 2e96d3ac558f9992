"""Servers, browsers and a parser without a model, for the tests in this folder."""

import pytest

from servers import (
    axe,
    client,
    program,
    server,
    servers_end_with_module,
    servers_end_with_test,
    start_browser,
    start_server,
)
from word_facts import WordFacts

__all__ = [
    "axe",
    "client",
    "program",
    "server",
    "servers_end_with_module",
    "servers_end_with_test",
    "start_browser",
    "start_server",
    "word_facts",
]


@pytest.fixture(scope="session")
def word_facts() -> WordFacts:
    """A parser without a model: every word is an object."""
    return WordFacts()

"""Settings of the hypothesis tests, which tests run on one worker, and which tests only the full run has."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# No test asserts a speed: on a busy machine, or where a first example loads a lexicon, the clock says nothing about the law.
settings.register_profile("full", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=100)
# The same examples in every run: a change is judged by what it changes. `make test-full` draws new ones, and four times as many.
settings.register_profile("default", settings.get_profile("full"), max_examples=25, derandomize=True)
settings.register_profile("quick", settings.get_profile("default"), max_examples=10)
settings.load_profile("default")

STARTERS = {"start_server", "start_browser"}
"""Fixtures that start processes."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--full``: the parts of the full run that this run has too (``tools/lanes.py`` lists them), or ``all``."""
    parser.addoption("--full", default="", metavar="PART,PART", help="also tests marked full(PART); all: every one")


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Deselect parts of the full run, mark what starts servers as slow, and group tests that share a fixture of their file.

    xdist appends a test's group to its name. Releases of pytest that take no new name lose the groups in silence, and every
    worker then starts every server: such a run is refused.
    """
    select_full_parts(config, items)
    for item in items:
        if not STARTERS.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)
    if not config.getoption("loadgroup", default=False):
        return (yield)
    for item in items:  # with --dist loadgroup
        definitions = getattr(item, "_fixtureinfo").name2fixturedefs.values()  # noqa: B009 (pytest has no public name for it)
        file = item.nodeid.partition("::")[0]
        own = [each[-1] for each in definitions if each[-1].scope == "module" and each[-1].baseid == file]
        if own and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(file))
    result = yield
    if any(item.get_closest_marker("xdist_group") and "@" not in item.nodeid for item in items):
        raise pytest.UsageError("this release of pytest loses the groups of pytest-xdist: install requirements/dev.txt")
    return result


def select_full_parts(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests marked ``full(PART)`` whose part ``--full`` does not name."""
    parts = set(str(config.getoption("--full")).split(","))
    if "all" in parts:
        return
    left_out = [item for item in items if (mark := item.get_closest_marker("full")) and mark.args[0] not in parts]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        left = set(left_out)
        items[:] = [item for item in items if item not in left]

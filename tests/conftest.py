"""Settings of the hypothesis tests, and which tests run on one worker."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# No test asserts a speed: on a busy machine, or where a first example loads a lexicon, the clock says nothing about the law.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# make check draws fewer examples; the lanes that make test runs draw all of them.
settings.register_profile("quick", settings.get_profile("untimed"), max_examples=15)
settings.load_profile("untimed")

STARTERS = {"start_server", "start_browser"}
"""Fixtures that start processes."""


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Mark what starts servers or browsers as slow, and let tests that share a fixture of their file run on one worker.

    xdist appends a test's group to its name. Releases of pytest that take no new name lose the groups in silence, and every
    worker then starts every server: such a run is refused.
    """
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

"""Settings of the hypothesis tests."""

from hypothesis import HealthCheck, settings

# No test asserts a speed: on a busy machine, or where a first example loads a lexicon, the clock says nothing about the law.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# make check draws fewer examples; the lanes that make test runs draw all of them.
settings.register_profile("quick", settings.get_profile("untimed"), max_examples=15)
settings.load_profile("untimed")

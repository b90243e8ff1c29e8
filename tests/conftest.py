"""How Hypothesis runs: the same examples every time, unless HYPOTHESIS_PROFILE=explore asks for new and more ones."""

import os

from hypothesis import HealthCheck, settings

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
settings.register_profile("steady", derandomize=True, deadline=None, suppress_health_check=_SLOW)
settings.register_profile("explore", derandomize=False, deadline=None, suppress_health_check=_SLOW, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


def pytest_configure(config):
    config.addinivalue_line("markers", "interpreted: quick enough to run without compiled loops (NUMBA_DISABLE_JIT=1)")

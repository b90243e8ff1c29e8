"""How tests run: signals are heard, and Hypothesis tries the same examples, or others by HYPOTHESIS_PROFILE=explore."""

import os
import signal

from hypothesis import HealthCheck, settings

# In the background, or under nohup, these are ignored, and so they are in all processes that tests start.
for _name, _usual in (("SIGINT", signal.default_int_handler), ("SIGHUP", signal.SIG_DFL)):
    if hasattr(signal, _name) and signal.getsignal(getattr(signal, _name)) == signal.SIG_IGN:
        signal.signal(getattr(signal, _name), _usual)


_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
settings.register_profile("steady", derandomize=True, deadline=None, suppress_health_check=_SLOW)
settings.register_profile("explore", derandomize=False, deadline=None, suppress_health_check=_SLOW, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


def pytest_configure(config):
    config.addinivalue_line("markers", "interpreted: quick enough to run without compiled loops (NUMBA_DISABLE_JIT=1)")

"""Settings for every test of the tree: Hypothesis without deadlines, repeatable unless asked otherwise."""

import os

from hypothesis import HealthCheck, settings

# The machines that run the tests are noisy, so time is no criterion; `DPGM_HYPOTHESIS=explore` looks for new examples.
settings.register_profile("repeatable", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", deadline=None, max_examples=1000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("DPGM_HYPOTHESIS", "repeatable"))

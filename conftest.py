"""Settings for every test of the tree: one BLAS thread each, Hypothesis without deadlines and repeatable."""

import os

from hypothesis import HealthCheck, settings

# `pytest -n auto` has a process for every core, so no process takes more than one; subprocesses inherit it, and whoever
# sets a variable is heard. BLAS reads them when numpy is loaded, which happens after this file.
for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ.setdefault(_threads, "1")

# The machines that run the tests are noisy, so time is no criterion; `DPGM_HYPOTHESIS=explore` looks for new examples.
settings.register_profile("repeatable", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", deadline=None, max_examples=1000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("DPGM_HYPOTHESIS", "repeatable"))

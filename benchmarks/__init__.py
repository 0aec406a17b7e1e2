"""Measurements and studies. Each module here is a command, `python -m benchmarks.NAME`; folders hold what they share.

One thread each, also in processes that are started from here: said before numpy is imported, which reads it once.
"""

import os

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

"""The embedded path in `scale.py`: the folder is read and counted in this process."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from benchmarks.scale_table import NAMES, STRUCTURE, Taken, peak_mb, sha_of
from dpgm_core.counting.table_counts import count
from dpgm_core.sources import as_source


def run(folder: Path) -> Taken:
    """One sum. What it is measured against is another version's, which runs in a process of its own."""
    source: Any = as_source(folder)
    next(iter(source.batches(STRUCTURE.domain, NAMES)))  # so that everything is loaded
    idle, start = peak_mb(), time.perf_counter()
    counted = count(source, STRUCTURE)
    return Taken(
        seconds=time.perf_counter() - start, baseline_seconds=None, peak_mb=peak_mb() - idle, counts_sha=sha_of(counted)
    )

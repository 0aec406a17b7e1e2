"""Comparison of two or more releases, models or synthetic files, from released values alone and therefore free.

`compare` takes objects or files and returns a `Comparison`: the cost and guarantee of each, and how far each of the
others is from the first. No records are read; a model is compared with records in `dpgm_core.pipeline.evaluation`.
Tasks alone are about records: `measure_task` trains classifiers on one table and tests them on another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgm_core._util.lazy import face

if TYPE_CHECKING:
    from dpgm.comparison.comparison import compare
    from dpgm.comparison.page import make_page
    from dpgm.comparison.subjects import Synthetic, read_subject
    from dpgm.comparison.task import TaskScore, measure_task
    from dpgm.comparison.values import Comparison, Difference, Gap, Overlap, Pair, Subject

# module -> its public names
_LAZY = {
    "comparison": ["compare"],
    "page": ["make_page"],
    "subjects": ["Synthetic", "read_subject"],
    "task": ["TaskScore", "measure_task"],
    "values": ["Comparison", "Difference", "Gap", "Overlap", "Pair", "Subject"],
}

__all__ = [
    "Comparison",
    "Difference",
    "Gap",
    "Overlap",
    "Pair",
    "Subject",
    "Synthetic",
    "TaskScore",
    "compare",
    "make_page",
    "measure_task",
    "read_subject",
]

__getattr__, __dir__ = face(__name__, _LAZY)

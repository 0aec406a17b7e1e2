"""Studies: how well components do on records drawn from a known truth, which no person is in; nothing is charged.

`Study` says what is compared, `run` compares, and a `StudyResult` tells. On the command line `dpgm study`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgm_core._util.lazy import face

if TYPE_CHECKING:
    from dpgm.study.result import Estimate, Row, StudyResult
    from dpgm.study.runs import run
    from dpgm.study.spec import load_study
    from dpgm.study.store import run_tasks
    from dpgm.study.study import Case, Method, Study, dirichlet_potentials, generated_truth, normal_potentials

# module -> its public names
_LAZY = {
    "result": ["Estimate", "Row", "StudyResult"],
    "runs": ["run"],
    "spec": ["load_study"],
    "store": ["run_tasks"],
    "study": ["Case", "Method", "Study", "dirichlet_potentials", "generated_truth", "normal_potentials"],
}

__all__ = [
    "Case",
    "Estimate",
    "Method",
    "Row",
    "Study",
    "StudyResult",
    "dirichlet_potentials",
    "generated_truth",
    "load_study",
    "normal_potentials",
    "run",
    "run_tasks",
]

__getattr__, __dir__ = face(__name__, _LAZY)

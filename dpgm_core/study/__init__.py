"""Studies: how well components do on records drawn from a known truth, which no person is in; nothing is charged.

`Study` says what is compared, `run` compares, and a `StudyResult` tells. On the command line `dpgm study`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgm_core.faces import face

if TYPE_CHECKING:
    from dpgm_core.study.asked import Study
    from dpgm_core.study.methods import Case, Method
    from dpgm_core.study.result import Estimate, Row, StudyResult
    from dpgm_core.study.running import run
    from dpgm_core.study.spec import load_study
    from dpgm_core.study.truths import dirichlet_potentials, generated_truth, normal_potentials

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
]

_LAZY = {
    "asked": ["Study"],
    "methods": ["Case", "Method"],
    "result": ["Estimate", "Row", "StudyResult"],
    "running": ["run"],
    "spec": ["load_study"],
    "truths": ["dirichlet_potentials", "generated_truth", "normal_potentials"],
}
__getattr__, __dir__ = face(__name__, _LAZY)

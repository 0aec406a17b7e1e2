"""From a delta to its epsilon: dpgm's conversions beside dp-accounting's privacy loss distributions and the curves.

    python -m benchmarks.conversions [--smoke|--report] [--cells "tables*"]

Noise is fixed and the epsilon at a delta is looked for: the least at which dpgm's upper bound is within the delta, the
upper and lower bounds of dp-accounting (losses on its default grid of 1e-4), and that of the curve itself, summed by
other code (`peers/pld.py`). Subsampled rounds have no closed form: there the curve stands for dp-accounting's lower
bound on a grid of 1e-6, which is below it. A cell is a noise and what one person moves; nothing is drawn and no data
are read. dp-accounting runs in the environment whose interpreter DPGM_DP_ACCOUNTING_PYTHON names, by default in this
one.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from fractions import Fraction
from importlib.util import find_spec
from typing import Any

from benchmarks.harness.alone import alone
from benchmarks.harness.main import Study, main
from benchmarks.harness.output import having, markdown, marked
from benchmarks.harness.runs import Line, Task
from benchmarks.peers import pld
from dpgm_core import Budget, PrivacyEvent, Sensitivity
from dpgm_core.privacy.accounting import compose
from dpgm_core.privacy.dominating_pairs import laplace_delta
from dpgm_core.privacy.gaussian import discrete_delta
from dpgm_core.privacy.joint_gaussian import normal_parts_delta, together_delta

VARIABLE = "DPGM_DP_ACCOUNTING_PYTHON"
#: The grid of losses that dp-accounting takes by default, and that of lower bounds which stand for a curve.
STEP, FINE_STEP = 1e-4, 1e-6
#: How far above a curve an epsilon may be; of these cells it is not claimed.
BAR, WIDER = 1e-4, "rho"
DELTAS = ("1e-4", "1e-6", "1e-9")
METHODS = ("dpgm", "curve", "dp-accounting")

Part = tuple[str, float, int, int, float]
_GAUSSIAN, _LAPLACE = "discrete_gaussian", "discrete_laplace"
#: Cell -> parts, as `peers/pld.py` has them.
CELLS: Mapping[str, Sequence[Part]] = {
    "continuous, mu = .1": [("gaussian", 10.0, 1, 1, 1.0)],
    "continuous, mu = 1": [("gaussian", 1.0, 1, 1, 1.0)],
    "continuous, mu = 3": [("gaussian", 0.5, 1, 2, 1.0), ("gaussian", 1.0, 1, 1, 1.0)],
    "tables, 1, sigma .5": [(_GAUSSIAN, 0.5, 1, 1, 1.0)],
    "tables, 1, sigma 4": [(_GAUSSIAN, 4.0, 1, 1, 1.0)],
    "tables, 24, sigma 20": [(_GAUSSIAN, 20.0, 1, 24, 1.0)],
    "tables, 300, sigma 100": [(_GAUSSIAN, 100.0, 1, 300, 1.0)],
    "two widths, 3 of 5 and 5 of 10": [(_GAUSSIAN, 5.0, 1, 3, 1.0), (_GAUSSIAN, 10.0, 1, 5, 1.0)],
    "two widths, 1 of 2 and 40 of 30": [(_GAUSSIAN, 2.0, 1, 1, 1.0), (_GAUSSIAN, 30.0, 1, 40, 1.0)],
    "Laplace, 1, scale 2": [(_LAPLACE, 2.0, 1, 1, 1.0)],
    "Laplace, 24, scale 40": [(_LAPLACE, 40.0, 1, 24, 1.0)],
    "3 rows, 1 table, sigma 4": [(_GAUSSIAN, 4.0, 3, 1, 1.0)],
    "3 rows, 9 tables, sigma 60": [(_GAUSSIAN, 60.0, 3, 9, 1.0)],
    "3 rows, 1 table, Laplace, scale 6": [(_LAPLACE, 6.0, 3, 1, 1.0)],
    "rounds, 100 at .1, sigma 4": [(_GAUSSIAN, 4.0, 1, 100, 0.1)],
    "rounds, 100 at .01, sigma 1": [(_GAUSSIAN, 1.0, 1, 100, 0.01)],
    # zCDP covers every mechanism, so this is no conversion of the same curve: that of Gaussian noise of this rho.
    "rho = .02, Gaussian noise": [("gaussian", 5.0, 1, 1, 1.0)],
    "rho = 1/2, Gaussian noise": [("gaussian", 1.0, 1, 1, 1.0)],
}


def ours(cell: str, delta: str) -> float:
    """Return the least epsilon, to 1e-9, at which dpgm states at most this delta."""
    parts = CELLS[cell]
    kind, scale, _, cells, rate = parts[0]
    if cell.startswith("rho"):
        return float(Budget.zcdp(1 / (2 * Fraction(scale) ** 2)).to_approx(delta).epsilon)
    one = Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)
    if rate < 1:
        event = PrivacyEvent(kind="discrete-gaussian", scale=scale, sensitivity=1.0)
        return compose(event, one, rounds=cells, sampling_rate=rate, neighbours="add-remove").epsilon(delta)
    moved = {
        (Fraction(scale) ** 2, Sensitivity(l0=cells, l1=cells * shift, l2_squared=cells * shift**2, linf=shift)): 1
        for _, scale, shift, cells, _ in parts
    }
    ((variance, sensitivity), _), *more = moved.items()

    def stated(epsilon: Fraction) -> float:
        if kind == _LAPLACE:
            return laplace_delta(scale, sensitivity, epsilon)
        if kind == "gaussian":
            return normal_parts_delta(moved, epsilon)
        return together_delta(moved, epsilon) if more else discrete_delta(variance, sensitivity, epsilon)

    low, high, most = 0.0, 1.0, float(delta)
    while stated(Fraction(high)) > most:
        low, high = high, 2 * high
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if stated(Fraction(middle)) > most else (low, middle)
    return high


def work(task: Task, asked: Namespace) -> Mapping[str, Any]:
    """The epsilons of a method, in the order of `DELTAS`; of dp-accounting upper and lower ones."""
    parts = CELLS[task.cell]
    if task.method == "dpgm":
        return {"epsilons": [ours(task.cell, delta) for delta in DELTAS]}
    python, deltas = os.environ.get(VARIABLE) or sys.executable, [float(delta) for delta in DELTAS]
    if task.method == "curve":
        if parts[0][4] < 1:
            return {"epsilons": alone(pld.epsilons, parts, deltas, FINE_STEP, python=python)["lower"]}
        return {"epsilons": alone(pld.exact, parts, deltas, python=python)}
    return dict(alone(pld.epsilons, parts, deltas, STEP, python=python))


def missing(method: str) -> str | None:
    """Why a method cannot run here."""
    if method == "dpgm" or os.environ.get(VARIABLE) or find_spec("dp_accounting"):
        return None
    return f"dp-accounting is not installed; name the interpreter of an environment with it in {VARIABLE}"


def differences(lines: Sequence[Line]) -> dict[str, list[tuple[float, ...]]]:
    """Return, of each cell with all methods, for each delta: dpgm's epsilon; how far it, and the bounds of
    dp-accounting from above and below, are above the curve's."""
    found = {}
    for cell in CELLS:
        by_method = {line["method"]: line for line in having(lines, cell=cell)}
        if set(METHODS) <= by_method.keys():
            (mine, curve), peer = (by_method[name]["epsilons"] for name in METHODS[:2]), by_method[METHODS[2]]
            rows = zip(mine, curve, peer["upper"], peer["lower"], strict=True)
            found[cell] = [(one, one - true, upper - true, lower - true) for one, true, upper, lower in rows]
    return found


def tables(lines: Sequence[Line]) -> str:
    """The differences at the second delta, for a page, and at all of them."""
    found = differences(lines)
    head = ["noise and what one person moves", "delta", "epsilon", "dpgm", "dp-accounting, upper", "lower"]
    rows = [
        [cell, delta, f"{one[0]:.6f}", *(f"{difference:+.1e}" for difference in one[1:])]
        for cell, each in found.items()
        for delta, one in zip(DELTAS, each, strict=True)
    ]
    few = [[row[0], *row[2:]] for row in rows if row[1] == DELTAS[1]]
    peers = ", ".join(sorted({line["version"] for line in having(lines, method=METHODS[2])}))
    text = "# Epsilon at a delta\n\n`python -m benchmarks.conversions`, dp-accounting " + peers
    text += f". Differences from the epsilon of the curve, first at delta = {DELTAS[1]}. "
    most = max((one[1] for cell, each in found.items() if not cell.startswith(WIDER) for one in each), default=0.0)
    least = min((one[1] for each in found.values() for one in each), default=0.0)
    text += f"Of dpgm's, but for rho, at most {most:.1e} (bar {BAR:.0e}); none below {least:.0e}.\n\n"
    return text + marked("page", markdown([head[0], *head[2:]], few)) + "\n" + marked("table", markdown(head, rows))


STUDY = Study(
    about=__doc__,
    name="conversions",
    cells=lambda asked: dict.fromkeys(["tables, 1, sigma 4"] if asked.extent == "smoke" else CELLS, 1),
    methods=METHODS,
    missing=missing,
    work=work,
    text=tables,
)

if __name__ == "__main__":
    main(STUDY)

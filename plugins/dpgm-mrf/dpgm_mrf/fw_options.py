"""The options that the selector and the learner `mrf-fw` share, and what they refuse."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal

import attrs
from attrs import frozen

from dpgm_core import OptionError, option, positive, whole
from dpgm_mrf.common import inside

__all__ = ["FrankWolfe"]

#: Standard deviations that one record of 10,000 is beyond.
_RARE = 3.72


def _steps(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if value == "auto":
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < 2:
        raise OptionError(f"steps must be 'auto' or a whole number of at least 2, got {value!r}; the first is free")


def _clip(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if value is None or value == "auto":
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 1:
        raise OptionError(f"clip must be 'auto', none, or a number above 0 and at most 1, got {value!r}")


def _width(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    positive(instance, attribute, value)
    if not 1e-3 <= float(value) <= 1e4:  # type: ignore[arg-type]
        raise OptionError(f"width must lie between 0.001 and 10,000 nats, got {value!r}; models have widths of 1 to 10")


@frozen(kw_only=True)
class FrankWolfe:
    """How the regressions are made.

    >>> [float(FrankWolfe(width=1.2).kappa("zcdp", [2] * p, "logistic")) for p in (3, 16, 32, 128)]
    [0.6763, 0.389, 0.3315, 0.3]
    """

    width: float = attrs.field(
        validator=_width,
        metadata={
            "help": "the largest sum of one attribute's couplings and field, in absolute value; public knowledge",
            "unit": "nats",
            "sample": 1.2,  # of what the conformance kit tries
        },
    )
    steps: int | Literal["auto"] = option(
        "auto",
        help="how often the records are read, and once more; 'auto': by the number of records and the budget",
        unit="steps",
        validator=_steps,
    )
    regression: Literal["softmax", "pairs"] = option(
        "softmax",
        help="of attributes of more than two labels: all labels at once, or each two of them, as in the paper; "
        "logistic where every attribute has two",
    )
    clip: float | Literal["auto"] | None = option(
        "auto",
        help="a record's residuals are shortened together to this mean square (pure budgets: mean); 'auto': 0.3 (0.5) "
        "of many binary attributes, more of few and of other ones",
        validator=_clip,
    )
    residual_grid: int = option(
        128, help="residuals are cut to multiples of 1/residual_grid", unit="units", validator=whole
    )
    weights_grid: int = option(
        64, help="weights are rounded to multiples of 1/weights_grid", unit="units", validator=whole
    )
    least: float = option(0.4, help="couplings above half of it are edges", unit="nats", validator=positive)
    budget_split: Literal["touched", "paper"] = option(
        "touched",
        help="regression 'pairs': charge for the regressions that a record touches, or use no more of the budget than "
        "the paper's rho / (k^2 p) each",
    )
    share_one_way: float = option(0.05, help="of the budget, for every attribute alone", validator=inside)

    def __attrs_post_init__(self) -> None:
        if self.budget_split == "paper" and self.regression != "pairs":
            raise OptionError("budget_split = 'paper' is of Algorithm 3; take regression = 'pairs' with it")

    def kappa(self, kind: str, labels: Sequence[int], loss: str) -> Fraction | None:
        """The clip for a kind of budget, of regressions of attributes with so many labels.

        "auto": so that under a model of attributes that do not matter to each other about one record of 10,000 is
        shortened. A logistic residual is 1 - P with probability P and else P: its square has mean v = P (1 - P) and
        variance v (1 - 4 v). Of p of them v + 3.72 sqrt(v (1 - 4 v) / p) is at most (1 + sqrt(1 + 4 * 3.72^2 / p)) / 8,
        whatever P, and the like of absolute values (pure) at most (1 + sqrt(1 + 3.72^2 / p)) / 4. The largest residual
        of a softmax is 1 - P(own label), and 1 - 1/k where its k labels are alike: as much larger than 1/2. Of few
        attributes .3 would shorten many records, the badly predicted ones, and overstate every parameter.
        """
        if self.clip is None:
            return None
        if self.clip != "auto":
            return Fraction(str(float(self.clip)))
        wrong = [1 - 1 / count if loss == "softmax" else 0.5 for count in labels]
        if kind == "pure":
            found = (1 + math.sqrt(1 + _RARE**2 / len(labels))) / 4 * 2 * sum(wrong) / len(wrong)
        else:
            least = max(0.3, (1 + math.sqrt(1 + 4 * _RARE**2 / len(labels))) / 8)
            found = least * 4 * sum(one**2 for one in wrong) / len(wrong)
        return Fraction(str(round(min(found, 1.0), 4)))

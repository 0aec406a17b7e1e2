"""Gradients of the regressions of each attribute on the others, as scores of directions: the family of Frank-Wolfe.

Core computes the gradients from records; a plugin hands over public weights only and sees which directions were chosen.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal, TypeAlias

from attrs import field, frozen

from dpgm_core.arrays import IntArray
from dpgm_core.structure import Clique, Structure

__all__ = ["Loss", "NodeGradients", "Regressions"]

Loss: TypeAlias = Literal["logistic", "softmax", "pairs"]


@frozen(kw_only=True)
class Regressions:
    """Which attribute is regressed on what.

    candidates: cliques that may have weight, of two attributes or more; an attribute is regressed on the others of its
    cliques. loss: "logistic": every attribute of the candidates has two labels, coded +1 and -1, one regression each,
    on the products of the other attributes of each of its cliques. "softmax": one regression an attribute with a row
    for each label, on the labels of its partners, one column each (pairs only). "pairs": one regression for each two
    labels of an attribute, on the records that have one of them (Algorithm 3 of the paper; pairs only).
    """

    candidates: Structure
    loss: Loss


@frozen(kw_only=True, eq=False)
class NodeGradients:
    """The negative gradient of every regression's loss, summed over records: a score for each coordinate and sign.

    weights: (rows, columns) of the regressions, int64 in units of 1/weights_grid; public. Of each choice their absolute
    sum is at most radius * weights_grid. residual_grid: G, units of a residual. clip: kappa, each record's residuals
    are shortened together to G sqrt(kappa) times the root of the number it touches (pure budgets: to a sum of
    G * kappa); None: not at all.

    Source: Zhang, Kamath, Kulkarni, Wu (2020), Algorithms 1 to 3; the exact constants in docs/privacy.md.
    """

    regressions: Regressions
    weights: IntArray = field(repr=False)
    radius: Fraction
    weights_grid: int = 64
    residual_grid: int = 128
    clip: Fraction | None = None

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The candidates."""
        return self.regressions.candidates.cliques

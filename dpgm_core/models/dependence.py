"""How much each pair of attributes tells of each other in a model: mutual information and Cramer's V."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from dpgm_core.arrays import FloatArray
from dpgm_core.models.model import Model
from dpgm_core.structure import Clique

__all__ = ["Dependence", "dependence"]


@frozen(kw_only=True, eq=False)
class Dependence:
    """Pairs of attributes, each once, and what a model says of them.

    names: the K attributes that were looked at. pairs: (P,) of names. mutual_information: (P,), nats. cramers_v: (P,),
    of 0 to 1. low, high: intervals of the mutual information, (P,), of a model with replicates; None without. standing:
    (P,), of `Model.standing`.
    """

    names: Clique
    pairs: tuple[Clique, ...]
    mutual_information: FloatArray
    cramers_v: FloatArray
    standing: tuple[str, ...]
    low: FloatArray | None = None
    high: FloatArray | None = None
    level: float | None = None


def dependence(model: Model, attributes: Sequence[str] | None = None, *, level: float = 0.9) -> Dependence:
    """All pairs of `attributes`, by default of all that were measured. Free in privacy: computed from the model."""
    raise NotImplementedError

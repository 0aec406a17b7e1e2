"""The pictures: a marginal, a pair, all dependence, the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from dpgm_core.models.model import Model
from dpgm_core.plots.picture import Picture

__all__ = ["dependence", "graph", "marginal", "pair"]


def marginal(
    model: Model, attribute: str, given: Mapping[str, object] | None = None, *, level: float = 0.9, most: int = 40
) -> Picture:
    """Bars of p(attribute | given), with intervals from replicates. most: labels shown; the rest is one bar."""
    raise NotImplementedError


def pair(
    model: Model, first: str, second: str, given: Mapping[str, object] | None = None, *, level: float = 0.9
) -> Picture:
    """A heat map of p(first, second | given)."""
    raise NotImplementedError


def dependence(
    model: Model,
    attributes: Sequence[str] | None = None,
    *,
    measure: Literal["cramers-v", "mutual-information"] = "cramers-v",
    level: float = 0.9,
    most: int = 60,
) -> Picture:
    """A matrix of all pairs, measured ones marked; of more than `most` attributes the most dependent ones."""
    raise NotImplementedError


def graph(model: Model, *, junction_tree: bool = False) -> Picture:
    """The attributes and what joins them, lines as wide as the dependence; or the clusters of the junction tree."""
    raise NotImplementedError

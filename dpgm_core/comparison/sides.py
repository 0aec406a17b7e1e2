"""Sides of a comparison with probabilities for any table: a model, and counted synthetic records."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
from attrs import field, frozen

from dpgm_core.arrays import FloatArray
from dpgm_core.comparison.subjects import Synthetic
from dpgm_core.components.registry import make
from dpgm_core.domain import Domain
from dpgm_core.errors import DataError
from dpgm_core.evaluate import columns_of, normalise, tabulate
from dpgm_core.models.model import Model
from dpgm_core.models.standing import quote_names
from dpgm_core.structure import Clique, Structure

__all__ = ["RecordsSide", "ModelSide", "Side"]


class Side(Protocol):
    """Probabilities of tables, over a domain of its own."""

    @property
    def domain(self) -> Domain:
        """Domain of its answers."""

    def tables(self, cliques: Sequence[Clique]) -> list[FloatArray]:
        """p(clique) of each, axes in the order of its names."""

    def standing(self, clique: Clique) -> str:
        """Return the basis of such an answer, in a word or two."""


@frozen(kw_only=True)
class ModelSide:
    """A model's answers."""

    model: Model

    @property
    def domain(self) -> Domain:
        """The model's, with all codes."""
        return self.model.domain

    def tables(self, cliques: Sequence[Clique]) -> list[FloatArray]:
        """Its marginals."""
        return list(self.model.marginals_of(cliques).values())

    def errors(self, cliques: Sequence[Clique]) -> list[FloatArray]:
        """The standard errors of these tables, from its replicates and what a holdout found."""
        if self.model.checked:
            return [self.model.intervals(names).standard_error for names in cliques]
        # All at once: each replicate is asked once.
        intervals = self.model.interval_of(
            lambda one: np.concatenate([t.ravel() for t in one.marginals_of(cliques).values()])
        )
        shapes = [self.domain.shape(names) for names in cliques]
        parts = np.split(intervals.standard_error, np.cumsum([math.prod(shape) for shape in shapes])[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]

    def standing(self, clique: Clique) -> str:
        """The model's own word."""
        return self.model.standing(clique)


@frozen(kw_only=True, slots=False)
class RecordsSide:
    """Synthetic records, counted over a domain that a model or its owner gave.

    A value that is no label of the domain counts as what its column takes for unknown. Raises DataError for a file that
    cannot be read as `dpgm sample` writes it.
    """

    content: Synthetic
    whole: Domain = field(repr=False)

    @cached_property
    def _data(self) -> object:
        path = self.content.path
        if not path.name.lower().endswith((".csv", ".csv.gz")):
            return path
        said = self.content.stamp.get("dialect") if self.content.dialect is None else self.content.dialect
        if isinstance(said, Mapping):
            return make(
                "source", "csv", path=path, **{key: said[key] for key in ("delimiter", "encoding") if key in said}
            )
        return make("source", "csv", path=path).naming_most(self.whole.names)

    @cached_property
    def domain(self) -> Domain:
        """The attributes that the file has columns of, without constraints: a drawn record that breaks one counts."""
        columns = set(columns_of(self._data))
        attributes = [one for one in self.whole if one.name in columns]
        if not attributes:
            raise DataError(
                f"{self.content.path} has no column of the domain ({quote_names(self.whole.names)}); say how it is "
                "written: --dialect delimiter=, encoding="
            )
        return Domain(attributes)

    @cached_property
    def records(self) -> int:
        """Number of records in the file."""
        first = self.domain.names[:1]
        return int(self._counts([first])[0].sum())

    def tables(self, cliques: Sequence[Clique]) -> list[FloatArray]:
        """Shares of the records, from one pass over the file."""
        return [normalise(table) for table in self._counts(cliques)]

    def standing(self, clique: Clique) -> str:
        """Return "drawn": a file of records does not state the basis of its model."""
        return "drawn"

    def _counts(self, cliques: Sequence[Clique]) -> list[FloatArray]:
        # These are nobody's records: their stamp says that a model drew them.
        counted = tabulate(self._data, Structure(self.domain, cliques), allow_non_private=True)
        return [np.asarray(counted[clique], dtype=np.float64) for clique in cliques]

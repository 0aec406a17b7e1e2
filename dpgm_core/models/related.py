"""Models of two related tables: samples, queries and intervals over roots and their children.

A model of pairs, over `Related.pair`, is the distribution P of one record per root: root columns x, the number of
children n, the first child a, one of the others y, each with the same probability, and p, the child before y.

Children are counted as C(f) = N [P(f(x, a), n >= 1) + sum over n >= 2 of (n - 1) P(n, f(x, y))], since y stands for
n - 1 children. Ordered pairs of children of one root are counted in the same way from (a, y) and (p, y), both ways,
which is all of them for up to three children; those that are further apart come from sampled roots.

A sample draws roots with their first child from P, and then each further child given its root, the first child and the
child before it. The product of these conditionals need not reproduce the averaged tables of P exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import evolve, frozen

from dpgm_core._util.arrays import Array, FloatArray, IntArray, aligned, along
from dpgm_core._util.randomness import Randomness, SeededRandomness, randomness_or_system
from dpgm_core.components.registry import Registry
from dpgm_core.domain.attribute import first_repeated
from dpgm_core.domain.domain import Domain
from dpgm_core.domain.related import FIRST, PREVIOUS, SIZE, Related
from dpgm_core.errors import (
    DataError,
    InferenceError,
    ModelFileError,
    OptionError,
    StructureError,
    brief,
    did_you_mean,
)
from dpgm_core.models.analysis import estimate
from dpgm_core.models.completion import read_cells, stamp_own_rows
from dpgm_core.models.corrections import Grid, effects_of_each
from dpgm_core.models.functionals import Moments
from dpgm_core.models.intervals import Interval, checked_level, corrected_interval
from dpgm_core.models.merged_codes import SampleMethod, draw_codes
from dpgm_core.models.model import ON_ANALYSES, Model
from dpgm_core.models.model_file import load_model
from dpgm_core.models.notebook import Marginal
from dpgm_core.models.queries import BY_DEFINITION, BY_STRUCTURE, MEASURED, NOT_MEASURED
from dpgm_core.models.related_children import Children, find_keys
from dpgm_core.models.sampling import Form
from dpgm_core.releases.session import caveats_of
from dpgm_core.releases.totals import counted
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.tables import margin_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["SAMPLED", "RelatedModel", "RelatedTables"]

#: Standing of pairs of siblings of which some were counted in sampled roots.
SAMPLED = "sampled"
#: Roots that are sampled for these, always the same ones, and about how many children at most.
_SAMPLED_ROOTS, _SAMPLED_CHILDREN = 100_000, 1_000_000
#: Cells of the table of a question, and numbers of its influence functions, up to which intervals are by formula.
_MAX_CELLS, _MAX_NUMBERS = 2**20, 2**25


@frozen(kw_only=True, eq=False)
class RelatedTables:
    """Two tables whose keys agree.

    Attributes
    ----------
    root, children : pyarrow.Table
        Each key of the children is one of the roots'.
    """

    root: pa.Table
    children: pa.Table


class RelatedModel:
    """Model of two related tables: one model of pairs, with samples and answers about roots and all their children.

    Parameters
    ----------
    model : Model
        Over `related.pair`.
    related : Related, optional
        By default what the terms of the model's releases state.

    Raises
    ------
    StructureError
        The model is not of two related tables, or of others.

    Notes
    -----
    What is not of two tables, such as the guarantee, the cost, replicates and goodness of fit, is in `model`.

    Examples
    --------
    >>> from dpgm_core import Domain, Structure, Tables
    >>> related = Related(root=Domain.from_sizes({"own": 2}), children=Domain.from_sizes({"age": 3}), key="id",
    ...                   max_children=2)
    >>> structure = Structure(related.pair, [(name,) for name in related.pair.names])
    >>> household = RelatedModel(Model(structure, Tables.zeros(structure)), related)
    >>> household.marginal("age").round(3).tolist()
    [0.333, 0.333, 0.333]
    >>> drawn = household.sample(100)
    >>> set(drawn.children["id"].to_pylist()) <= set(drawn.root["id"].to_pylist())
    True
    """

    def __init__(self, model: Model, related: Related | None = None) -> None:
        if not isinstance(model, Model):
            raise StructureError(f"RelatedModel is of a model, got {type(model).__name__}; of a fit give its model")
        related = model.related if related is None else related
        if related is None:
            raise StructureError(
                "the model's releases are of one table; state which two tables it is of: RelatedModel(model, related)"
            )
        if model.domain.names != related.pair.names:
            raise StructureError("the model is over other columns than the pairs of these two tables")
        self.model, self.related = model, related
        left_out = set(model.left_out)
        if SIZE in left_out:
            raise StructureError(f"no release measured {SIZE!r}, the number of children; name a clique that holds it")
        slots = related.slots[:2]
        self._roots = tuple(name for name in related.root.names if name not in left_out)
        #: A child column that was measured of the first child alone, or of others alone, is not known of all children.
        self._children = tuple(
            name for name in related.children.names if left_out.isdisjoint(slot + name for slot in slots)
        )

    @classmethod
    def load(cls, path: str | Path, *, registry: Registry | None = None) -> RelatedModel:
        """Read a `.dpgm` model file of two related tables. Raises as `load_model` does, also for one of one table."""
        model = load_model(path, registry=registry)
        if model.related is None:
            raise ModelFileError(f"{path} holds a model of one table; read it with load_model")
        return cls(model)

    def save(self, path: str | Path) -> None:
        """Write one `.dpgm` file, as `Model.save` does; the terms of its releases hold what is stated here."""
        self.model.save(path)

    def __repr__(self) -> str:
        return brief("RelatedModel", repr(self.model), self.related.describe())

    @cached_property
    def domain(self) -> Domain:
        """The columns that it answers about: of roots, `size`, of children; without keys and without constraints."""
        pair, children = self.model.domain, self.related.children
        return Domain([pair[name] for name in (*self._roots, SIZE)] + [children[name] for name in self._children])

    # --- Numbers of roots and children -----------------------------------------------------------

    @property
    def root_count(self) -> float | None:
        """The number of roots, estimated or public as the terms say; None without a release."""
        learned = self.model.learned
        return min((counted(one) for one in learned), key=lambda one: one[1])[0] if learned else None

    @property
    def mean_size(self) -> float:
        """The mean number of children of a root."""
        sizes = np.asarray(self.model.marginal(SIZE))
        return float(sizes @ np.arange(len(sizes)))

    # --- Queries ---------------------------------------------------------------------------------

    def marginal(
        self,
        attributes: Sequence[str] | str = (),
        given: Mapping[str, object] | None = None,
        *,
        siblings: tuple[str, str] | None = None,
    ) -> FloatArray:
        """Return the distribution of columns of roots, of children, or of children with those of their root.

        Parameters
        ----------
        attributes : sequence of str or str
            Columns of either table, and "size". With a child column in them, or given, children are counted; otherwise
            roots are.
        given : mapping of str to object, optional
            column -> label or code.
        siblings : (str, str), optional
            In place of attributes: two child columns, the first of one child and the second of another child of the
            same root, over all ordered pairs of children. Only root columns can be given.

        Returns
        -------
        array
            One axis per attribute, in the order named; a notebook shows the labels.

        Raises
        ------
        StructureError, InferenceError, TooLarge
            As `Model.marginal`.

        Notes
        -----
        The answer is in closed form. Of roots with four children and more, pairs of siblings that are not the first
        child or next to each other are counted in at most 100,000 sampled roots: `standing` is then "sampled".
        """
        question = self._question(attributes, given or {}, siblings)
        if not question.of_children:
            return self.model.marginal(question.names, question.given)
        table = question.answer(self)
        standing = self.standing(attributes, given, siblings=siblings)
        return Marginal.of(table, question.names, question.labels(self), standing, caveats_of(self.model.releases))

    def marginals_of(
        self, cliques: Iterable[Sequence[str] | str], given: Mapping[str, object] | None = None
    ) -> dict[Clique, FloatArray]:
        """Return `marginal` of many sets of columns, from one inference."""
        questions = [self._question(clique, given or {}, None) for clique in cliques]
        fixed = questions[0].given if questions else {}
        tables = self._pairs.marginals_of([part.clique for one in questions for part in one.parts], fixed)
        return {one.names: one.combined(tables) for one in questions}

    def standing(
        self,
        attributes: Sequence[str] | str = (),
        given: Mapping[str, object] | None = None,
        *,
        siblings: tuple[str, str] | None = None,
    ) -> str:
        """Return the basis of `marginal`: the weakest of the tables of pairs that it takes, as `Model.standing`.

        "sampled" where pairs of siblings further apart were counted in sampled roots.
        """
        question = self._question(attributes, given or {}, siblings)
        if question.far and self._far_pairs(question) is not None:
            return SAMPLED
        standings = {self.model.standing(part.clique, question.given) for part in question.parts}
        return next((one for one in (NOT_MEASURED, BY_STRUCTURE, MEASURED) if one in standings), BY_DEFINITION)

    def intervals(
        self,
        attributes: Sequence[str] | str = (),
        given: Mapping[str, object] | None = None,
        *,
        siblings: tuple[str, str] | None = None,
        level: float = 0.9,
    ) -> Interval:
        """Return intervals for the population's `marginal`, entry by entry.

        They are by formula, as those of `Model.intervals`: the answer is a ratio of expectations over pairs, which is
        corrected from the released tables (`dpgm_core.models.analysis`). The sampling of roots is in them, as if one of
        a root's children were drawn: a little too wide, as tables are means over several draws. Replicates take its
        place where no table tells a column by itself, for tables above 2**20 cells, and for pairs of siblings that are
        sampled; without them OptionError is raised.
        """
        level = checked_level(level)
        question = self._question(attributes, given or {}, siblings)
        if not question.of_children:
            return self.model.intervals(question.names, question.given, level=level)
        functional = self._functional(question)
        if functional is None:
            result = self.model.interval_of(
                lambda model: question.answer(RelatedModel(model, self.related)), level=level, within=(0.0, 1.0)
            )
        else:
            values = estimate(self._pairs, functional, level=level, given=question.given)
            parts = (values.uncorrected, values.estimate, np.diag(values.covariance))
            answer, corrected, variance = (one.reshape(question.shape) for one in parts)
            result = corrected_interval(answer, corrected, variance, np.zeros(()), level)
        standing = self.standing(attributes, given, siblings=siblings)
        return evolve(
            result,
            standing=standing,
            names=question.names,
            labels=question.labels(self),
            flaws=caveats_of(self.model.releases),
        )

    def needs_replicates(
        self,
        attributes: Sequence[str] | str = (),
        given: Mapping[str, object] | None = None,
        *,
        siblings: tuple[str, str] | None = None,
    ) -> bool:
        """Return whether `intervals` of this question take replicates, as `Model.needs_replicates`."""
        question = self._question(attributes, given or {}, siblings)
        if not question.of_children:
            return self.model.needs_replicates(question.names, question.given)
        return self._functional(question) is None

    # --- Samples ---------------------------------------------------------------------------------

    def sample(
        self,
        count: int | None = None,
        *,
        method: SampleMethod = "rounded",
        form: Form = "values",
        randomness: Randomness | None = None,
    ) -> RelatedTables:
        """Return synthetic roots and their children.

        Parameters
        ----------
        count : int, optional
            Of roots; by default the model's own number.
        method : {"independent", "rounded"}
            Of the roots with their first child, as in `Model.sample`. Further children are drawn given these.
        form : {"values", "texts", "labels"}
        randomness : Randomness, optional

        Returns
        -------
        RelatedTables
            Keys are 1, 2, ...; a root of size n has exactly n children. With `order` they have 1 to n in that column;
            otherwise their order within the root is random.

        Raises
        ------
        OptionError
            No number of roots is known; others as in `Model.sample`.
        """
        import pyarrow as pa

        if count is None:
            if self.root_count is None:
                raise OptionError("the model carries no release, so its number of roots is unknown; give a count")
            count = round(self.root_count)
        if form not in ("labels", "values", "texts"):
            raise OptionError(f"records can be given as 'labels', 'values' or 'texts', got {form!r}")
        generator = randomness_or_system(randomness).generator()
        codes = self._draw(count, method, generator)
        nothing, every = np.full(len(codes[SIZE]), math.nan), np.ones(len(codes[SIZE]), bool)
        children = self._drawing(form, generator, even=method == "rounded")
        known, gaps = dict.fromkeys(children.decoders, nothing), dict.fromkeys(children.decoders, every)
        places = children.place_roots(codes, known, gaps)
        keys = pa.array(np.arange(1, len(nothing) + 1))
        stamp = {**self.model.stamp(), "synthetic": True, "analysis": ON_ANALYSES}
        root = children.table(self._roots, codes, places, {self.related.key[0]: keys}, stamp)
        return RelatedTables(root=root, children=children.grow(codes, places, keys, stamp))

    def complete(self, roots: Any, *, form: Form = "values", randomness: Randomness | None = None) -> RelatedTables:
        """Return children for the rows of a public table of roots, each drawn given its row.

        Parameters
        ----------
        roots : object with an Arrow stream (pyarrow, pandas, polars)
            Root columns, and "size" and columns of the first child, `first.COLUMN`, where they are known; what is
            missing is drawn too. Other columns pass through. Keys are those of the key's column, which must differ, or
            1, 2, ... without one.
        form : {"values", "texts", "labels"}
            Of the children.
        randomness : Randomness, optional

        Returns
        -------
        RelatedTables
            The roots as they were, and their children. The stamp says that no guarantee covers the caller's rows.

        Raises
        ------
        DataError
            For values that the model does not know, rows to which it gives probability 0, and keys that repeat.
        """
        import pyarrow as pa

        table = pa.table(roots)
        twice = first_repeated(table.column_names)
        if twice is not None:
            raise DataError(f"the table has two columns {twice!r}; rename one")
        generator, rows = randomness_or_system(randomness).generator(), table.num_rows
        children = self._drawing(form, generator)
        # With one child for each root pairs have no further ones.
        names = dict.fromkeys([*self.model._columns.names, *children.decoders])
        codes = {name: np.full(rows, -1, np.int64) for name in names}
        places = {name: np.full(rows, math.nan) for name in children.decoders}
        for name in (*self._roots, SIZE, *(FIRST + name for name in self._children)):
            if name in table.column_names:
                codes[name], place = read_cells(self.model.domain[name], table.column(name), 0)
                places |= {name: place} if name in places else {}
        keys = find_keys(table, self.related.key[0])
        gaps = {name: codes[name] < 0 for name in children.decoders}
        codes = children.draw_roots(codes, places, gaps)
        places = children.place_roots(codes, places, gaps)
        stamp = stamp_own_rows(self.model.stamp())
        return RelatedTables(root=table, children=children.grow(codes, places, keys, stamp))

    # --- Private ---------------------------------------------------------------------------------

    @cached_property
    def _pairs(self) -> Model:
        """The model of pairs that answers about the position too, which is public where no table holds it."""
        return self.model.using(unmeasured="uniform")

    def _question(
        self, attributes: Sequence[str] | str, given: Mapping[str, object], siblings: tuple[str, str] | None
    ) -> _Question:
        """Read a question. Raises StructureError and DomainError."""
        names = (attributes,) if isinstance(attributes, str) else tuple(attributes)
        if siblings is not None:
            if names or len(siblings) != 2 or isinstance(siblings, str):
                raise StructureError('siblings are two child columns, such as siblings=("age", "sex"), and no others')
            if self.related.max_children < 2:
                raise StructureError("with max_children = 1 no child has siblings")
        elif not names:
            raise StructureError("name at least one column to query")
        if len(set(names)) < len(names) or not set(names).isdisjoint(given):
            raise StructureError(f"query {names!r} names a column twice, or one that is given")
        for name in (*names, *(siblings or ()), *given):
            self._check_column(name)
        of_child = {name: value for name, value in given.items() if name in self.related.children}
        if siblings is not None and (of_child or not all(name in self.related.children for name in siblings)):
            raise StructureError("siblings are two child columns, and only root columns can be given with them")
        return _Question.of(self, names, given, of_child, siblings)

    def _check_column(self, name: object) -> None:
        related = self.related
        every = (*related.root.names, SIZE, *related.children.names)
        if name not in every:
            raise StructureError(f"the two tables have no column {name!r}{did_you_mean(str(name), every)}")
        if name != SIZE and name not in (*self._roots, *self._children):
            raise StructureError(
                f"no release behind the model measured {name!r}, of a child both of the first one and of others, so "
                "it has no answer about it; leave it out, or release tables that hold it"
            )

    def _functional(self, question: _Question) -> Moments | None:
        """Return the answer as a functional of pairs; None where intervals take replicates."""
        grid = tuple(dict.fromkeys(name for part in question.parts for name in part.clique))
        shape = self.model.domain.shape(grid)
        cells, numbers = math.prod(shape), math.prod(question.shape) * math.prod(shape)
        if cells > _MAX_CELLS or numbers > _MAX_NUMBERS or (question.far and self._far_pairs(question) is not None):
            return None
        fixed = {name: self.model.domain[name].label_code(value) for name, value in question.given.items()}
        made = Grid.of(self.model.domain, grid, fixed, self.model._merged_codes)
        if effects_of_each(made, self.model.learned) is None:
            return None
        features = sum(part.features(grid, shape) for part in question.parts)

        def shares(means: FloatArray) -> tuple[FloatArray, FloatArray]:
            total = means.sum()
            values = means / total
            return values, (np.eye(len(means)) - values[:, None]) / total

        return Moments(
            attributes=grid,
            names=tuple(map(str, range(math.prod(question.shape)))),
            features=np.asarray(features).reshape(math.prod(question.shape), -1),
            function=shares,
        )

    def _far_pairs(self, question: _Question) -> FloatArray | None:
        """Return the mean number of ordered pairs of siblings that no table of pairs holds, by codes; None for none."""
        codes, keys, children = self._sampled
        chosen = np.ones(len(codes[SIZE]), bool)
        for name, value in question.given.items():
            chosen &= codes[name] == self.model.domain[name].label_code(value)
        first, second = (children[name] for name in question.siblings or ("", ""))
        number = np.arange(len(keys)) - np.searchsorted(keys, keys)
        table = np.zeros(question.shape)
        for apart in range(2, self.related.max_children - 1):
            at = np.flatnonzero((number[:-apart] > 0) & (keys[apart:] == keys[:-apart]) & chosen[keys[:-apart]])
            np.add.at(table, (first[at], second[at + apart]), 1.0)
            np.add.at(table, (first[at + apart], second[at]), 1.0)
        return table / max(int(chosen.sum()), 1) if table.any() else None

    def _drawing(self, form: Form, generator: np.random.Generator, *, even: bool = False) -> Children:
        def wide(name: str) -> FloatArray:
            return self._question((name,), {}, None).answer(self)

        return Children(
            self.model, self.related, self._roots, self._children, wide, form=form, generator=generator, even=even
        )

    def _draw(self, count: int, method: SampleMethod, generator: np.random.Generator) -> dict[str, Array]:
        """Return codes of pairs, of which roots and first children are taken."""
        drawn = draw_codes(self.model._distribution, count, method, generator)
        return {name: one.astype(np.int64) for name, one in zip(self.model._columns.names, drawn, strict=True)}

    @cached_property
    def _sampled(self) -> tuple[Mapping[str, Array], IntArray, Mapping[str, Array]]:
        """Codes of sampled roots, and of their children: the root of each, ascending, and its columns."""
        generator = SeededRandomness(0).generator()
        roots = min(_SAMPLED_ROOTS, math.ceil(_SAMPLED_CHILDREN / max(self.mean_size, 1.0)))
        codes = self._draw(roots, "rounded", generator)
        keys, _, columns, _ = self._drawing("labels", generator, even=True).draw(codes, {})
        return codes, keys, columns


# --- Questions ------------------------------------------------------------------------------------


@frozen(kw_only=True, eq=False)
class _Part:
    """A table of pairs whose weighted sum over sizes is a part of an answer.

    clique: its attributes. axes: attribute -> the axis of the answer, in their order. weights: of each size, (sizes,),
    or one number where the size is given. absent: attributes whose last code is of no child. fixed: attribute -> code,
    of children. shape: of the answer.
    """

    clique: Clique
    axes: Mapping[str, int]
    weights: FloatArray
    absent: frozenset[str]
    fixed: Mapping[str, int]
    shape: tuple[int, ...]

    def counts(self, table: FloatArray) -> FloatArray:
        """Return the expected number of children, or pairs, of a root by the axes of the answer."""
        has_size = SIZE in self.clique
        table = table * (along(self.weights, self.clique.index(SIZE), table.ndim) if has_size else self.weights)
        index = tuple(self.fixed.get(name, slice(-1) if name in self.absent else slice(None)) for name in self.clique)
        left = [name for name in self.clique if name not in self.fixed]
        return margin_of(table[index], left, tuple(self.axes))

    def features(self, grid: Clique, shape: Sequence[int]) -> FloatArray:
        """Return `counts` as functions of the cells of a grid, (numbers of the answer, *shape)."""
        numbers = math.prod(self.shape)
        values = np.eye(numbers).reshape(numbers, *self.shape)
        names = tuple(self.axes)
        values = np.pad(values, [(0, 0), *((0, int(name in self.absent)) for name in names)])
        values = aligned(values, names, grid)
        for name, code in self.fixed.items():
            values = values * along(np.eye(shape[grid.index(name)])[code], grid.index(name), len(grid))
        weights = along(self.weights, grid.index(SIZE), len(grid)) if SIZE in self.clique else self.weights
        for name in self.absent - set(names) - set(self.fixed):
            there = np.append(np.ones(shape[grid.index(name)] - 1), 0.0)
            weights = weights * along(there, grid.index(name), len(grid))
        return np.broadcast_to(values * weights, (numbers, *shape))


@frozen(kw_only=True, eq=False)
class _Question:
    """A question about roots, children or siblings, as tables of pairs. names: of the axes. given: of root columns."""

    names: Clique
    shape: tuple[int, ...]
    given: Mapping[str, object]
    parts: tuple[_Part, ...]
    of_children: bool
    siblings: tuple[str, str] | None = None
    far: bool = False

    @classmethod
    def of(
        cls,
        model: RelatedModel,
        names: Clique,
        given: Mapping[str, object],
        of_child: Mapping[str, object],
        siblings: tuple[str, str] | None,
    ) -> _Question:
        related = model.related
        sizes = model.model.domain.sizes | related.children.sizes
        of_root = {name: value for name, value in given.items() if name not in of_child}
        most, columns = related.max_children, set(related.children.names)
        number = np.arange(most + 1)
        weights = (number > 0).astype(np.float64), np.maximum(number - 1.0, 0.0)
        if siblings is not None:
            # Of one and of another child: the first and this one, and the one before and this one, both ways.
            slots = [(FIRST, ""), ("", FIRST), (PREVIOUS, ""), ("", PREVIOUS)][: 4 if most > 2 else 2]
            needed: list[tuple[Clique, FloatArray]] = [
                ((one + siblings[0], other + siblings[1]), weights[1]) for one, other in slots
            ]
            shape = tuple(sizes[name] for name in siblings)
        else:
            here = (*names, *of_child)
            slots_of = [(FIRST, weights[0]), ("", weights[1])][:most]
            needed = [(tuple(slot + name if name in columns else name for name in here), w) for slot, w in slots_of]
            shape = tuple(sizes[name] for name in names)
        of_children = siblings is not None or bool(of_child) or not columns.isdisjoint(names)
        if not of_children:
            needed = [(names, np.ones(()))]
        fixed = [related.children[name].label_code(value) for name, value in of_child.items()]
        parts = []
        for axes, weight in needed:
            clique: Clique = axes
            if SIZE in of_root:
                weight = np.asarray(weight[model.model.domain[SIZE].label_code(of_root[SIZE])])
            elif of_children and SIZE not in axes:
                clique = (SIZE, *axes)
            absent = frozenset(name for name in axes if name not in related.root and name != SIZE)
            free = len(shape)
            parts.append(
                _Part(
                    clique=clique,
                    axes={name: at for at, name in enumerate(axes[:free])},
                    weights=weight,
                    absent=absent,
                    fixed=dict(zip(axes[free:], fixed, strict=True)),
                    shape=shape,
                )
            )
        shown = names if siblings is None else (siblings[0], f"{siblings[1]} of a sibling")
        return cls(
            names=shown,
            shape=shape,
            given=of_root,
            parts=tuple(parts),
            of_children=of_children,
            siblings=siblings,
            far=siblings is not None and most > 3,
        )

    def labels(self, model: RelatedModel) -> tuple[tuple[str, ...], ...]:
        """The labels of the axes."""
        columns = self.names if self.siblings is None else self.siblings
        children = model.related.children
        return tuple((children if name in children else model.model.domain)[name].labels for name in columns)

    def answer(self, model: RelatedModel) -> FloatArray:
        """Return the probabilities. Raises InferenceError where there is no child."""
        tables = model._pairs.marginals_of([part.clique for part in self.parts], self.given)
        return self.combined(tables, model._far_pairs(self) if self.far else None)

    def combined(self, tables: Mapping[Clique, FloatArray], more: FloatArray | None = None) -> FloatArray:
        """Return the probabilities from tables of pairs. more: expected numbers that are in none of them."""
        total = sum((part.counts(tables[part.clique]) for part in self.parts), np.zeros(self.shape))
        total = total if more is None else total + more
        if not total.sum() > 0:
            raise InferenceError("what is given has probability 0 under the model")
        return np.asarray(total / total.sum())

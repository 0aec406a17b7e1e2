"""The distribution of a model with merged codes: asked about all codes, answered from the one over their blocks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np
from attrs import evolve

from dpgm_core.arrays import Codes, FloatArray, IntArray
from dpgm_core.domain import code_dtype
from dpgm_core.errors import InferenceError, OptionError, TooLarge
from dpgm_core.inference.contract import Estimates
from dpgm_core.inference.exact.rounded import divided
from dpgm_core.models.conditioning import collected, expectation, pieces_of
from dpgm_core.models.distribution import Distribution
from dpgm_core.models.levels import Level, Levels
from dpgm_core.structure import Clique, human_bytes
from dpgm_core.tables import Tables

__all__ = [
    "MergedDistribution",
    "SampleMethod",
    "checked_count",
    "divergence",
    "drawn",
    "expanded",
    "law_of",
    "narrowed",
]

#: How records are drawn: each by itself, or so that their tables are the expected counts, rounded.
SampleMethod: TypeAlias = Literal["independent", "rounded"]

#: Of log-potentials written out over all codes.
_MOST_BYTES = 2**30


class MergedDistribution:
    """p(x) = p_coarse(c(x)) * product of w_i(x_i | c_i(x_i)); it is asked just as a `Distribution` is.

    base: over the blocks. levels: of the merged attributes.

    >>> from dpgm_core import Domain, Structure
    >>> from dpgm_core.models.levels import Level
    >>> structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    >>> level = Level(codes=np.array([0, 1, 1]), weights=np.array([1.0, 0.75, 0.25]))
    >>> levels = Levels(fine=Domain.from_sizes({"a": 3}), of={"a": level})
    >>> merged = MergedDistribution(Distribution(Tables.zeros(structure), "junction-tree"), levels)
    >>> merged.marginals_of([("a",)], {})[0].tolist(), merged.most_probable({})
    ([0.5, 0.375, 0.125], {'a': 0})
    """

    def __init__(self, base: Distribution, levels: Levels) -> None:
        self.base = base
        self.levels = levels

    def marginals_of(self, queries: Sequence[Clique], fixed: Mapping[str, int]) -> list[FloatArray]:
        """p(names | fixed) of each, axes in the order of its names. Raises TooLarge and InferenceError."""
        self._check(fixed)
        # Given its block, a code tells nothing of the other attributes.
        tables = self.base.marginals_of(queries, self.levels.coarse(fixed))
        return [self.levels.expanded(names, table) for names, table in zip(queries, tables, strict=True)]

    def estimates_of(self, queries: Sequence[Clique], fixed: Mapping[str, int]) -> Estimates | None:
        """What `marginals_of` gives, with Monte Carlo errors; None where the engine has none to state."""
        self._check(fixed)
        estimates = self.base.estimates_of(queries, self.levels.coarse(fixed))
        if estimates is None:
            return None

        def spread(tables: Sequence[FloatArray]) -> tuple[FloatArray, ...]:
            # a code has a share of its block, which is known: its error has the same
            return tuple(self.levels.expanded(names, table) for names, table in zip(queries, tables, strict=True))

        return evolve(estimates, tables=spread(estimates.tables), errors=spread(estimates.errors))

    def most_probable(self, fixed: Mapping[str, int]) -> dict[str, int]:
        """The codes of a most probable record: of each block its likeliest code counts, and its weight."""
        self._check(fixed)
        free = {name: level for name, level in self.levels.of.items() if name not in fixed}
        best = [((name,), level.log_weights[level.likeliest]) for name, level in free.items()]
        pieces = [*pieces_of(self.base.potentials), *best]
        weighted = collected(self.base.structure.domain, pieces)[1]
        codes = Distribution(weighted, self.base.inference).most_probable(self.levels.coarse(fixed))
        codes |= {name: int(level.likeliest[codes[name]]) for name, level in free.items()}
        return {**codes, **fixed}

    def sample(self, count: int, generator: np.random.Generator, fixed: Mapping[str, int] | None = None) -> Codes:
        """Codes of independent records of p(. | fixed), an array per attribute of the domain. Raises InferenceError."""
        fixed = fixed or {}
        self._check(fixed)
        return self._split(
            self.base.sample(count, generator, self.levels.coarse(fixed)),
            lambda level, blocks: level.drawn(blocks, generator.random(count)),
            fixed,
        )

    def rounded(self, count: int, generator: np.random.Generator, fixed: Mapping[str, int] | None = None) -> Codes:
        """Codes of records whose tables are the expected ones up to roundings, also inside of blocks."""
        fixed = fixed or {}
        self._check(fixed)
        order = generator.permutation(count)

        def codes_of(level: Level, blocks: IntArray) -> IntArray:
            nonlocal order  # each split spreads its codes over those of the one before
            size = len(level.codes)
            codes, order = divided(blocks, lambda rows: level.log_weights_in(blocks[rows]), size, order, generator)
            return codes

        return self._split(self.base.rounded(count, generator, self.levels.coarse(fixed)), codes_of, fixed)

    def entropy(self) -> float:
        """Of one record, nats: that of the blocks, and that inside of them."""
        inside = sum(self._inside(name, level.log_weights) for name, level in self.levels.of.items())
        return max(0.0, self.base.entropy() - inside)

    def _split(
        self, columns: Codes, codes_of: Callable[[Level, IntArray], IntArray], fixed: Mapping[str, int]
    ) -> Codes:
        """Records with the blocks of merged attributes replaced by codes; those that are fixed by theirs."""
        codes = []
        for one, column in zip(self.levels.fine, columns, strict=True):
            level = self.levels.of.get(one.name)
            if level is not None and one.name in fixed:
                column = np.full(len(column), fixed[one.name], code_dtype(one.size))
            elif level is not None:
                column = codes_of(level, column.astype(np.int64)).astype(code_dtype(one.size))
            codes.append(column)
        return codes

    def _inside(self, name: str, logs: FloatArray) -> float:
        """The expectation of a function of one attribute's code, where it may be infinite with probability 0."""
        return expectation(self.marginals_of([(name,)], {})[0], logs)

    def _check(self, fixed: Mapping[str, int]) -> None:
        if not self.levels.possible(fixed):
            raise InferenceError("what is given has probability 0 under the model")


def law_of(base: Distribution, levels: Levels | None) -> Distribution | MergedDistribution:
    """The distribution over all codes; the one over the structure where none are merged."""
    return base if levels is None else MergedDistribution(base, levels)


def narrowed(
    distribution: Distribution | MergedDistribution, pieces: Sequence[tuple[Clique, FloatArray]]
) -> Distribution | MergedDistribution:
    """Multiply the distribution with log-weights of attributes without merged codes; the result is unnormalised."""
    if not pieces:
        return distribution
    base = distribution.base
    potentials = collected(base.structure.domain, [*pieces_of(base.potentials), *pieces])[1]
    return law_of(
        Distribution(potentials, base.inference),
        None if isinstance(distribution, Distribution) else distribution.levels,
    )


def drawn(
    distribution: Distribution | MergedDistribution,
    count: int,
    method: SampleMethod,
    generator: np.random.Generator,
    fixed: Mapping[str, int] | None = None,
) -> Codes:
    """Codes of records of p(. | fixed), one array per attribute of the domain.

    Raises OptionError for what is no number of records or no method, InferenceError for an engine that cannot.
    """
    count = checked_count(count, method)
    draw = distribution.sample if method == "independent" else distribution.rounded
    return draw(count, generator, fixed)


def checked_count(count: object, method: object) -> int:
    """A number of records, and a way to draw them. Raises OptionError."""
    if not isinstance(count, (int, np.integer)) or isinstance(count, bool) or count < 0:
        raise OptionError(f"the number of records to sample must be a whole number of at least 0, got {count!r}")
    if method not in ("independent", "rounded"):
        raise OptionError(f"records can be sampled 'independent' or 'rounded', got {method!r}")
    return int(count)


def divergence(one: Distribution | MergedDistribution, other: Distribution | MergedDistribution) -> float:
    """KL(one || other), nats, of two over one domain, merged or not: -H(p) + log Z_q - E_p[theta_q + log w_q]."""
    if isinstance(one, Distribution) and isinstance(other, Distribution):
        return one.divergence(other)
    base, levels = (other, {}) if isinstance(other, Distribution) else (other.base, other.levels.of)
    pieces = [(names, table) for names, table in pieces_of(base.potentials) if names]
    constant = sum(float(table) for names, table in pieces_of(base.potentials) if not names)
    queries = list(dict.fromkeys([*(names for names, _ in pieces), *((name,) for name in levels)]))
    marginals = dict(zip(queries, one.marginals_of(queries, {}), strict=True))
    terms = [expectation(marginals[names].reshape(-1), _spread(names, table, levels)) for names, table in pieces]
    terms += [expectation(marginals[name,], level.log_weights) for name, level in levels.items()]
    return max(0.0, base.beliefs().log_partition - constant - sum(terms) - one.entropy())


def expanded(potentials: Tables, levels: Levels | None) -> Tables:
    """Log-potentials of the same distribution over all codes; the same ones where none are merged.

    Raises TooLarge, with sizes, for more than 1 GiB of them.

    >>> from dpgm_core import Domain, Structure
    >>> from dpgm_core.models.levels import Level
    >>> structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    >>> level = Level(codes=np.array([0, 1, 1]), weights=np.array([1.0, 0.75, 0.25]))
    >>> levels = Levels(fine=Domain.from_sizes({"a": 3}), of={"a": level})
    >>> np.exp(expanded(Tables.zeros(structure), levels)["a"]).tolist()
    [1.0, 0.75, 0.25]
    """
    if levels is None:
        return potentials
    needed = 8 * sum(math.prod(levels.fine.shape(clique)) for clique in potentials.structure.cliques)
    if needed > _MOST_BYTES:
        raise TooLarge(
            f"the model over all codes of its {len(levels.of)} merged attributes takes {human_bytes(needed)}, against "
            f"{human_bytes(_MOST_BYTES)}; write its own potentials, which are over merged codes"
        )
    shapes = {names: levels.fine.shape(names) for names, _ in pieces_of(potentials)}
    pieces = [
        (names, _spread(names, table, levels.of).reshape(shapes[names])) for names, table in pieces_of(potentials)
    ]
    return collected(levels.fine, [*pieces, *(((name,), one.log_weights) for name, one in levels.of.items())])[1]


def _spread(names: Clique, table: FloatArray, levels: Mapping[str, Level]) -> FloatArray:
    """A table over blocks as one over codes, which all have what their block has; flat."""
    for axis, name in enumerate(names):
        if name in levels:
            table = table.take(levels[name].codes, axis=axis)
    return table.reshape(-1)

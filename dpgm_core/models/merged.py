"""The distribution of a model with merged codes: queried over all codes, answered from the one over blocks."""

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
from dpgm_core.inference.exact.rounded import divide_rows
from dpgm_core.models.conditioning import collect_potentials, expectation, pieces_of
from dpgm_core.models.distribution import Distribution
from dpgm_core.models.levels import MergedAttribute, MergedCodes
from dpgm_core.structure import Clique, human_bytes
from dpgm_core.tables import Tables

__all__ = [
    "MergedDistribution",
    "SampleMethod",
    "checked_count",
    "divergence",
    "draw_codes",
    "expand_potentials",
    "with_merged_codes",
    "reweight",
]

#: Sampling method: independent records, or records whose tables are the expected counts, rounded.
SampleMethod: TypeAlias = Literal["independent", "rounded"]

#: Largest size of log-potentials expanded over all codes.
_MAX_BYTES = 2**30


class MergedDistribution:
    """p(x) = p_coarse(c(x)) * product of w_i(x_i | c_i(x_i)), with the methods of a `Distribution`.

    base: over the blocks of merged codes. merged: the merged attributes.

    >>> from dpgm_core import Domain, Structure
    >>> from dpgm_core.models.levels import MergedAttribute, MergedCodes
    >>> structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    >>> merge = MergedAttribute(codes=np.array([0, 1, 1]), weights=np.array([1.0, 0.75, 0.25]))
    >>> merged = MergedCodes(fine=Domain.from_sizes({"a": 3}), of={"a": merge})
    >>> merged = MergedDistribution(Distribution(Tables.zeros(structure), "junction-tree"), merged)
    >>> merged.marginals_of([("a",)], {})[0].tolist(), merged.most_probable({})
    ([0.5, 0.375, 0.125], {'a': 0})
    """

    def __init__(self, base: Distribution, merged: MergedCodes) -> None:
        self.base = base
        self.merged = merged

    def marginals_of(self, queries: Sequence[Clique], fixed: Mapping[str, int]) -> list[FloatArray]:
        """Return p(names | fixed) of each query, axes in the order of its names. Raises TooLarge and InferenceError."""
        self._check(fixed)
        # Given its block, a code tells nothing of the other attributes.
        tables = self.base.marginals_of(queries, self.merged.to_blocks(fixed))
        return [self.merged.expand(names, table) for names, table in zip(queries, tables, strict=True)]

    def estimates_of(self, queries: Sequence[Clique], fixed: Mapping[str, int]) -> Estimates | None:
        """Return `marginals_of` with Monte Carlo errors; None for an engine that states none."""
        self._check(fixed)
        estimates = self.base.estimates_of(queries, self.merged.to_blocks(fixed))
        if estimates is None:
            return None

        def spread(tables: Sequence[FloatArray]) -> tuple[FloatArray, ...]:
            # a code has a share of its block, which is known: its error has the same
            return tuple(self.merged.expand(names, table) for names, table in zip(queries, tables, strict=True))

        return evolve(estimates, tables=spread(estimates.tables), errors=spread(estimates.errors))

    def most_probable(self, fixed: Mapping[str, int]) -> dict[str, int]:
        """Return the codes of a most probable record: a block counts with its likeliest code and that code's weight."""
        self._check(fixed)
        free = {name: merge for name, merge in self.merged.of.items() if name not in fixed}
        best = [((name,), merge.log_weights[merge.likeliest]) for name, merge in free.items()]
        pieces = [*pieces_of(self.base.potentials), *best]
        weighted = collect_potentials(self.base.structure.domain, pieces)[1]
        codes = Distribution(weighted, self.base.inference).most_probable(self.merged.to_blocks(fixed))
        codes |= {name: int(merge.likeliest[codes[name]]) for name, merge in free.items()}
        return {**codes, **fixed}

    def sample(self, count: int, generator: np.random.Generator, fixed: Mapping[str, int] | None = None) -> Codes:
        """Return codes of independent records of p(. | fixed), one array per attribute. Raises InferenceError."""
        fixed = fixed or {}
        self._check(fixed)
        return self._split(
            self.base.sample(count, generator, self.merged.to_blocks(fixed)),
            lambda merge, blocks: merge.draw(blocks, generator.random(count)),
            fixed,
        )

    def rounded(self, count: int, generator: np.random.Generator, fixed: Mapping[str, int] | None = None) -> Codes:
        """Return codes of records whose tables are the expected ones up to rounding, also inside blocks."""
        fixed = fixed or {}
        self._check(fixed)
        order = generator.permutation(count)

        def codes_of(merge: MergedAttribute, blocks: IntArray) -> IntArray:
            nonlocal order  # each split spreads its codes over those of the one before
            size = len(merge.codes)
            codes, order = divide_rows(blocks, lambda rows: merge.log_weights_in(blocks[rows]), size, order, generator)
            return codes

        return self._split(self.base.rounded(count, generator, self.merged.to_blocks(fixed)), codes_of, fixed)

    def entropy(self) -> float:
        """Return the entropy of one record, nats: of the blocks, plus that inside blocks."""
        inside = sum(self._inside(name, merge.log_weights) for name, merge in self.merged.of.items())
        return max(0.0, self.base.entropy() - inside)

    def _split(
        self, columns: Codes, codes_of: Callable[[MergedAttribute, IntArray], IntArray], fixed: Mapping[str, int]
    ) -> Codes:
        """Replace the blocks of merged attributes by codes; fixed attributes by their code."""
        codes = []
        for one, column in zip(self.merged.fine, columns, strict=True):
            merge = self.merged.of.get(one.name)
            if merge is not None and one.name in fixed:
                column = np.full(len(column), fixed[one.name], code_dtype(one.size))
            elif merge is not None:
                column = codes_of(merge, column.astype(np.int64)).astype(code_dtype(one.size))
            codes.append(column)
        return codes

    def _inside(self, name: str, logs: FloatArray) -> float:
        """Return the expectation of a function of one attribute's code, which may be infinite with probability 0."""
        return expectation(self.marginals_of([(name,)], {})[0], logs)

    def _check(self, fixed: Mapping[str, int]) -> None:
        if not self.merged.is_possible(fixed):
            raise InferenceError("what is given has probability 0 under the model")


def with_merged_codes(base: Distribution, merged: MergedCodes | None) -> Distribution | MergedDistribution:
    """Return the distribution over all codes; the one over the structure where none are merged."""
    return base if merged is None else MergedDistribution(base, merged)


def reweight(
    distribution: Distribution | MergedDistribution, pieces: Sequence[tuple[Clique, FloatArray]]
) -> Distribution | MergedDistribution:
    """Multiply the distribution with log-weights of attributes without merged codes; the result is unnormalised."""
    if not pieces:
        return distribution
    base = distribution.base
    potentials = collect_potentials(base.structure.domain, [*pieces_of(base.potentials), *pieces])[1]
    return with_merged_codes(
        Distribution(potentials, base.inference),
        None if isinstance(distribution, Distribution) else distribution.merged,
    )


def draw_codes(
    distribution: Distribution | MergedDistribution,
    count: int,
    method: SampleMethod,
    generator: np.random.Generator,
    fixed: Mapping[str, int] | None = None,
) -> Codes:
    """Return codes of records of p(. | fixed), one array per attribute of the domain.

    Raises OptionError for an invalid number of records or method, InferenceError for an engine that cannot sample.
    """
    count = checked_count(count, method)
    draw = distribution.sample if method == "independent" else distribution.rounded
    return draw(count, generator, fixed)


def checked_count(count: object, method: object) -> int:
    """Return a checked number of records, for a known method. Raises OptionError."""
    if not isinstance(count, (int, np.integer)) or isinstance(count, bool) or count < 0:
        raise OptionError(f"the number of records to sample must be a whole number of at least 0, got {count!r}")
    if method not in ("independent", "rounded"):
        raise OptionError(f"records can be sampled 'independent' or 'rounded', got {method!r}")
    return int(count)


def divergence(one: Distribution | MergedDistribution, other: Distribution | MergedDistribution) -> float:
    """Return KL(one || other), nats, over one domain, merged or not: -H(p) + log Z_q - E_p[theta_q + log w_q]."""
    if isinstance(one, Distribution) and isinstance(other, Distribution):
        return one.divergence(other)
    base, merged = (other, {}) if isinstance(other, Distribution) else (other.base, other.merged.of)
    pieces = [(names, table) for names, table in pieces_of(base.potentials) if names]
    constant = sum(float(table) for names, table in pieces_of(base.potentials) if not names)
    queries = list(dict.fromkeys([*(names for names, _ in pieces), *((name,) for name in merged)]))
    marginals = dict(zip(queries, one.marginals_of(queries, {}), strict=True))
    terms = [expectation(marginals[names].reshape(-1), _spread(names, table, merged)) for names, table in pieces]
    terms += [expectation(marginals[name,], merge.log_weights) for name, merge in merged.items()]
    return max(0.0, base.beliefs().log_partition - constant - sum(terms) - one.entropy())


def expand_potentials(potentials: Tables, merged: MergedCodes | None) -> Tables:
    """Return log-potentials of the same distribution over all codes; unchanged where none are merged.

    Raises TooLarge, with sizes, for more than 1 GiB.

    >>> from dpgm_core import Domain, Structure
    >>> from dpgm_core.models.levels import MergedAttribute, MergedCodes
    >>> structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    >>> merge = MergedAttribute(codes=np.array([0, 1, 1]), weights=np.array([1.0, 0.75, 0.25]))
    >>> merged = MergedCodes(fine=Domain.from_sizes({"a": 3}), of={"a": merge})
    >>> np.exp(expand_potentials(Tables.zeros(structure), merged)["a"]).tolist()
    [1.0, 0.75, 0.25]
    """
    if merged is None:
        return potentials
    needed = 8 * sum(math.prod(merged.fine.shape(clique)) for clique in potentials.structure.cliques)
    if needed > _MAX_BYTES:
        raise TooLarge(
            f"the model over all codes of its {len(merged.of)} merged attributes takes {human_bytes(needed)}, against "
            f"{human_bytes(_MAX_BYTES)}; write its own potentials, which are over merged codes"
        )
    shapes = {names: merged.fine.shape(names) for names, _ in pieces_of(potentials)}
    pieces = [
        (names, _spread(names, table, merged.of).reshape(shapes[names])) for names, table in pieces_of(potentials)
    ]
    return collect_potentials(merged.fine, [*pieces, *(((name,), one.log_weights) for name, one in merged.of.items())])[
        1
    ]


def _spread(names: Clique, table: FloatArray, merged: Mapping[str, MergedAttribute]) -> FloatArray:
    """Return a table over blocks as a flat one over codes, each with the value of its block."""
    for axis, name in enumerate(names):
        if name in merged:
            table = table.take(merged[name].codes, axis=axis)
    return table.reshape(-1)

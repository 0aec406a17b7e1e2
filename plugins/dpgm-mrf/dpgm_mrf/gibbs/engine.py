"""Gibbs sampling: the component `gibbs` and its engine, for models too dense for a junction tree.

Many chains start from independent attributes, come to the model by annealing, burn in, and visit records; marginals and
answers are averages over these. All is approximate and has standard errors from the spread between chains.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from attrs import Attribute, frozen

from dpgm_core import (
    Array,
    Beliefs,
    Capability,
    Clique,
    Codes,
    FloatArray,
    InferenceError,
    OptionError,
    Structure,
    StructureError,
    Tables,
    TooLarge,
    option,
    whole,
)
from dpgm_core.inference import ConstrainedEngine, Estimates, constrained
from dpgm_mrf.gibbs.chains import Annealed, Chains, annealed
from dpgm_mrf.gibbs.layout import Layout, compile_layout, places

__all__ = ["Gibbs", "GibbsEngine", "Tally", "slowest"]

# More of the start than this left in chains after burn-in, and they do not count as converged.
_LEFT = 0.01
# Bytes of a number of chains beside its own code: index, lookups, uniform number.
_PER_CODE = 24
# Chains that look for possible records where few are asked for.
_FEWEST = 64


def _chains(instance: object, attribute: Attribute[Any], value: object) -> None:
    whole(instance, attribute, value)
    if isinstance(value, int) and value < 10:
        raise OptionError(f"chains must be at least 10, whose spread tells the error; got {value}")


def _seed(instance: object, attribute: Attribute[Any], value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise OptionError(f"seed must be a whole number of at least 0, got {value!r}")


@frozen(kw_only=True)
class Gibbs:
    """Marginals, answers, records and log Z by Gibbs sampling, with their Monte Carlo errors; cliques of any order.

    Each sweep draws every attribute of every chain given the others, at the cost of a lookup per neighbour, whatever
    the treewidth. Chains converge where couplings are weak; binary pairs A with |tanh A| (degree - 1) near or above 1
    mix slowly, and hard zeros may part the records into islands that no step leads between: what chains left of their
    start is measured, and above 1 % beliefs say that they did not converge. An island that no chain met goes unnoticed.
    Sources: Geman and Geman (1984); Neal (2001) for log Z.

    >>> from dpgm_core import Domain
    >>> structure = Structure.chain(Domain.from_sizes({"a": 2, "b": 2}))
    >>> beliefs = Gibbs().compile(structure).infer(Tables(structure, np.log([1.0, 2.0, 3.0, 4.0])), total=10)
    >>> beliefs.marginals["a", "b"].round(1).tolist(), beliefs.errors["a", "b"].round(2).tolist()
    ([[1.0, 2.0], [3.0, 4.0]], [[0.01, 0.02], [0.02, 0.02]])
    """

    max_order: ClassVar[None] = None

    chains: int = option(1000, help="independent chains", validator=_chains)
    annealing: int = option(60, help="sweeps from independent attributes to the model", unit="sweeps", validator=whole)
    burn_in: int = option(60, help="sweeps at the model before the first record counts", unit="sweeps", validator=whole)
    thinning: int = option(6, help="sweeps between two records of a chain", unit="sweeps", validator=whole)
    draws: int = option(50, help="records of each chain that marginals and answers are averages of", validator=whole)
    seed: int = option(0, help="of marginals and answers, which are the same each time; records draw from their own",
                       validator=_seed)  # fmt: skip
    max_bytes: int = option(2 * 2**30, help="refuse structures that would take more", unit="bytes", validator=whole)

    def compile(self, structure: Structure) -> GibbsEngine | ConstrainedEngine:
        """An engine for a structure; constraints of its domain are hard zeros, so see above. Raises TooLarge."""
        return constrained(structure, self._plain)

    def _plain(self, structure: Structure) -> GibbsEngine:
        """Index arrays for one structure; raises TooLarge, with sizes, before any table is made."""
        largest = max(structure.sizes)
        cells = 2 * sum(size * number for size, number in zip(structure.sizes, structure.multiplicities, strict=True))
        needed = 8 * max(cells, 3 * largest)
        if needed <= self.max_bytes:
            layout = compile_layout(structure)
            codes = len(layout.sizes) * self.chains * (_PER_CODE + self.draws * max(map(_bytes, layout.sizes)))
            needed = 8 * (2 * layout.cells + 6 * structure.cells) + codes
            if needed <= self.max_bytes:
                return GibbsEngine(structure=structure, options=self, layout=layout, needed=needed)
        raise TooLarge(
            f"gibbs on {structure}: tables of {_readable(cells)} cells and {self.chains:,} chains need about "
            f"{_readable(-(-needed // 2**20))} MiB, above max_bytes = {self.max_bytes / 2**20:,.0f} MiB; use smaller "
            "cliques or fewer chains, or raise the limit"
        )


@frozen(kw_only=True, eq=False)
class GibbsEngine:
    """Gibbs sampling compiled for one structure; keeps no state between calls. Made by Gibbs.

    needed: bytes of one inference, about.
    """

    structure: Structure
    options: Gibbs
    layout: Layout
    needed: int

    @property
    def exact(self) -> bool:
        """False, whatever the structure."""
        return False

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Records, answers across cliques, and the errors of both."""
        return frozenset({"estimate", "query", "sample"})

    @property
    def cost(self) -> str:
        """Lookups, memory and the error where chains mix well."""
        options = self.options
        sweeps = options.annealing + options.burn_in + options.thinning * (options.draws - 1)
        lookups = (len(self.layout.lookups.partners) + len(self.layout.conditionals)) * options.chains * sweeps
        error = 0.5 / math.sqrt(options.chains * options.draws)
        return (
            f"approximate: {options.chains:,} chains of {sweeps:,} sweeps, {lookups:,} lookups and "
            f"{self.needed / 2**20:,.0f} MiB per inference; Monte Carlo standard error of a probability up to about "
            f"{error:.2g}, more where chains mix slowly"
        )

    def infer(self, potentials: Tables, *, total: float = 1.0) -> Beliefs:
        """Averages over the records that chains visit, with standard errors; log Z by annealing, with its own.

        Raises InferenceError for NaN and +inf, and where no chain comes to a possible record.
        """
        if isinstance(total, bool) or not 0 <= total < math.inf:
            raise InferenceError(f"gibbs: total must be a finite number of records, at least 0, got {total!r}")
        start, tally = self._tallied(potentials)
        place = {name: number for number, name in enumerate(self.structure.domain.names)}
        values, errors = np.empty(self.structure.cells), np.empty(self.structure.cells)
        for group, where in zip(self.structure.groups, self.structure.slices, strict=True):
            cliques = [[place[name] for name in clique] for clique in group]
            table, error = tally.table(cliques[0], cliques)
            values[where], errors[where] = table.reshape(-1), error.reshape(-1)
        options = self.options
        return Beliefs(
            marginals=Tables(self.structure, values * total),
            log_partition=start.log_partition,
            converged=start.reliable and self._left(tally) <= _LEFT,
            iterations=options.annealing + options.burn_in + options.thinning * (options.draws - 1),
            errors=Tables(self.structure, errors * total),
            log_partition_error=start.error,
        )

    def answers(self, potentials: Tables, queries: Sequence[Clique]) -> list[FloatArray]:
        """p(attributes) of each query: averages over the same records as `infer`'s. Raises as `estimates` does."""
        return list(self.estimates(potentials, queries).tables)

    def estimates(self, potentials: Tables, queries: Sequence[Clique]) -> Estimates:
        """p(attributes) of each query with standard errors, inside cliques and across.

        Raises InferenceError as `infer` does, and TooLarge for a query whose table does not fit.
        """
        place = {name: number for number, name in enumerate(self.structure.domain.names)}
        for query in queries:
            cells = math.prod(self.structure.domain.shape(query))
            if 40 * cells > self.options.max_bytes:
                raise TooLarge(
                    f"gibbs: the table of {len(query)} attributes has {_readable(cells)} cells, more than max_bytes = "
                    f"{self.options.max_bytes / 2**20:,.0f} MiB holds; ask for fewer attributes"
                )
        start, tally = self._tallied(potentials)
        results = [tally.table([place[name] for name in query]) for query in queries]
        reservations = self._said(start, tally)
        return Estimates(
            tables=tuple(table for table, _ in results),
            errors=tuple(error for _, error in results),
            converged=not reservations,
            notes=(*reservations, *self.caveats(potentials)),
        )

    def sample(self, potentials: Tables, count: int, generator: np.random.Generator) -> Codes:
        """`count` records: of each chain one after its burn-in, then one every `thinning` sweeps.

        They follow the model as far as chains have converged. Up to `chains` records come from a chain each; more are
        each `chains` rows away from the record of the same chain before, on which they still depend a little. Raises
        InferenceError as `infer` does.
        """
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 0:
            raise InferenceError(f"sample: the number of records must be a whole number, at least 0, got {count!r}")
        options, sizes = self.options, self.layout.sizes
        chains = min(options.chains, max(int(count), _FEWEST))
        draws = -(-int(count) // chains)
        sweeps = options.annealing + options.burn_in + options.thinning * max(0, draws - 1)
        start = self._started(potentials, chains, generator)
        made = [np.zeros(count, dtype=_type(size)) for size in sizes]
        walk = Chains(self.layout, potentials, start.codes, sweeps, generator)
        walk.move(options.burn_in)
        for draw, codes in enumerate(walk.visited(draws, options.thinning)):
            rows = slice(draw * chains, min((draw + 1) * chains, int(count)))
            for column, now in zip(made, codes, strict=True):
                column[rows] = now[: rows.stop - rows.start]
        return made

    def caveats(self, potentials: Tables) -> tuple[str, ...]:
        """Whether couplings are so strong that chains may mix slowly, in words; before a chain is run."""
        worst, name = slowest(potentials)
        if worst < 1:
            return ()
        return (
            f"gibbs may mix slowly here: the couplings of {name!r} sum to {worst:.2g} (|tanh A| (degree - 1) where "
            "all are equal), and from 1 on chains can stay for long where they "
            "are; raise burn_in and thinning, and compare with another seed",
        )

    def _tallied(self, potentials: Tables) -> tuple[Annealed, Tally]:
        """Return the start of the chains, and a tally of the records they visited."""
        options = self.options
        generator = np.random.default_rng(options.seed)
        start = self._started(potentials, options.chains, generator)
        sweeps = options.burn_in + options.thinning * options.draws
        walk = Chains(self.layout, potentials, start.codes, sweeps, generator)
        walk.move(options.burn_in)
        shape = (len(self.layout.sizes), options.draws, options.chains)
        visited = np.empty(shape, dtype=_type(max(self.layout.sizes)))
        for draw, codes in enumerate(walk.visited(options.draws, options.thinning)):
            visited[:, draw] = codes
        return start, Tally(visited, self.layout.sizes)

    def _started(self, potentials: Tables, chains: int, generator: np.random.Generator) -> Annealed:
        if potentials.structure is not self.structure and potentials.structure != self.structure:
            raise StructureError(f"potentials over {potentials.structure} do not fit an engine for {self.structure}")
        theta = potentials.astype(np.float64)
        return annealed(self.layout, theta, chains, self.options.annealing, generator)

    def _left(self, tally: Tally) -> float:
        """Return the share of the start that is left after burn-in, for the slowest code."""
        return float(((tally.delay - 1) / (tally.delay + 1)) ** (self.options.burn_in / self.options.thinning))

    def _said(self, start: Annealed, tally: Tally) -> tuple[str, ...]:
        """Return reasons to doubt the stated errors, as sentences."""
        said, left = [], self._left(tally)
        if not start.reliable:
            said.append(
                "gibbs has not converged: chains did not keep up with annealing and may be where it left them, so "
                "errors are larger than stated; raise annealing, or use junction-tree where it fits"
            )
        if left > _LEFT:
            said.append(
                f"gibbs has not converged: chains move so slowly that {left:.0%} of their start is left after burn-in, "
                "so errors are larger than stated; raise burn_in and thinning, or use junction-tree where it fits"
            )
        return tuple(said)


def _type(size: int) -> np.dtype[Any]:
    """The smallest unsigned type that holds codes below `size`."""
    return np.dtype(np.uint8 if size <= 2**8 else np.uint16 if size <= 2**16 else np.uint32)


def _bytes(size: int) -> int:
    return _type(size).itemsize


def _readable(count: int) -> str:
    return f"{count:,}" if count < 10**15 else f"10^{len(str(count)) - 1}"


# Cells of one clique whose couplings are looked at; of larger ones the span of the table stands for them.
_CELLS = 4096


def slowest(potentials: Tables) -> tuple[float, str]:
    """The largest sum of |tanh A| over the cliques of an attribute, less one of them, and its name; 0 if proven fast.

    A: of a pair of two labels the coupling of theta = A z_i z_j; in general a quarter of the most by which the others
    of a clique move the log-odds of two codes, infinite where some are ruled out. Where couplings are equal it is
    |tanh A| (degree - 1): below 1 a tree forgets its leaves (the Ising model on a Bethe lattice), a hint elsewhere.
    Proven fast: pairs of two labels whose A as a symmetric matrix has eigenvalues less than 1 apart (Eldan, Koehler and
    Zeitouni 2021).

    >>> from dpgm_core import Domain, Structure
    >>> structure = Structure.complete(Domain.from_sizes(dict.fromkeys("abcd", 2)))
    >>> coupled = Tables(structure, 0.5 * np.tile([1.0, -1.0, -1.0, 1.0], 6))
    >>> worst, name = slowest(coupled)
    >>> round(worst, 3), name, round(slowest(coupled * 0.25)[0], 3)
    (0.924, 'd', 0.249)
    """
    structure = potentials.structure
    around: dict[str, list[float]] = {}
    matrix: FloatArray | None = np.zeros((len(structure.domain), len(structure.domain)))
    place = {name: number for number, name in enumerate(structure.domain.names)}
    for members, table in zip(structure.groups, potentials.arrays(), strict=True):
        axes = [axis for axis, size in enumerate(table.shape) if size > 1]
        if len(axes) < 2:
            continue
        for axis in axes:
            coupling = math.tanh(_largest_move(np.moveaxis(table, axis, 0).reshape(table.shape[axis], -1)) / 4)
            for clique in members:
                around.setdefault(clique[axis], []).append(coupling)
        if [table.shape[axis] for axis in axes] != [2, 2] or not np.isfinite(table).all():
            matrix = None
        if matrix is not None:
            pair = table.reshape(2, 2)
            for clique in members:
                one, two = (place[clique[axis]] for axis in axes)
                matrix[[one, two], [two, one]] += (pair[0, 0] + pair[1, 1] - pair[0, 1] - pair[1, 0]) / 4
    worst, name = max(
        ((sum(couplings) - min(couplings), name) for name, couplings in around.items()), default=(0.0, "")
    )
    if worst >= 1 and matrix is not None and np.ptp(np.linalg.eigvalsh(matrix)) < 1:
        return 0.0, ""
    return worst, name


def _largest_move(rows: FloatArray) -> float:
    """The most by which a column moves the difference of two rows, nats."""
    if not np.isfinite(rows).all():
        return math.inf
    if rows.size > _CELLS:
        return 2 * float(rows.max() - rows.min())
    return max(float(np.ptp(one - other)) for one, other in itertools.combinations(rows, 2))


# Chains are put into so many batches, whose means are independent; their spread is the error of the mean of all.
_BATCHES = 50
# Cells counted at once, bins of all batches.
_BINS = 1_000_000
# Draws with a code, or without, below which its share says nothing of how fast chains move.
_RARE = 100


class Tally:
    """codes: (attributes, draws, chains), the chains independent of each other. sizes: labels of each attribute.

    delay: for how many draws of a chain one counts that is independent, of the slowest attribute.

    >>> codes = np.random.default_rng(1).integers(0, 2, (1, 40, 500))
    >>> table, error = Tally(codes, (2,)).table([0])
    >>> bool(np.all(np.abs(table - 0.5) < 5 * error)), round(float(error[0]), 3)
    (True, 0.004)
    """

    def __init__(self, codes: Array, sizes: Sequence[int]) -> None:
        self._draws, self._chains = codes.shape[1:]
        self._flat = codes.reshape(len(sizes), -1)
        self._sizes = sizes
        self._batches = min(_BATCHES, self._chains)
        self._batch = np.tile(np.arange(self._chains) % self._batches, self._draws)
        self._in_batch = np.bincount(self._batch, minlength=self._batches)
        delays = [self._delay(column, size) for column, size in zip(codes, sizes, strict=True)]
        self.delay = max([1.0, *(one for one in delays if one is not None)])
        # Where nobody knows how fast an attribute moves, a chain may have told one thing of it.
        self._delays = [float(self._draws) if one is None else one for one in delays]

    def table(self, names: Sequence[int], cliques: Sequence[Sequence[int]] = ()) -> tuple[FloatArray, FloatArray]:
        """Shares of the codes of these attributes, and their standard errors; axes in the order of the names.

        cliques: attributes of the same sizes whose shares are summed, in place of names.
        """
        shape = tuple(self._sizes[name] for name in names)
        cells = math.prod(shape)
        means = np.zeros(cells)
        squares = np.zeros(cells)
        at = [places(clique, shape, self._flat) for clique in cliques or [names]]
        together = max(1, _BINS // cells)
        for low in range(0, self._batches, together):
            high = min(low + together, self._batches)
            counts = np.zeros((high - low, cells))
            for one in at:
                if high - low < self._batches:
                    chosen = (self._batch >= low) & (self._batch < high)
                    bins = one[chosen] + cells * (self._batch[chosen] - low)
                else:
                    bins = one + cells * self._batch
                counts += np.bincount(bins, minlength=counts.size).reshape(counts.shape)
            shares = counts / self._in_batch[low:high, np.newaxis]
            means += self._in_batch[low:high] @ shares
            squares += (shares**2).sum(axis=0)
        means /= self._in_batch.sum()
        # Batches of sizes that differ by one chain are taken as equal.
        spread = np.maximum(squares / self._batches - means**2, 0.0) / (self._batches - 1)
        # What was never seen, or always, may still have the probability of a few draws that are independent.
        slowest = max((self._delays[name] for clique in cliques or [names] for name in clique), default=0.0)
        least = 2 * slowest / self._flat.shape[1] * len(at)
        return means.reshape(shape), np.sqrt(spread + least**2).reshape(shape)

    def _delay(self, column: Array, size: int) -> float | None:
        """For how many draws of a chain one counts that is independent: the most over codes of an attribute; 1 or more.

        The variance of a chain's mean over that of a single draw, times its draws (integrated autocorrelation time).
        None where hardly any draw differs from the others; 0 for one label, of which nothing is to be known.
        """
        if size == 1:
            return 0.0
        delays = []
        for code in range(1 if size == 2 else 0, size):
            means = (column == code).mean(axis=0)
            share = float(means.mean())
            if share * (1 - share) * column.size >= _RARE:
                delays.append(self._draws * float(means.var(ddof=1)) / (share * (1 - share)))
        return max(1.0, *delays) if delays else None

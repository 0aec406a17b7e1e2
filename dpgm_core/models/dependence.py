"""Dependence of pairs of attributes, for all pairs at once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from attrs import frozen

from dpgm_core._util.arrays import FloatArray, ratio
from dpgm_core.errors import OptionError, StructureError, TooLarge
from dpgm_core.inference.junction_tree.cluster_tree import ClusterTree, cluster_tree
from dpgm_core.models.intervals import checked_level, interval
from dpgm_core.models.model import Model
from dpgm_core.models.queries import check_queries, read_names, refuse_unmeasured
from dpgm_core.structure.graphs import Clique, components
from dpgm_core.structure.tables import margin_of

__all__ = ["Dependence", "measure_dependence", "pair_tables"]


# --- Tables of all pairs --------------------------------------------------------------------------
# From a cluster that holds an attribute a, the message p(a | S) goes out over each separator S, and in the cluster D
# behind it
#
#     p(a, t) = sum over S of p(a | S) p(S, t)
#
# for every t of D that is not in S; the message to the next separator comes the same way. Clusters are taken as
# sources from the last of the tree's order to the first, and walks only enter those before their source: so each pair
# is met once. `TreeQueries` answers any sets of attributes; this answers all pairs, ten times faster, of several
# models at once.


def pair_tables(
    tree: ClusterTree, tables: Sequence[FloatArray], names: Sequence[str]
) -> Iterator[tuple[str, str, FloatArray]]:
    """(a, b, p(a, b)) of all pairs among `names` that share a component; each pair once, in no order to rely on.

    tables: of each cluster of the tree, (B, *its shape), the marginals of one record in each of B models. The answer
    has shape (B, labels of a, labels of b).
    """
    walk = _Walk(tree, tables, frozenset(names))
    for cluster in sorted(range(len(tables)), key=lambda one: -tree.entries[one]):
        for name in walk.asked[cluster]:
            if tree.home[name] == cluster:
                yield from walk.inside(cluster, name)
                yield from walk.outwards(cluster, name)


class _Walk:
    """The tables of a tree and their margins, each made once."""

    def __init__(self, tree: ClusterTree, tables: Sequence[FloatArray], names: frozenset[str]) -> None:
        self.tree, self.tables = tree, tables
        self.cliques, self.sizes = tree.structure.cliques, tree.structure.domain.sizes
        self.asked = [[name for name in clique if name in names] for clique in self.cliques]
        self.joints = [tuple(sorted(one)) for one in tree.separators]
        self.margins: dict[tuple[int, Clique], FloatArray] = {}

    def margin(self, cluster: int, names: Clique) -> FloatArray:
        """(B, *shape of the names), which the cluster holds."""
        if (cluster, names) not in self.margins:
            margin = margin_of(self.tables[cluster], self.cliques[cluster], names)
            self.margins[cluster, names] = np.ascontiguousarray(margin)
        return self.margins[cluster, names]

    def inside(self, cluster: int, name: str) -> Iterator[tuple[str, str, FloatArray]]:
        """Pairs within the source; of two that are at home in it, once."""
        queried = self.asked[cluster]
        for other in queried:
            if self.tree.home[other] != cluster or queried.index(name) < queried.index(other):
                yield name, other, self.margin(cluster, (name, other))

    def outwards(self, source: int, name: str) -> Iterator[tuple[str, str, FloatArray]]:
        """Pairs with all that is at home in clusters before the source."""
        tree = self.tree
        above = tree.parents[source]
        if above < 0:
            return
        stack = [(above, source, self.joints[source], self.margin(source, (name, *self.joints[source])))]
        while stack:
            cluster, origin, joint, table = stack.pop()
            message = ratio(table, self.margin(cluster, joint)[:, None])  # p(a | joint)
            tables: dict[Clique, FloatArray] = {joint: table}
            for target in self.asked[cluster]:
                if target not in joint:
                    tables[target,] = self.through(cluster, joint, message, (target,))
                    yield name, target, tables[target,]
            for beyond in (tree.parents[cluster], *tree.children[cluster]):
                if beyond in (-1, origin) or tree.entries[beyond] >= tree.entries[source]:
                    continue
                out = self.joints[cluster if beyond == tree.parents[cluster] else beyond]
                if out not in tables:
                    tables[out] = self.through(cluster, joint, message, out)
                stack.append((beyond, cluster, out, tables[out]))

    def through(self, cluster: int, joint: Clique, message: FloatArray, out: Clique) -> FloatArray:
        """p(a, out) from p(a | joint), both sets in the cluster: a matrix product for each value of what they share."""
        shared = tuple(name for name in joint if name in out)
        inner = tuple(name for name in joint if name not in out)
        new = tuple(name for name in out if name not in joint)
        sizes = self.sizes
        count, rows = message.shape[:2]
        left = message.transpose(
            [0, *(2 + joint.index(name) for name in shared), 1, *(2 + joint.index(n) for n in inner)]
        )
        middle = [sizes[name] for name in shared]
        cells = math.prod(sizes[name] for name in inner)
        right = self.margin(cluster, (*shared, *inner, *new)).reshape(count, *middle, cells, -1)
        product = np.matmul(left.reshape(count, *middle, rows, cells), right)
        axes = (*shared, *new)
        product = product.reshape(count, *middle, rows, *(sizes[name] for name in new))
        places = [1 + at + (at >= len(shared)) for at in (axes.index(name) for name in out)]
        return np.asarray(product.transpose([0, 1 + len(shared), *places]))


# --- Mutual information and Cramér's V ------------------------------------------------------------

#: Cells of the clusters' tables of the model and its replicates together, 256 MiB; and multiply-adds of all walks.
_MAX_CELLS, _MAX_PRODUCTS = 2**25, 2 * 10**9
#: Pairs times models, which take a few seconds.
_MAX_ANSWERS = 1_000_000
#: Pairs outside cliques for an engine that needs a structure for each.
_MAX_SINGLE_PAIRS = 100

#: (a, b, p(a, b)), the table of each model: (B, labels of a, labels of b).
_Pairs = Iterable[tuple[str, str, FloatArray]]


@frozen(kw_only=True, eq=False)
class Dependence:
    """Pairs of attributes and their dependence in a model.

    Attributes
    ----------
    names : tuple of str
        The K attributes.
    pairs : tuple of pairs, P of them
        In the order of `itertools.combinations`.
    mutual_information : array of shape (P,)
        Nats; NaN where it could not be computed.
    cramers_v : array of shape (P,)
        From 0 to 1: the square root of (sum of (p - p_a p_b)^2 / (p_a p_b)) over the smaller number of labels with any
        probability, less one.
    standing : tuple of str
        Of `Model.standing`.
    low, high, v_low, v_high : array of shape (P,), optional
        Intervals of the mutual information and of V, for models with replicates.
    level : float, optional
        Of the intervals.
    """

    names: Clique
    pairs: tuple[Clique, ...]
    mutual_information: FloatArray
    cramers_v: FloatArray
    standing: tuple[str, ...]
    low: FloatArray | None = None
    high: FloatArray | None = None
    v_low: FloatArray | None = None
    v_high: FloatArray | None = None
    level: float | None = None

    def matrix(self, values: FloatArray) -> FloatArray:
        """(K, K): values of the pairs, (P,), at both of their places; NaN on the diagonal and elsewhere.

        >>> from dpgm_core import Domain, Structure, Tables
        >>> model = Model(s := Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")]), Tables.zeros(s))
        >>> (found := measure_dependence(model)).matrix(found.cramers_v).round(3).tolist()
        [[nan, 0.0], [0.0, nan]]
        """
        place = {name: at for at, name in enumerate(self.names)}
        square = np.full((len(place), len(place)), math.nan)
        for (one, two), value in zip(self.pairs, values, strict=True):
            square[place[one], place[two]] = square[place[two], place[one]] = value
        return square

    def __repr__(self) -> str:
        return f"Dependence({len(self.names)} attributes, {len(self.pairs)} pairs)"


def measure_dependence(
    model: Model,
    attributes: Sequence[str] | None = None,
    *,
    pairs: Iterable[Sequence[str]] | None = None,
    level: float = 0.9,
) -> Dependence:
    """Measure the dependence of all pairs of `attributes`, by default of all measured ones. Free in privacy.

    Parameters
    ----------
    model : Model
    attributes : sequence of str, optional
        All their pairs are compared.
    pairs : iterable of pairs, optional
        Only these; then `attributes` must be left out.
    level : float
        Of the intervals, which are as in `Model.intervals` but without the structure's error.

    Returns
    -------
    Dependence
        Attributes in different components of the structure are exactly independent. Merged codes are split. Pairs are
        NaN where the clusters' tables do not fit, or where the engine is not exact and more than 100 pairs lie in no
        clique. All intervals are NaN where pairs times models exceed a million or the replicates' tables do not fit.

    Raises
    ------
    StructureError
        The model lacks an attribute, or no release measured it.
    TooLarge
        The marginals of the model's cliques, or of one of `pairs`, do not fit.
    OptionError
        `level` is not between 0 and 1, or both `attributes` and `pairs` are given.
    """
    level = checked_level(level)
    names, queries = _questions(model, attributes, pairs)
    # Given its block, a merged code is independent of all else, so blocks are as dependent as their codes.
    here = model.coarse.using(unmeasured="uniform")
    if pairs is None and not model.latent:  # with latent classes no cluster contains two attributes of records
        models, answers = _pair_answers(here, names, len(queries))
    else:
        models, answers = _named_pair_answers(here, queries)
    information, squares = _numbers(models, answers, queries)
    v = _cramers(model, names, queries, squares)
    bounds: dict[str, FloatArray] = {}
    if model.replicates:
        sizes = model.domain.sizes
        nats = np.array([math.log(min(sizes[one], sizes[two])) for one, two in queries])
        for key, estimates, most in (("", information, nats), ("v_", v, np.ones(v.shape[1]))):
            bounds[f"{key}low"], bounds[f"{key}high"] = _interval(estimates, level, most)
    return Dependence(
        names=names,
        pairs=queries,
        mutual_information=information[0],
        cramers_v=v[0],
        standing=tuple(model.standing(pair) for pair in queries),
        level=level if bounds else None,
        **bounds,
    )


def _questions(
    model: Model, attributes: Sequence[str] | None, pairs: Iterable[Sequence[str]] | None
) -> tuple[Clique, tuple[Clique, ...]]:
    """The attributes and the pairs that are asked for, checked."""
    if pairs is not None:
        if attributes is not None:
            raise OptionError("give either attributes, all of whose pairs are compared, or the pairs themselves")
        queries = tuple(
            dict.fromkeys(read_names(model.domain, pair, {}, model.latent) for pair in check_queries(pairs))
        )
        wrong = next((pair for pair in queries if len(pair) != 2), None)
        if wrong is not None:
            raise StructureError(f"dependence is between two attributes, got {wrong!r}")
        names = tuple(dict.fromkeys(itertools.chain.from_iterable(queries)))
    elif attributes is None:
        left_out = set(model.left_out)
        names = tuple(name for name in model.domain.names if name not in left_out)
    else:
        names = read_names(model.domain, attributes, {}, model.latent)
    refuse_unmeasured(names, model.left_out)
    return names, tuple(itertools.combinations(names, 2)) if pairs is None else queries


def _numbers(models: Sequence[Model], answers: _Pairs, pairs: Sequence[Clique]) -> tuple[FloatArray, FloatArray]:
    """Mutual information and phi squared, (B, P), of the models."""
    index = {frozenset(pair): at for at, pair in enumerate(pairs)}
    information = np.full((len(models), len(pairs)), math.nan)
    squares = information.copy()
    parts = components(models[0].structure.constrained.adjacency)
    where = {name: at for at, one in enumerate(parts) for name in one}
    apart = [at for at, (one, two) in enumerate(pairs) if where[one] != where[two]]
    for one, two, table in answers:
        at = index[frozenset((one, two))]
        information[:, at], squares[:, at] = _of_table(table)
    information[:, apart] = squares[:, apart] = 0.0
    return information, squares


def _named_pair_answers(model: Model, pairs: Sequence[Clique]) -> tuple[Sequence[Model], _Pairs]:
    """The pairs asked for, of the model and of its replicates."""
    models = (model, *model.replicates) if len(pairs) * (1 + len(model.replicates)) <= _MAX_ANSWERS else (model,)
    answers = [one.marginals_of(pairs) for one in models]
    return models, ((pair[0], pair[1], np.stack([one[pair] for one in answers])) for pair in pairs)


def _pair_answers(model: Model, names: Clique, pairs: int) -> tuple[Sequence[Model], _Pairs]:
    """Return the models that answer, the model first, and their tables of all pairs that fit."""
    engine = model.engine
    if not engine.exact:
        return (model,), _approximate(model, names, "query" in engine.capabilities)
    tree = cluster_tree(model.structure.constrained)
    for models in ((model, *model.replicates), (model,)):
        count = len(models)
        if count == 1 or (count * pairs <= _MAX_ANSWERS and _fits(tree, names, count)):
            break
    if _fits(tree, names, count):
        try:
            answers = [one.marginals_of(tree.structure.cliques) for one in models]
        except TooLarge:
            pass
        else:
            tables = [np.stack([one[clique] for one in answers]) for clique in tree.structure.cliques]
            return models, pair_tables(tree, tables, names)
    return (model,), _inside(model, names)


def _fits(tree: ClusterTree, names: Clique, models: int) -> bool:
    """Whether tables and walks are small enough."""
    sizes = tree.structure.domain.sizes
    cells: int = tree.structure.cells
    return models * cells <= _MAX_CELLS and models * cells * sum(sizes[name] for name in names) <= _MAX_PRODUCTS


def _inside(model: Model, names: Clique) -> _Pairs:
    """Pairs within the cliques, from the beliefs that the model has anyway."""
    chosen = set(names)
    inside = {pair for clique in model.structure.cliques for pair in itertools.combinations(clique, 2)}
    once = {frozenset(pair): pair for pair in inside if chosen.issuperset(pair)}
    return _table_answers(model, sorted(once.values()))


def _approximate(model: Model, names: Clique, at_once: bool) -> _Pairs:
    """Pairs by an engine that is not exact: those of one component where it can, else those within cliques."""
    reached = components(model.structure.constrained.adjacency)
    every = [pair for one in reached for pair in itertools.combinations([name for name in names if name in one], 2)]
    others = sum(model.structure.covering(pair) is None for pair in every)
    return _table_answers(model, every) if at_once or others <= _MAX_SINGLE_PAIRS else _inside(model, names)


def _table_answers(model: Model, pairs: Sequence[Clique]) -> _Pairs:
    return ((pair[0], pair[1], table[None]) for pair, table in model.marginals_of(pairs).items())


def _of_table(table: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mutual information and phi squared of p(a, b), (B, labels, labels); each (B,)."""
    one, two = table.sum(axis=2), table.sum(axis=1)
    # I = H(a) + H(b) - H(a, b)
    information = _entropy(one) + _entropy(two) - _entropy(table.reshape(len(table), -1))
    # Divided root by root, so that products of rare labels cannot underflow.
    apart = (table - one[:, :, None] * two[:, None, :]) * _over_root(one)[:, :, None] * _over_root(two)[:, None, :]
    return np.maximum(information, 0.0), np.sum(apart**2, axis=(1, 2))


def _entropy(shares: FloatArray) -> FloatArray:
    logs = np.log(shares, out=np.zeros(shares.shape), where=shares > 0)
    return np.asarray(-np.einsum("ij,ij->i", shares, logs))


def _over_root(shares: FloatArray) -> FloatArray:
    return ratio(1.0, np.sqrt(np.maximum(shares, 0.0)))


def _cramers(model: Model, names: Clique, pairs: Sequence[Clique], squares: FloatArray) -> FloatArray:
    """V from phi squared: of a table with r and c labels that have any probability, phi^2 <= min(r, c) - 1."""
    if not pairs:
        return squares
    try:
        alone = model.marginals_of([(name,) for name in names])
        labels = {name: int(np.count_nonzero(alone[name,] > 0)) for name in names}
    except TooLarge:
        labels = {name: model.domain[name].size for name in names}
    most = np.array([max(min(labels[one], labels[two]) - 1, 1) for one, two in pairs])
    return np.asarray(np.minimum(np.sqrt(squares / most), 1.0))


def _interval(estimates: FloatArray, level: float, most: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Ends from the model's row and those of its replicates, NaN where there are none; most: what is possible."""
    low, high = np.full(most.shape, math.nan), np.full(most.shape, math.nan)
    known = np.isfinite(estimates).all(axis=0)
    if len(estimates) > 1:
        ends = interval(estimates[0, known], estimates[1:, known], level=level, within=(0.0, math.inf))
        low[known], high[known] = ends.low, np.minimum(ends.high, most[known])
    return low, high

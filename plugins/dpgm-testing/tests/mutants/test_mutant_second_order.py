"""Deliberately wrong second derivatives and wrong inferences of many potentials, each killed by its check."""

import attrs
import numpy as np
import pytest
from attrs import frozen

from dpgm_core import InferenceError, Tables
from dpgm_core.inference.batching import rows_of
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.inference.loopy.bp import LoopyBP
from dpgm_testing import checks_of

LARGE = 12  # attributes from which on a structure is beyond enumeration


class Second:
    """The junction tree with its second derivatives and a plain `infer_many`; mutants override one thing."""

    exact = True
    capabilities = frozenset({"curvature"})
    cost = None

    def __init__(self, inner):
        self.inner, self.structure = inner, inner.structure

    @property
    def large(self):
        return len(self.structure.domain) >= LARGE

    def infer(self, potentials, *, total=1.0):
        return self.inner.infer(potentials, total=total)

    def curvature(self, potentials):
        return self.inner.curvature(potentials)

    def infer_many(self, potentials, *, total=1.0):
        return [self.infer(Tables(self.structure, row), total=total) for row in rows_of(potentials, self.structure)]


def factory(engine_class, inner=JunctionTree):
    """A component that compiles to the mutant engine."""

    @frozen(kw_only=True)
    class Mutant:
        max_order = None

        def compile(self, structure):
            return engine_class(inner().compile(structure))

    Mutant.__name__ = engine_class.__name__
    return Mutant


# --- second derivatives -------------------------------------------------------------------------------------------


class NotCentred(Second):
    """E[T T'] V: the second moments instead of the covariance."""

    def curvature(self, potentials):
        product, mean = super().curvature(potentials), self.infer(potentials).marginals.values
        return lambda v: product(v) + np.multiply.outer(mean, mean @ v)


class FirstColumnForAll(Second):
    """Of a block every column is answered as the first one."""

    def curvature(self, potentials):
        product = super().curvature(potentials)
        return lambda v: product(v) if v.ndim == 1 else np.repeat(product(v[:, :1]), v.shape[1], axis=1)


class TablesApart(Second):
    """Covariances within each table alone, none between tables."""

    def curvature(self, potentials):
        product = super().curvature(potentials)

        def apart(v):
            found = np.zeros(v.shape)
            for at in self.structure.slices:
                alone = np.zeros(v.shape)
                alone[at] = v[at]
                found[at] = product(alone)[at]
            return found

        return apart


class TiedOnce(Second):
    """A tied table is taken for the mean over its cliques."""

    def curvature(self, potentials):
        product = super().curvature(potentials)
        shares = np.repeat(1 / np.array(self.structure.multiplicities), self.structure.sizes)
        return lambda v: (shares * product(v).T).T


class OfTheUniformModel(Second):
    """The curvature at potentials of 0, wherever it is asked for."""

    def curvature(self, potentials):
        return super().curvature(potentials.map(lambda values: np.where(np.isneginf(values), values, 0.0)))


class Shaped(Second):
    """A vector comes back as a block of one column."""

    def curvature(self, potentials):
        product = super().curvature(potentials)
        return lambda v: product(v.reshape(len(v), -1))


class FarTablesForgotten(Second):
    """On large structures tables that lie far apart do not vary together."""

    def curvature(self, potentials):
        product = super().curvature(potentials)
        if not self.large:
            return product
        middle = self.structure.slices[len(self.structure.slices) // 2].start
        half = np.arange(self.structure.cells) < middle

        def near(v):
            one, two = (np.where(part if v.ndim == 1 else part[:, None], v, 0.0) for part in (half, ~half))
            first, second = product(one), product(two)
            return np.where(half if v.ndim == 1 else half[:, None], first, second)

        return near


class ByDifferences(Second):
    """On large structures a difference of marginals to one side: no map, not symmetric, and not exact."""

    def curvature(self, potentials):
        product = super().curvature(potentials)
        if not self.large:
            return product

        def slope(v):
            if v.ndim == 2:
                return np.stack([slope(column) for column in v.T], axis=1)
            size = max(float(np.abs(v).max()), 1e-300)
            ends = [self.infer(potentials.like(potentials.values + step * v / size)) for step in (1e-6, 0.0)]
            return (ends[0].marginals.values - ends[1].marginals.values) * (size / 1e-6)

        return slope


class OfTheLastPotentials(Second):
    """The map is that of whatever potentials the engine was asked about last."""

    def curvature(self, potentials):
        self.last = potentials
        first = self.inner.curvature(potentials)
        return lambda v: first(v) if self.last is potentials else self.inner.curvature(self.last)(v)


class OneProductForAll(Second):
    """Each product is written into the same memory."""

    def curvature(self, potentials):
        product, room = super().curvature(potentials), {}

        def written(v):
            found = product(v)
            held = room.setdefault(found.shape, found)
            held[...] = found
            return held

        return written


class AsItLiesInMemory(Second):
    """Directions are taken as they lie in memory, whatever their order says."""

    def curvature(self, potentials):
        product = super().curvature(potentials)
        return lambda v: product(v.ravel(order="K").reshape(v.shape))


class NanIsZero(Second):
    """Directions that are not finite are taken for 0."""

    def curvature(self, potentials):
        product = super().curvature(potentials)
        return lambda v: product(np.nan_to_num(v, posinf=0.0, neginf=0.0))


class SaysNothing(Second):
    """It has the method, and does not say so."""

    capabilities = frozenset()


class LacksIt(Second):
    """It says that it has second derivatives, and has none."""

    curvature = None

    def __getattribute__(self, name):
        if name == "curvature":
            raise AttributeError(name)
        return super().__getattribute__(name)


# --- many at once -------------------------------------------------------------------------------------------------


class RepeatsTheFirst(Second):
    """Every row is answered as the first one: error bars of `eb-map` become 14 times too small."""

    def infer_many(self, potentials, *, total=1.0):
        found = super().infer_many(potentials, total=total)
        return [attrs.evolve(found[0], marginals=found[0].marginals.map(np.copy)) for _ in found]


class ForgetsTheTotal(Second):
    """Tables of one record, whatever the total."""

    def infer_many(self, potentials, *, total=1.0):
        return super().infer_many(potentials)


class FromTheLastToTheFirst(Second):
    """The right beliefs in the opposite order."""

    def infer_many(self, potentials, *, total=1.0):
        return super().infer_many(potentials, total=total)[::-1]


class EightAtOnce(Second):
    """Works in blocks of eight, and drops the last block if it is not full."""

    def infer_many(self, potentials, *, total=1.0):
        found = super().infer_many(potentials, total=total)
        return found if len(found) < 8 else found[: len(found) // 8 * 8]


class OneLogPartition(Second):
    """log Z is that of the first row."""

    def infer_many(self, potentials, *, total=1.0):
        found = super().infer_many(potentials, total=total)
        return [attrs.evolve(one, log_partition=found[0].log_partition) for one in found]


class AllConverged(LacksIt):
    """What never converged alone is said to have converged among many."""

    exact = False
    capabilities = frozenset()

    def infer_many(self, potentials, *, total=1.0):
        return [attrs.evolve(one, converged=True) for one in super().infer_many(potentials, total=total)]


class ZerosAreSmall(Second):
    """Impossible cells are only unlikely among many."""

    def infer_many(self, potentials, *, total=1.0):
        return super().infer_many(np.maximum(potentials, -15.0), total=total)


class LeavesOutTheWrong(Second):
    """A row that is refused is answered as the row before it."""

    def infer_many(self, potentials, *, total=1.0):
        found = []
        for row in rows_of(potentials, self.structure):
            try:
                found.append(self.infer(Tables(self.structure, row), total=total))
            except InferenceError:
                found.append(found[-1] if found else self.infer(Tables.zeros(self.structure)))
        return found


class LooksAtTheFirst(Second):
    """Only the first row is looked at; what is no number in others comes out as it is."""

    def infer_many(self, potentials, *, total=1.0):
        rows = rows_of(potentials, self.structure)
        self.infer(Tables(self.structure, rows[0])) if len(rows) else None
        clean = np.nan_to_num(rows, posinf=1e300, neginf=-np.inf)
        return super().infer_many(np.where(np.isneginf(clean).all(axis=1)[:, None], 0.0, clean), total=total)


class AnyShape(Second):
    """One row by itself is taken for a call with one row."""

    def infer_many(self, potentials, *, total=1.0):
        return super().infer_many(np.atleast_2d(potentials), total=total)


class OneBuffer(Second):
    """The tables of every call lie in one memory, of which each call hands out views."""

    def infer_many(self, potentials, *, total=1.0):
        found = super().infer_many(potentials, total=total)
        if not hasattr(self, "room"):
            self.room = np.empty((64, self.structure.cells))
        for place, one in enumerate(found):
            self.room[place] = one.marginals.values
        return [
            attrs.evolve(one, marginals=Tables(self.structure, self.room[place])) for place, one in enumerate(found)
        ]


class NormalisesInPlace(Second):
    """The caller's rows are moved to a largest potential of 0."""

    def infer_many(self, potentials, *, total=1.0):
        found = super().infer_many(potentials, total=total)
        if potentials.flags.writeable and potentials.dtype == np.float64:
            potentials -= np.nanmax(potentials, axis=-1, keepdims=True) + 1.0
        return found


class RowsLieInTheEngine(Second):
    """The rows of a call lie in the engine while it works: of two threads one takes the other's."""

    def infer_many(self, potentials, *, total=1.0):
        self.rows = rows_of(potentials, self.structure)
        return [self.infer(Tables(self.structure, self.rows[place]), total=total) for place in range(len(potentials))]


CURVATURE = [
    (NotCentred, "curvature-equals-enumeration"),
    (FirstColumnForAll, "curvature-equals-enumeration"),
    (TablesApart, "curvature-equals-enumeration"),
    (TiedOnce, "curvature-equals-enumeration"),
    (OfTheUniformModel, "curvature-equals-enumeration"),
    (Shaped, "curvature-equals-enumeration"),
    (SaysNothing, "curvature-equals-enumeration"),
    (LacksIt, "curvature-equals-enumeration"),
    (FarTablesForgotten, "curvature-is-the-slope-of-the-marginals"),
    (ByDifferences, "curvature-is-symmetric-and-centred"),
    (OfTheLastPotentials, "curvature-keeps-nothing"),
    (OneProductForAll, "curvature-keeps-nothing"),
    (AsItLiesInMemory, "curvature-keeps-nothing"),
    (NanIsZero, "curvature-refuses-nonsense"),
]
MANY = [
    (RepeatsTheFirst, "many-together-are-each-alone"),
    (ForgetsTheTotal, "many-together-are-each-alone"),
    (FromTheLastToTheFirst, "many-together-are-each-alone"),
    (EightAtOnce, "many-together-are-each-alone"),
    (OneLogPartition, "many-together-are-each-alone"),
    (AllConverged, "many-together-are-each-alone"),
    (ZerosAreSmall, "many-together-are-each-alone"),
    (LeavesOutTheWrong, "many-refuse-what-one-refuses"),
    (LooksAtTheFirst, "many-refuse-what-one-refuses"),
    (AnyShape, "many-refuse-what-one-refuses"),
    (OneBuffer, "many-share-nothing"),
    (NormalisesInPlace, "many-share-nothing"),
    (RowsLieInTheEngine, "many-share-nothing"),
]
MUTANTS = CURVATURE + MANY
OWN = {one.name: one.needs for one in checks_of("inference") if one.needs in ("curvature", "many")}
# What no other of these checks finds: without the check such an engine passes.
ALONE = [TiedOnce, FarTablesForgotten, ByDifferences, OfTheLastPotentials, NanIsZero]
ALONE += [EightAtOnce, LeavesOutTheWrong, NormalisesInPlace]


def made(mutant):
    """As a component; that of converged messages is over loopy belief propagation that stops early."""
    return factory(mutant, (lambda: LoopyBP(max_iterations=2)) if mutant is AllConverged else JunctionTree)


@pytest.mark.parametrize(("mutant", "check"), MUTANTS, ids=[one.__name__ for one, _ in MUTANTS])
def test_the_check_meant_for_it_kills_the_mutant(verdict, mutant, check):
    """The named check fails; the mutant's docstring says what is wrong with it."""
    assert verdict(made(mutant), "inference", check).startswith("CheckFailed")


@pytest.mark.parametrize("check", OWN)
def test_the_original_passes(verdict, check):
    """The engine that the mutants are made from passes, and each of these checks kills one."""
    assert verdict(factory(Second), "inference", check, profile="quick") is None
    assert check in {name for _, name in MUTANTS}


@pytest.mark.parametrize("mutant", ALONE, ids=[one.__name__ for one in ALONE])
def test_no_other_check_finds_it(verdict, mutant):
    """Each check has a mutant that the others let pass, so none of them is needless."""
    (meant,) = [check for one, check in MUTANTS if one is mutant]
    others = [check for check, needs in OWN.items() if check != meant and needs == OWN[meant]]
    assert not [check for check in others if verdict(made(mutant), "inference", check)]

"""Deliberately wrong second derivatives and wrong inferences of many potentials, each killed by its check."""

import attrs
import numpy as np

from dpgm_core import InferenceError, Tables
from dpgm_core.inference.contract import rows_of
from dpgm_core.inference.loopy.bp import LoopyBP

from .engines import Engine, factory
from .family import Family, replaces

LARGE = 12  # attributes from which on a structure is beyond enumeration


class Second(Engine):
    """The junction tree with its second derivatives and a plain `infer_many`; mutants override one thing."""

    exact = True
    capabilities = frozenset({"curvature"})

    @property
    def large(self):
        return len(self.structure.domain) >= LARGE

    def curvature(self, potentials):
        return self.inner.curvature(potentials)

    def infer_many(self, potentials, *, total=1.0):
        return [self.infer(Tables(self.structure, row), total=total) for row in rows_of(potentials, self.structure)]


engine = Family("inference", factory)


# --- second derivatives -------------------------------------------------------------------------------------------


@engine.each
class CurvatureFaults(Second):
    @replaces("curvature", "curvature-equals-enumeration", "E[T T'] V: the second moments instead of the covariance.")
    def not_centred(self, potentials):
        product, mean = super().curvature(potentials), self.infer(potentials).marginals.values
        return lambda v: product(v) + np.multiply.outer(mean, mean @ v)

    @replaces("curvature", "curvature-equals-enumeration", "Of a block every column is answered as the first one.")
    def first_column_for_all(self, potentials):
        product = super().curvature(potentials)
        return lambda v: product(v) if v.ndim == 1 else np.repeat(product(v[:, :1]), v.shape[1], axis=1)

    @replaces("curvature", "curvature-equals-enumeration", "Covariances within each table alone, none between tables.")
    def tables_apart(self, potentials):
        product = super().curvature(potentials)

        def apart(v):
            found = np.zeros(v.shape)
            for at in self.structure.slices:
                alone = np.zeros(v.shape)
                alone[at] = v[at]
                found[at] = product(alone)[at]
            return found

        return apart

    @replaces("curvature", "curvature-equals-enumeration")
    def of_the_uniform_model(self, potentials):
        """The curvature at potentials of 0, wherever it is asked for."""
        return super().curvature(potentials.map(lambda values: np.where(np.isneginf(values), values, 0.0)))

    @replaces("curvature", "curvature-equals-enumeration", "A vector comes back as a block of one column.")
    def shaped(self, potentials):
        product = super().curvature(potentials)
        return lambda v: product(v.reshape(len(v), -1))

    @replaces("curvature", "curvature-keeps-nothing", "Each product is written into the same memory.")
    def one_product_for_all(self, potentials):
        product, room = super().curvature(potentials), {}

        def written(v):
            found = product(v)
            held = room.setdefault(found.shape, found)
            held[...] = found
            return held

        return written

    @replaces("curvature", "curvature-keeps-nothing")
    def as_it_lies_in_memory(self, potentials):
        """Directions are taken as they lie in memory, whatever their order says."""
        product = super().curvature(potentials)
        return lambda v: product(v.ravel(order="K").reshape(v.shape))


@engine("curvature-equals-enumeration", "A tied table is taken for the mean over its cliques.")
class TiedOnce(Second):
    def curvature(self, potentials):
        product = super().curvature(potentials)
        shares = np.repeat(1 / np.array(self.structure.multiplicities), self.structure.sizes)
        return lambda v: (shares * product(v).T).T


@engine("curvature-is-the-slope-of-the-marginals", "Tables far apart in large structures do not vary together.")
class FarTablesForgotten(Second):
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


@engine("curvature-is-symmetric-and-centred", "Takes one-sided differences on large structures, which are no map.")
class ByDifferences(Second):
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


@engine("curvature-keeps-nothing", "The map is that of whatever potentials the engine was asked about last.")
class OfTheLastPotentials(Second):
    def curvature(self, potentials):
        self.last = potentials
        first = self.inner.curvature(potentials)
        return lambda v: first(v) if self.last is potentials else self.inner.curvature(self.last)(v)


@engine("curvature-refuses-nonsense", "Directions that are not finite are taken for 0.")
class NanIsZero(Second):
    def curvature(self, potentials):
        product = super().curvature(potentials)
        return lambda v: product(np.nan_to_num(v, posinf=0.0, neginf=0.0))


@engine("curvature-equals-enumeration", "It has the method, and does not say so.")
class SaysNothing(Second):
    capabilities = frozenset()


@engine("curvature-equals-enumeration", "It says that it has second derivatives, and has none.")
class LacksIt(Second):
    curvature = None

    def __getattribute__(self, name):
        if name == "curvature":
            raise AttributeError(name)
        return super().__getattribute__(name)


# --- many at once -------------------------------------------------------------------------------------------------


@engine.each
class ManyFaults(Second):
    @replaces("infer_many", "many-together-are-each-alone")
    def repeats_the_first(self, potentials, *, total=1.0):
        """Answers every row as the first: error bars become 14 times too small."""
        found = super().infer_many(potentials, total=total)
        return [attrs.evolve(found[0], marginals=found[0].marginals.map(np.copy)) for _ in found]

    @replaces("infer_many", "many-together-are-each-alone", "Tables of one record, whatever the total.")
    def forgets_the_total(self, potentials, *, total=1.0):
        return super().infer_many(potentials)

    @replaces("infer_many", "many-together-are-each-alone", "The right beliefs in the opposite order.")
    def from_the_last_to_the_first(self, potentials, *, total=1.0):
        return super().infer_many(potentials, total=total)[::-1]

    @replaces("infer_many", "many-together-are-each-alone", "log Z is that of the first row.")
    def one_log_partition(self, potentials, *, total=1.0):
        found = super().infer_many(potentials, total=total)
        return [attrs.evolve(one, log_partition=found[0].log_partition) for one in found]

    @replaces("infer_many", "many-together-are-each-alone", "Impossible cells are only unlikely among many.")
    def zeros_are_small(self, potentials, *, total=1.0):
        return super().infer_many(np.maximum(potentials, -15.0), total=total)

    @replaces("infer_many", "many-refuse-what-one-refuses", "Checks the first row alone; no number in others passes.")
    def looks_at_the_first(self, potentials, *, total=1.0):
        rows = rows_of(potentials, self.structure)
        self.infer(Tables(self.structure, rows[0])) if len(rows) else None
        clean = np.nan_to_num(rows, posinf=1e300, neginf=-np.inf)
        return super().infer_many(np.where(np.isneginf(clean).all(axis=1)[:, None], 0.0, clean), total=total)

    @replaces("infer_many", "many-refuse-what-one-refuses", "One row by itself is taken for a call with one row.")
    def any_shape(self, potentials, *, total=1.0):
        return super().infer_many(np.atleast_2d(potentials), total=total)

    @replaces("infer_many", "many-share-nothing")
    def one_buffer(self, potentials, *, total=1.0):
        """The tables of every call lie in one memory, of which each call hands out views."""
        found = super().infer_many(potentials, total=total)
        if not hasattr(self, "room"):
            self.room = np.empty((64, self.structure.cells))
        for place, one in enumerate(found):
            self.room[place] = one.marginals.values
        return [
            attrs.evolve(one, marginals=Tables(self.structure, self.room[place])) for place, one in enumerate(found)
        ]

    @replaces("infer_many", "many-share-nothing")
    def rows_lie_in_the_engine(self, potentials, *, total=1.0):
        """Keeps a call's rows in the engine: of two threads one takes the other's."""
        self.rows = rows_of(potentials, self.structure)
        return [self.infer(Tables(self.structure, self.rows[place]), total=total) for place in range(len(potentials))]


@engine("many-together-are-each-alone", "Works in blocks of eight, and drops the last block if it is not full.")
class EightAtOnce(Second):
    def infer_many(self, potentials, *, total=1.0):
        found = super().infer_many(potentials, total=total)
        return found if len(found) < 8 else found[: len(found) // 8 * 8]


@engine("many-together-are-each-alone", inner=lambda: LoopyBP(max_iterations=2))
class AllConverged(LacksIt):
    """What never converged alone is said to have converged among many."""

    exact = False
    capabilities = frozenset()

    def infer_many(self, potentials, *, total=1.0):
        return [attrs.evolve(one, converged=True) for one in super().infer_many(potentials, total=total)]


@engine("many-refuse-what-one-refuses", "A row that is refused is answered as the row before it.")
class LeavesOutTheWrong(Second):
    def infer_many(self, potentials, *, total=1.0):
        found = []
        for row in rows_of(potentials, self.structure):
            try:
                found.append(self.infer(Tables(self.structure, row), total=total))
            except InferenceError:
                found.append(found[-1] if found else self.infer(Tables.zeros(self.structure)))
        return found


@engine("many-share-nothing", "The caller's rows are moved to a largest potential of 0.")
class NormalisesInPlace(Second):
    def infer_many(self, potentials, *, total=1.0):
        found = super().infer_many(potentials, total=total)
        if potentials.flags.writeable and potentials.dtype == np.float64:
            potentials -= np.nanmax(potentials, axis=-1, keepdims=True) + 1.0
        return found


# What no other of these checks finds: without the check such an engine passes.
ALONE = [TiedOnce, FarTablesForgotten, ByDifferences, OfTheLastPotentials, NanIsZero]
ALONE += [EightAtOnce, LeavesOutTheWrong, NormalisesInPlace]

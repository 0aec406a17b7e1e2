"""Engines that draw and are deliberately wrong, each killed by the check meant for it."""

import attrs
import numpy as np

from dpgm_core import Beliefs, Tables
from dpgm_core.inference.contract import Estimates

from .engines import Engine, factory
from .family import Family, replaces

COUNT = 4000


class Drawing(Engine):
    """Independent records of the model from a fixed seed, and averages over them; mutants override one thing."""

    exact = False
    capabilities = frozenset({"estimate", "query", "sample"})

    def records(self, potentials):
        return self.inner.sample(potentials, COUNT, np.random.default_rng(0))

    def shares(self, potentials, cliques):
        names = self.structure.domain.names
        codes = self.records(potentials)
        table = np.zeros(self.structure.domain.shape(cliques[0]))
        for clique in cliques:
            at = tuple(codes[names.index(name)].astype(int) for name in clique)
            np.add.at(table, at, 1 / COUNT if clique else 1.0)
        share = table / len(cliques)
        return table, len(cliques) * np.sqrt(share * (1 - share) / COUNT + (2 / COUNT) ** 2)

    def infer(self, potentials, *, total=1.0):
        found = [self.shares(potentials, group) for group in self.structure.groups]
        tables, errors = (np.concatenate([one[part].reshape(-1) for one in found]) for part in (0, 1))
        return Beliefs(
            marginals=Tables(self.structure, tables * total),
            log_partition=self.inner.infer(potentials).log_partition + 0.001,
            errors=Tables(self.structure, errors * total),
            log_partition_error=0.001,
        )

    def estimates(self, potentials, queries):
        found = [self.shares(potentials, [query]) for query in queries]
        return Estimates(tables=tuple(one[0] for one in found), errors=tuple(one[1] for one in found))

    def answers(self, potentials, queries):
        return list(self.estimates(potentials, queries).tables)

    def caveats(self, potentials):
        return ()

    def sample(self, potentials, count, generator):
        return self.inner.sample(potentials, count, generator)


engine = Family("inference", factory)


@engine.each
class DrawingFaults(Drawing):
    @replaces("infer", "errors-are-stated", "No errors at all.")
    def says_nothing(self, potentials, *, total=1.0):
        return attrs.evolve(super().infer(potentials, total=total), errors=None, log_partition_error=None)

    @replaces("infer", "errors-are-stated", "Errors do not grow with the total.")
    def errors_of_one_record(self, potentials, *, total=1.0):
        return attrs.evolve(super().infer(potentials, total=total), errors=super().infer(potentials).errors)

    @replaces("answers", "errors-are-stated", "Answers are of other records than estimates.")
    def second_opinion(self, potentials, queries):
        return self.inner.answers(potentials, queries)

    @replaces("estimates", "errors-are-stated", "No error where few records were seen.")
    def sure_of_rare_things(self, potentials, queries):
        found = super().estimates(potentials, queries)
        sure = tuple(np.where(table < 0.2, 0.0, off) for table, off in zip(found.tables, found.errors, strict=True))
        return attrs.evolve(found, errors=sure)

    @replaces("infer", "errors-hold", "A fifteenth of the errors, of everything.")
    def too_sure(self, potentials, *, total=1.0):
        found = super().infer(potentials, total=total)
        return attrs.evolve(found, errors=found.errors / 15)

    @replaces("infer", "errors-hold", "log Z is off by ten of its errors.")
    def sure_of_log_z(self, potentials, *, total=1.0):
        return attrs.evolve(super().infer(potentials, total=total), log_partition_error=1e-4)

    @replaces("estimates", "errors-hold", "Errors of single records that count for a hundred.")
    def too_sure_of_answers(self, potentials, queries):
        found = super().estimates(potentials, queries)
        return attrs.evolve(found, errors=tuple(one / 15 for one in found.errors))

    @replaces("infer", "errors-hold", "It says so of everything, and need not be right then.")
    def never_converges(self, potentials, *, total=1.0):
        return attrs.evolve(super().infer(potentials, total=total), converged=False)

    @replaces("infer", "errors-are-no-larger-than-they-are", "Errors hold because they are a hundred times too large.")
    def knows_nothing(self, potentials, *, total=1.0):
        found = super().infer(potentials, total=total)
        return attrs.evolve(found, errors=found.errors * 100)

    @replaces("sample", "draws-follow-the-model", "Records are few, each many times: a chain that stays where it is.")
    def never_moves(self, potentials, count, generator):
        few = self.inner.sample(potentials, max(1, count // 400), generator)
        return [np.resize(np.repeat(column, 400), count) for column in few]

    @replaces("sample", "draws-follow-the-model", "Records of half the potentials.")
    def tempered(self, potentials, count, generator):
        return self.inner.sample(potentials * 0.5, count, generator)

    @replaces("sample", "draws-follow-the-model", "Records that no generator repeats.")
    def own_dice(self, potentials, count, generator):
        return self.inner.sample(potentials, count, np.random.default_rng())

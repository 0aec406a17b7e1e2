"""Engines that draw and are deliberately wrong, each killed by the check meant for it."""

import attrs
import numpy as np
import pytest
from attrs import frozen

from dpgm_core import Beliefs, Tables
from dpgm_core.inference.contract import Estimates
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_testing import checks_of

COUNT = 4000


class Drawing:
    """Independent records of the model from a fixed seed, and averages over them; mutants override one thing."""

    exact = False
    capabilities = frozenset({"estimate", "query", "sample"})
    cost = None

    def __init__(self, inner):
        self.inner = inner
        self.structure = inner.structure

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


def factory(engine_class):
    """A component that compiles to the mutant engine."""

    @frozen(kw_only=True)
    class Mutant:
        max_order = None

        def compile(self, structure):
            return engine_class(JunctionTree().compile(structure))

    return Mutant


class SaysNothing(Drawing):
    """No errors at all."""

    def infer(self, potentials, *, total=1.0):
        return attrs.evolve(super().infer(potentials, total=total), errors=None, log_partition_error=None)


class ErrorsOfOneRecord(Drawing):
    """Errors do not grow with the total."""

    def infer(self, potentials, *, total=1.0):
        return attrs.evolve(super().infer(potentials, total=total), errors=super().infer(potentials).errors)


class SecondOpinion(Drawing):
    """Answers are of other records than estimates."""

    def answers(self, potentials, queries):
        return self.inner.answers(potentials, queries)


class SureOfRareThings(Drawing):
    """No error where few records were seen."""

    def estimates(self, potentials, queries):
        found = super().estimates(potentials, queries)
        sure = tuple(np.where(table < 0.2, 0.0, off) for table, off in zip(found.tables, found.errors, strict=True))
        return attrs.evolve(found, errors=sure)


class TooSure(Drawing):
    """A fifteenth of the errors, of everything."""

    def infer(self, potentials, *, total=1.0):
        found = super().infer(potentials, total=total)
        return attrs.evolve(found, errors=found.errors / 15)


class SureOfLogZ(Drawing):
    """log Z is off by ten of its errors."""

    def infer(self, potentials, *, total=1.0):
        return attrs.evolve(super().infer(potentials, total=total), log_partition_error=1e-4)


class TooSureOfAnswers(Drawing):
    """Errors of single records that count for a hundred."""

    def estimates(self, potentials, queries):
        found = super().estimates(potentials, queries)
        return attrs.evolve(found, errors=tuple(one / 15 for one in found.errors))


class NeverConverges(Drawing):
    """It says so of everything, and need not be right then."""

    def infer(self, potentials, *, total=1.0):
        return attrs.evolve(super().infer(potentials, total=total), converged=False)


class KnowsNothing(Drawing):
    """Errors hold because they are a hundred times too large."""

    def infer(self, potentials, *, total=1.0):
        found = super().infer(potentials, total=total)
        return attrs.evolve(found, errors=found.errors * 100)


class NeverMoves(Drawing):
    """Records are few, each many times: a chain that stays where it is."""

    def sample(self, potentials, count, generator):
        few = self.inner.sample(potentials, max(1, count // 400), generator)
        return [np.resize(np.repeat(column, 400), count) for column in few]


class Tempered(Drawing):
    """Records of half the potentials."""

    def sample(self, potentials, count, generator):
        return self.inner.sample(potentials * 0.5, count, generator)


class OwnDice(Drawing):
    """Records that no generator repeats."""

    def sample(self, potentials, count, generator):
        return self.inner.sample(potentials, count, np.random.default_rng())


BY_CHECK = {
    "errors-are-stated": [SaysNothing, ErrorsOfOneRecord, SecondOpinion, SureOfRareThings],
    "errors-hold": [TooSure, SureOfLogZ, TooSureOfAnswers, NeverConverges],
    "errors-are-no-larger-than-they-are": [KnowsNothing],
    "draws-follow-the-model": [NeverMoves, Tempered, OwnDice],
}
MUTANTS = [(mutant, check) for check, mutants in BY_CHECK.items() for mutant in mutants]


@pytest.mark.parametrize(("mutant", "check"), MUTANTS, ids=[one.__name__ for one, _ in MUTANTS])
def test_the_check_meant_for_it_kills_the_mutant(verdict, mutant, check):
    """The named check fails; the mutant's docstring says what is wrong with it."""
    assert verdict(factory(mutant), "inference", check).startswith("CheckFailed")


@pytest.mark.parametrize("check", sorted(BY_CHECK))
def test_the_original_passes(verdict, check):
    """The engine that the mutants are made of passes the same checks."""
    assert verdict(factory(Drawing), "inference", check) is None


def test_every_check_of_draws_kills_a_mutant():
    """No check is there for show."""
    assert set(BY_CHECK) == {check.name for check in checks_of("inference") if check.needs == "estimate"}

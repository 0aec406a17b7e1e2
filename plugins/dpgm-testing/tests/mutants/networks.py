"""Learners of Bayesian networks, right and wrong: the kit gives them directed graphs, and kills the wrong ones."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from attrs import frozen

from dpgm_core import BudgetError, Dag, Fit, Model, Structure, StructureError, Tables
from dpgm_core.curator.replay import ReplayCurator
from dpgm_core.learning import consistent
from dpgm_testing.cases import CHAIN

from .family import Family, replaces

learner = Family("learner")


@frozen(kw_only=True)
class Network:
    """The learner the mutants are made from: one release of the families, clipped; each row by its shares."""

    def check(self, structure, inference):
        Dag.of(structure)

    def learn(self, curator, inference, *, randomness, progress):
        dag = Dag.of(curator.structure)
        tables, releases = self.measured(curator)
        return self.fit(dag, self.conditionals(dag, tables), releases)

    def measured(self, curator):
        """Consistent tables, shares of one record, and the releases that the model states."""
        return self.agreed(curator.release()), ()

    def agreed(self, release):
        clipped = np.maximum(release.tables.values.astype(float), 0.0) + 1e-6
        tables = Tables(release.structure, clipped)
        return consistent(tables.like(clipped / tables.repeat(tables.sums())), release.variances)

    def conditionals(self, dag, tables):
        found = {}
        for family in dag.families:
            table = np.maximum(tables[family], 1e-9)
            found[family[0]] = table / table.sum(axis=0, keepdims=True)
        return found

    def fit(self, dag, cpds, releases):
        return Fit(model=Model.from_cpds(dag, cpds, releases=releases))


class TwoStages(Network):
    """No mutant: a tenth of the budget for a first look, then the rest table by table; (epsilon, delta) is refused."""

    def measured(self, curator):
        if curator.budget.kind == "approx":
            raise BudgetError("two stages take a pure or a zCDP budget")
        families = Dag.of(curator.structure).families
        first = curator.release(budget=curator.budget * Fraction(1, 10), cliques=families)
        each = curator.remaining * Fraction(1, len(families))
        second = curator.release(budget=dict.fromkeys(families, each))
        # inverse-variance pooling
        weights = [np.repeat(1 / one.variances, one.structure.sizes) for one in (first, second)]
        both = sum(weight * one.tables.values for weight, one in zip(weights, (first, second), strict=True))
        values = np.maximum(both / sum(weights), 0.0) + 1e-6
        tables = Tables(second.structure, values)
        return consistent(tables.like(values / tables.repeat(tables.sums())), second.variances), (first, second)


@learner("survives-awkward-structures", "Its `check` passes everything; what is no graph is refused when paid for.")
class RefusesAfterPaying(Network):
    def check(self, structure, inference):
        pass

    def learn(self, curator, inference, *, randomness, progress):
        tables, releases = self.measured(curator)
        dag = Dag.of(curator.structure)
        return self.fit(dag, self.conditionals(dag, tables), releases)


@learner("what-is-no-graph-is-refused-unpaid", "`check` refuses; who calls `learn` without it pays before it does.")
class PaysFirst(Network):
    learn = RefusesAfterPaying.learn


@learner("what-is-no-graph-is-refused-unpaid", "What is no graph but a chain it takes, and makes something of it.")
class TakesAnythingToo(Network):
    def check(self, structure, inference):
        if structure == CHAIN:
            Dag.of(structure)

    def learn(self, curator, inference, *, randomness, progress):
        try:
            return super().learn(curator, inference, randomness=randomness, progress=progress)
        except StructureError:
            release = curator.release()
            return Fit(model=Model(release.structure, Tables.zeros(release.structure)))


@learner.each
class NetworkFaults(Network):
    @replaces("check", ("survives-awkward-structures", "what-is-too-large-is-refused-by-check"))
    def refuses_everything(self, structure, inference):
        """Every structure is no directed graph to it."""
        raise StructureError("this structure is no directed graph")

    @replaces("check", "survives-awkward-structures", "A second parent is refused.")
    def one_parent_only(self, structure, inference):
        if any(len(family) > 2 for family in Dag.of(structure).families):
            raise StructureError("at most one parent each")

    @replaces("conditionals", "many-records-are-followed", "Every attribute is independent of its parents.")
    def ignores_parents(self, dag, tables):
        found = super().conditionals(dag, tables)
        for family, table in ((family, tables[family]) for family in dag.families):
            alone = np.maximum(table.reshape(len(table), -1).sum(axis=1), 1e-9)
            shape = [len(table)] + [1] * (table.ndim - 1)
            found[family[0]] = np.broadcast_to((alone / alone.sum()).reshape(shape), table.shape)
        return found

    @replaces("conditionals", "many-records-are-followed", "Of two parents the first is averaged over.")
    def last_parent_only(self, dag, tables):
        found = super().conditionals(dag, tables)
        for child, table in found.items():
            if table.ndim > 2:
                found[child] = np.broadcast_to(table.mean(axis=1, keepdims=True), table.shape)
        return found

    @replaces("fit", "a-network-comes-out", "Is over the largest families: right answers, no network for `network_of`.")
    def over_the_maximal(self, dag, cpds, releases):
        model = Model.from_cpds(dag, cpds)
        roomy = Structure(dag.domain, dag.maximal)
        return Fit(model=Model(roomy, model.potentials.embed(roomy), releases=releases))

    @replaces("fit", "a-network-comes-out", "A network over another graph: that without arcs.")
    def over_no_arcs(self, dag, cpds, releases):
        bare = Dag(dag.domain, {})
        tables = {name: cpds[name].reshape(len(cpds[name]), -1).mean(axis=1) for name in cpds}
        return Fit(model=Model.from_cpds(bare, tables, releases=releases))

    @replaces("fit", "a-network-comes-out", "Rows are joint probabilities: nobody divided by the parents'.")
    def leaves_out_roots(self, dag, cpds, releases):
        logs = {family: np.log(cpds[family[0]]) + 1.0 * (len(family) > 1) for family in dag.families}
        structure = dag.structure()
        return Fit(model=Model(structure, Tables.from_arrays(structure, logs), releases=releases))

    @replaces("measured", "cost-is-the-curators")
    def states_the_inner_release(self, curator):
        """States the second of two releases, which its inner learner saw, as all."""
        curator.release(budget=curator.budget * Fraction(9, 10))
        release = curator.release()
        inner = ReplayCurator(release, curator.structure)
        tables = self.agreed(inner.release())
        return tables, inner.released

    @replaces("agreed", "quiet-tables-count-for-more", "A loud family counts for as much as a quiet one.")
    def takes_families_alike(self, release):
        clipped = np.maximum(release.tables.values.astype(float), 0.0) + 1e-6
        tables = Tables(release.structure, clipped)
        return consistent(tables.like(clipped / tables.repeat(tables.sums())))


@learner("spends-what-it-is-given", "The second stage never comes.")
class SpendsTheFirstStage(TwoStages):
    def measured(self, curator):
        if curator.budget.kind == "approx":
            raise BudgetError("two stages take a pure or a zCDP budget")
        return self.agreed(curator.release(budget=curator.budget * Fraction(1, 10))), ()


@learner("cost-is-the-curators", "What the first look cost is left out.")
class StatesTheSecondStage(TwoStages):
    def measured(self, curator):
        tables, (_, second) = super().measured(curator)
        return tables, (second,)


@learner("survives-negative-counts", "A row without a positive count is 0 / 0.")
class DividesByNothing(Network):
    def conditionals(self, dag, tables):
        found = {family[0]: tables[family] for family in dag.families}
        return {child: table / table.sum(axis=0) for child, table in found.items()}

    def agreed(self, release):
        return release.tables.like(np.maximum(release.tables.values.astype(float), 0.0))

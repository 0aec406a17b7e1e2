"""Learners of Bayesian networks over a public graph, their errors, and the tables of `benchmarks.papers.chowdhury`."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from attrs import field, frozen

from benchmarks.cases.census import load
from benchmarks.cases.coded import Coded, off
from benchmarks.cases.networks import SMOOTHING, Network, family_counts
from benchmarks.cases.people import sensible, wrong
from benchmarks.harness.output import beginning, grouped, having, mean_and_error, section
from benchmarks.harness.runs import Line
from benchmarks.harness.timing import cpu_seconds
from dpgm_core import (
    Array,
    Budget,
    Dag,
    Domain,
    Fit,
    FloatArray,
    IntArray,
    Model,
    NoisyTables,
    SeededRandomness,
    Structure,
    Tables,
    Terms,
    Workload,
    cpds,
    fit,
    learn,
    release,
)
from dpgm_core.learning import consistent
from dpgm_core.models.cpds import cpds_of
from dpgm_core.models.networks import network_of

# --------------------------------------------------------------------------------------------------
# Methods that learn the tables of a given network from records, and how far each is off.

TERMS = Terms(neighbours="add-remove")
BASELINE, EXACT = "baseline", "non-private"

CpdTables = dict[str, FloatArray]


@frozen
class Method:
    """learner: and its options; None: each family's noisy counts by themselves, as the baseline has it. gaussian:
    (epsilon, 1/N) instead of epsilon. zcdp: the rho within that instead, which adds over releases. agree: tables are
    made to agree before each is read by itself; also the second stage's of a learner whose `smoothing` is 0."""

    learner: Mapping[str, Any] | None = None
    gaussian: bool = False
    zcdp: bool = False
    agree: bool = False

    def budget(self, epsilon: str, delta: Fraction) -> Budget:
        """What it may spend for this epsilon."""
        if not self.gaussian:
            return Budget.pure(epsilon)
        promised = Budget.approx(epsilon, delta)
        return promised.zcdp_within() if self.zcdp else promised

    @property
    def noise(self) -> str:
        """Its mechanism."""
        return "gaussian" if self.gaussian else "laplace"


@frozen(kw_only=True)
class Learned:
    """tables: attribute -> its learned table, as the method has it. for_kl: with none of its entries 0 by clipping.
    said: other facts of the run."""

    tables: CpdTables
    for_kl: CpdTables
    said: dict[str, Any] = field(factory=dict)


def two_stage(**options: Any) -> dict[str, Any]:
    """The paper's, as far as its text goes: a tenth of the budget first, and only the second look is learned from."""
    paper = {"first_share": 0.1, "sampling_rate": 0.1, "pool": False, "smoothing": 0}
    return {"name": "bayes-net-two-stage"} | paper | options


METHODS: dict[str, Method | None] = {
    EXACT: None,
    BASELINE: Method(),
    "baseline + consistency": Method(agree=True),
    "baseline Gaussian": Method(gaussian=True),
    "two-stage sampled": Method(two_stage(), agree=True),
    "two-stage": Method(two_stage(sampling_rate=1), agree=True),
    "two-stage errors alone": Method(two_stage(sampling_rate=1, weights="error"), agree=True),
    "two-stage pooled Gaussian": Method(
        two_stage(sampling_rate=1, weights="error", pool=True, smoothing=0.25, measure="maximal"),
        gaussian=True,
        zcdp=True,
    ),
    "bayes-net local": Method({"name": "bayes-net", "learner": "local"}),
    "bayes-net local Gaussian": Method({"name": "bayes-net", "learner": "local"}, gaussian=True),
    "bayes-net": Method({"name": "bayes-net"}),
    "bayes-net even Gaussian": Method({"name": "bayes-net", "split": "even"}, gaussian=True),
    "bayes-net Gaussian": Method({"name": "bayes-net"}, gaussian=True),
}


def judged(network: Network, method: str, epsilon: str, count: int, seed: int) -> dict[str, Any]:
    """One method on one draw of records: `kl` in nats, `l1` to the exact tables; see `answers_off` for the others.

    Every method gets the same records, and where it measures the same tables with the same noise, the same release.
    """
    records, chosen = network.records(count, seed), METHODS[method]
    start = time.process_time()
    if chosen is None:
        exact = cpds_of(family_counts(network.dag, records))[0]
        learned = Learned(tables=exact, for_kl=exact)
    else:
        learned = fitted(chosen, network.dag, records, epsilon, Fraction(1, count), seed)
    spent = time.process_time() - start
    errors = {"kl": network.divergence(learned.for_kl), "l1": network.off_the_records(learned.tables, records)}
    errors |= network.answers_off(learned.for_kl)
    if learned.tables is not learned.for_kl:
        errors["kl_clipped"] = network.divergence(learned.tables)
    return {name: float(f"{error:.6g}") for name, error in errors.items()} | learned.said | {"seconds": round(spent, 3)}


def fitted(method: Method, dag: Dag, records: Array, epsilon: str, delta: Fraction, seed: int) -> Learned:
    """A private method's tables."""
    budget = method.budget(epsilon, delta)
    if method.learner is None:
        noisy = release(
            records, dag.structure(), budget, method.noise, terms=TERMS, randomness=SeededRandomness(seed), split="even"
        )
        return by_counts(noisy, dag, agree=method.agree)
    done = fit(
        records, dag.structure(), budget, method.noise, method.learner, terms=TERMS, randomness=SeededRandomness(seed)
    )
    tables, said = tables_of(done), {"converged": done.converged}
    if method.agree:
        # Its own tables are clipped at 0, which KL does not forgive: read the second look as the baseline reads its.
        last = done.releases[-1]
        return Learned(tables=tables, for_kl=by_counts(last, dag, agree=True).for_kl, said=said)
    return Learned(tables=tables, for_kl=tables, said=said)


def tables_of(done: Fit) -> CpdTables:
    """Of a fit that is a network; without inference."""
    return network_of(done.model)[1]


def by_counts(noisy: NoisyTables, dag: Dag, *, agree: bool) -> Learned:
    """The baseline's reading of noisy counts: negative ones are 0; for KL one more in each cell (Dirichlet prior)."""
    tables = Tables(noisy.structure, np.asarray(noisy.tables.values, dtype=np.float64))
    if agree:
        tables = consistent(tables, noisy.variances)
    counts = {family[0]: np.maximum(tables[family], 0) for family in dag.families}
    posterior = cpds_of({name: count + 1 for name, count in counts.items()})[0]
    return Learned(tables=cpds_of(counts)[0], for_kl=posterior)


def seconds(network: Network, method: str, epsilon: str, count: int, seed: int) -> dict[str, Any]:
    """CPU seconds of a whole run, and of the learning alone, from the release in hand; and the error."""
    chosen = METHODS[method]
    if chosen is None or chosen.learner is None:
        raise ValueError(f"{method} has no learner to time")
    records, structure = network.records(count, seed), network.dag.structure()
    budget = chosen.budget(epsilon, Fraction(1, count))
    start = time.process_time()
    done = fit(records, structure, budget, chosen.noise, chosen.learner, terms=TERMS, randomness=SeededRandomness(seed))
    whole = time.process_time() - start
    alone = cpu_seconds(
        lambda: learn(done.releases, chosen.learner or {}, structure=structure), runs=3 if whole < 3 else 1
    )
    found = {"whole": round(whole, 3), "learning": round(alone, 4), "nodes": len(network.dag.domain)}
    return found | {"kl": network.divergence(cpds(done.model, network.dag)), "converged": done.converged}


# --------------------------------------------------------------------------------------------------
# What `benchmarks.papers.chowdhury` runs on the Adult table: learners of two given graphs, and private selection.

DELTA = "1e-9"
#: Of a cell: what stands for its epsilon and its promise.
NO_NOISE = "inf none"
GRAPHS = {"sensible": sensible, "wrong": wrong}


@frozen
class PeopleMethod:
    """graph: of `GRAPHS`; None: `select` chooses. learner: None is the baseline, each family's counts by themselves.
    undirected: the graph's largest families as cliques, and the model as it comes out. exact: tables without noise,
    NOT PRIVATE."""

    graph: str | None = None
    learner: Mapping[str, Any] | str | None = None
    undirected: bool = False
    select: str = ""
    exact: bool = False


PEOPLE = {
    f"{name} on {graph} graph": method
    for graph in GRAPHS
    for name, method in {
        "baseline": PeopleMethod(graph),
        "bayes-net local": PeopleMethod(graph, {"name": "bayes-net", "learner": "local"}),
        "bayes-net": PeopleMethod(graph, "bayes-net"),
        "undirected": PeopleMethod(graph, "eb-map", undirected=True),
    }.items()
} | {"mst": PeopleMethod(learner="eb-map", select="mst"), "auto": PeopleMethod(learner="eb-map", select="auto")}
REFERENCES = {f"exact tables on {graph} graph": PeopleMethod(graph, exact=True) for graph in GRAPHS}


def of_people(name: str, folder: Path, epsilon: str, promise: str, seed: int) -> dict[str, Any]:
    """`error2`: mean total variation distance over all pairs to the training records; `loglik`: nats per held-out one.

    promise: "pure", "delta" for (epsilon, 1e-9), or "none" for the references.
    """
    census, method = load(folder, "adult"), (PEOPLE | REFERENCES)[name]
    start = time.process_time()
    if method.exact:
        model = _exact(GRAPHS[method.graph or ""](census.domain), census.training)
    else:
        budget = Budget.pure(epsilon) if promise == "pure" else Budget.approx(epsilon, DELTA)
        model = _model(method, census.domain, census.training, budget, seed)
    spent = time.process_time() - start
    table = Coded(domain=census.domain, codes=census.training)
    errors = off(table, model.marginals_of, (2,))
    return errors | {
        "loglik": likelihood(model, census.heldout),
        "seconds": round(spent, 3),
        "cells": model.structure.cells,
    }


def _exact(dag: Dag, records: IntArray) -> Model:
    """The shares of the records themselves, rows that nobody is in uniform."""
    return Model.from_cpds(dag, cpds_of(family_counts(dag, records))[0])


def likelihood(model: Model, records: IntArray) -> float:
    """Mean of log((1 - 1e-4) p(x) + 1e-4 / states) over records: a selection's model may rule a rare code out."""
    whole, names = model.expanded(), model.domain.names
    logs = np.full(len(records), -model.log_partition)
    for clique in whole.structure.cliques:
        logs += whole[clique][tuple(records[:, names.index(name)] for name in clique)]
    uniform = -float(np.log(list(model.domain.sizes.values())).sum())
    return float(np.logaddexp(np.log1p(-SMOOTHING) + logs, np.log(SMOOTHING) + uniform).mean())


def _model(method: PeopleMethod, domain: Domain, records: Array, budget: Budget, seed: int) -> Model:
    noise = "laplace" if budget.kind == "pure" else "gaussian"
    drawn = SeededRandomness(seed)
    if method.graph is None:
        workload = Workload.all(domain, order=2)
        learner = method.learner or ""
        return fit(
            records, method.select, budget, learner=learner, workload=workload, terms=TERMS, randomness=drawn
        ).model
    dag: Dag = GRAPHS[method.graph](domain)
    if method.learner is None:
        noisy = release(records, dag.structure(), budget, noise, terms=TERMS, randomness=drawn)
        return Model.from_cpds(dag, by_counts(noisy, dag, agree=False).for_kl)
    structure = Structure(domain, dag.maximal) if method.undirected else dag.structure()
    split = "optimal" if method.undirected else "even"  # the learner of networks asks for its own
    return fit(records, structure, budget, noise, method.learner, terms=TERMS, randomness=drawn, split=split).model


# --------------------------------------------------------------------------------------------------
# The tables of `benchmarks.papers.chowdhury`: errors over the baseline's, budgets of equal error, real records.

ERRORS = {"kl": "KL", "l1": "L1 of conditional tables"}

Values = Mapping[int, float]  # trial -> error


def networks_alone(lines: Sequence[Line]) -> list[Line]:
    """Return the runs on networks whose truth is known."""
    return [line for line in lines if line["cell"].split()[0] not in ("adult", "time")]


def tables(lines: Sequence[Line]) -> str:
    """All of them, in the order of the page that shows them."""
    runs = networks_alone(lines)
    parts: list[str] = []
    if runs:
        others = [epsilon for epsilon in epsilons_of(runs) if epsilon != "1"]
        parts += [
            _ratios(runs, "kl", "1", "kl"),
            _budgets(runs),
            _ratios(runs, "l1", "1"),
            *(_ratios(runs, "kl", epsilon) for epsilon in others),
            _queries(runs),
        ]
    return "\n".join(part for part in [*parts, _times(lines), _people(lines)] if part)


def over_baseline(ours: Values, theirs: Values) -> tuple[float, float, int]:
    """The ratio of mean errors over the trials that both have, its standard error (jackknife), and how many trials."""
    both = sorted(set(ours) & set(theirs))
    if not both:
        return float("nan"), float("nan"), 0
    mine, other = np.array([ours[trial] for trial in both]), np.array([theirs[trial] for trial in both])
    count = len(both)
    if not other.sum():  # most probable records may all be right
        return float("nan"), float("nan"), count
    ratio, rest = float(mine.sum() / other.sum()), other.sum() - other
    if count == 1 or not rest.all():
        return ratio, float("nan"), count
    without = (mine.sum() - mine) / rest
    return ratio, float(np.sqrt((count - 1) * np.var(without))), count


def budget_ratio(ours: Mapping[float, float], theirs: Mapping[float, float], epsilon: float) -> str:
    """`ratio_of_budgets` as a table has it.

    >>> budget_ratio({0.25: 4.0, 1: 1.0}, {1.0: 2.0}, 1)
    '2.0'
    """
    ratio = ratio_of_budgets(ours, theirs, epsilon)
    if ratio is not None:
        return f"{ratio:.1f}"
    if epsilon not in theirs or not ours:
        return "-"
    least, most = min(ours), max(ours)
    if ours[least] <= theirs[epsilon]:
        return f">{epsilon / least:.1f}"
    return "<1" if most >= epsilon else "-"


def ratio_of_budgets(ours: Mapping[float, float], theirs: Mapping[float, float], epsilon: float) -> float | None:
    """What the baseline spends, epsilon, over what ours needs for the baseline's error there; None where that is not
    between two that were run.

    ours, theirs: epsilon -> error. Between two epsilons both are taken as powers.
    """
    wanted = theirs.get(epsilon)
    at = sorted(ours)
    if wanted is None or not at or ours[at[0]] <= wanted:
        return None
    for low, high in itertools.pairwise(at):
        if ours[low] > wanted >= ours[high]:
            along = np.log(ours[low] / wanted) / np.log(ours[low] / ours[high])
            return float(epsilon / np.exp(np.log(low) + along * np.log(high / low)))
    return None


def _ratios(runs: Sequence[Line], error: str, epsilon: str, name: str = "") -> str:
    """Methods x networks, with standard errors; the baseline's own error."""
    rows, names = [], networks_of(runs)
    for method in METHODS:
        row = [method]
        for network in names:
            theirs = values_of(runs, f"{network} {epsilon}", BASELINE, error)
            ours = values_of(runs, f"{network} {'1' if method == EXACT else epsilon}", method, error)
            if method == BASELINE and theirs:
                row.append(f"= {np.mean(list(theirs.values())):.3g}")
            else:
                row.append(_ratio(*over_baseline(ours, theirs)))
        if any(value != "-" for value in row[1:]):
            rows.append(row)
    title = f"{ERRORS[error]} over the baseline's, epsilon = {epsilon}"
    return section(title, ["method", *names], [*rows, ["draws", *_draws(runs, names, epsilon)]], name)


def _ratio(ratio: float, spread: float, count: int) -> str:
    if not count:
        return "-"
    return f"{ratio:.2f}" if count == 1 else f"{ratio:.2f} ({spread:.2f})"


def _draws(runs: Sequence[Line], names: Sequence[str], epsilon: str) -> list[str]:
    """The fewest and the most that a method had."""
    found = []
    for name in names:
        counts = [len(values_of(runs, f"{name} {epsilon}", method, "kl")) for method in METHODS]
        there = sorted(count for count in counts if count) or [0]
        found.append(str(there[0]) if there[0] == there[-1] else f"{there[0]} to {there[-1]}")
    return found


def _budgets(runs: Sequence[Line]) -> str:
    """Methods x networks, "at the baseline's epsilon = 1 / at 3"."""
    rows = []
    for method, error in itertools.product(METHODS, ERRORS):
        row = []
        for name in networks_of(runs):
            ours, theirs = paired_curves(runs, name, method, error)
            row.append(" / ".join(budget_ratio(ours, theirs, epsilon) for epsilon in (1.0, 3.0)))
        if method not in (EXACT, BASELINE) and any(value != "- / -" for value in row):
            rows.append([method, ERRORS[error], *row])
    said = (
        "The baseline's epsilon over the one with which a method has the same mean error, where the baseline spends 1 "
        '/ 3; by interpolation on logarithms. "<1": more error than the baseline at every epsilon tried; ">": less at '
        "the smallest one.\n"
    )
    title = "The paper's headline: budget of equal error"
    return section(title, ["method", "error", *networks_of(runs)], rows, "budget", said)


def paired_curves(runs: Sequence[Line], name: str, method: str, error: str) -> tuple[dict[float, float], ...]:
    """epsilon -> mean error, of the method and of the baseline, over the trials that both have at that epsilon."""
    curves: tuple[dict[float, float], ...] = ({}, {})
    for epsilon in epsilons_of(runs):
        both = [values_of(runs, f"{name} {epsilon}", one, error) for one in (method, BASELINE)]
        trials = set(both[0]) & set(both[1])
        if trials:
            for curve, values in zip(curves, both, strict=True):
                curve[float(epsilon)] = float(np.mean([values[trial] for trial in trials]))
    return curves


def _queries(runs: Sequence[Line]) -> str:
    """Means, not ratios."""
    rows, errors = [], ("alone", "asked", "map")
    for method in METHODS:
        found = [
            [list(values_of(runs, f"{name} 1", method, error).values()) for error in errors]
            for name in networks_of(runs)
        ]
        if any(values for pair in found for values in pair):
            rows.append(
                [method, *(" / ".join(f"{np.mean(one):.4f}" if one else "-" for one in pair) for pair in found)]
            )
    said = (
        "Mean L1 of single attributes' marginals / of P(target | two others), to the truth / nats by which the learned "
        "most probable record, given two attributes, is less likely than the true one.\n"
    )
    return section("Queries, epsilon = 1", ["method", *networks_of(runs)], rows, "queries", said)


def _times(lines: Sequence[Line]) -> str:
    """CPU seconds on one thread."""
    rows = [
        [line["cell"].split()[1], str(line["nodes"]), line["method"], f"{line['whole']:.2f}", f"{line['learning']:.3f}"]
        for line in beginning(lines, "time")
    ]
    head = ["network", "nodes", "method", "fit, with counting and noise", "learning alone"]
    return section("CPU seconds, one thread", head, rows)


def _people(lines: Sequence[Line]) -> str:
    """Real records: both errors, means over the seeds with standard errors."""
    by_cell = grouped(beginning(lines, "adult"), "cell")
    rows = []
    for _, epsilon, kind in sorted(map(str.split, by_cell), key=lambda cell: (cell[2] != "pure", float(cell[1]))):
        for method in (*PEOPLE, *REFERENCES):
            if some := having(by_cell[f"adult {epsilon} {kind}"], method=method):
                said = {"pure": epsilon, "delta": f"({epsilon}, {DELTA})", "none": "no noise"}[kind]
                errors = [mean_and_error([line[key] for line in some]) for key in ("error2", "loglik")]
                spent = f"{np.mean([line['seconds'] for line in some]):.1f}"
                rows.append([said, method, *errors, spent, str(len(some))])
    head = ["budget", "method", "pairs, total variation", "log-likelihood, held out", "CPU s", "seeds"]
    return section("Adult: real records", head, rows, "adult")


def values_of(runs: Sequence[Line], cell: str, method: str, error: str) -> Values:
    """Trial -> error, of the runs that have it."""
    return {line["trial"]: line[error] for line in having(runs, cell=cell, method=method) if error in line}


def networks_of(runs: Sequence[Line]) -> list[str]:
    """Return the networks, in the order of the lines."""
    return list(dict.fromkeys(line["cell"].split()[0] for line in runs))


def epsilons_of(runs: Sequence[Line]) -> list[str]:
    """Return the epsilons, rising."""
    return sorted({line["cell"].split()[1] for line in runs}, key=float)

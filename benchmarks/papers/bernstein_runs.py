"""Runs of the study of Bernstein et al. (2017): one function for each kind of cell, plain values out.

A cell is called by its figure, "2 chain3 k=5 N=10000 eps=0.5". Add-remove neighbours and public N, as the paper has it;
KL(true || learned) in nats; seconds are CPU seconds of one fit on one thread. An "oracle" was tuned by the truth.
"""

from __future__ import annotations

import math
import time
from argparse import Namespace
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from attrs import evolve
from dpgm_naive_mle.projection import project_to_simplex, targets
from scipy.special import gammaln, xlogy

import dpgm_core.curator.live
from benchmarks.cases import mobility
from benchmarks.harness.output import facts_of
from benchmarks.harness.runs import Task
from benchmarks.peers.mbi_peer import mbi_fit
from benchmarks.protocol import trials
from benchmarks.protocol.populations import (
    Population,
    curator,
    descended,
    dirichlet_potentials,
    draw_release,
    non_private_mle,
    structure_of,
)
from dpgm_core import (
    Budget,
    Contributions,
    Domain,
    FloatArray,
    InferenceError,
    LiveCurator,
    Model,
    SeededRandomness,
    Sensitivity,
    Structure,
    Tables,
    Terms,
    TooLarge,
    learn,
    make,
    release,
)
from dpgm_core._util.progress import silent
from dpgm_core.counting.table_counts import count
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.learning import Likelihood, consistent
from dpgm_core.sources import as_source

BASE = 170_000  # of the seeds; rules and constants were chosen on others

# --------------------------------------------------------------------------------------------------
# Figure 1, Propositions 3 to 5, Algorithm 1.

# penalties, weak to strong
LAMBDAS = [10.0 ** (half / 2) for half in range(-12, 1)]
TINY = LAMBDAS[0]
STEPS = 300  # at most, from one penalty to the next; only weak penalties on noisy tables would want more
HOPELESS = 30.0  # nats; the uniform model is at 3 to 8


def prediction(mu: FloatArray, records: float, cliques: int, epsilon: float) -> FloatArray:
    """Proposition 4: the mean squared error of each noisy marginal under continuous Laplace noise.

    >>> float(prediction(np.array([0.03]), 1000, 9, 0.5)[0].round(7))
    0.0006771
    """
    return mu * (1 - mu) / records + 2 * cliques**2 / (records * epsilon) ** 2


def chain_counts(population: Population, records: int, seed: int) -> np.ndarray:
    """Tables of so many records of a first-order chain, (cells,), drawn without drawing records: exact for any N.

    The law of the counts is multinomial in the first table and, given it, multinomial along the chain.
    """
    rng = np.random.default_rng(seed)
    tables = Tables(population.structure, population.marginals).arrays()
    first = rng.multinomial(records, tables[0].ravel() / tables[0].sum()).reshape(tables[0].shape)
    found = [first]
    for table in tables[1:]:
        arriving = found[-1].sum(axis=0)
        found.append(np.array([rng.multinomial(n, row / row.sum()) for n, row in zip(arriving, table, strict=True)]))
    return np.concatenate([table.ravel() for table in found])


def noisy_error(epsilon: float, records: int, trial: int, size: int = 10) -> dict[str, float]:
    """(a): mean over cells of (y/N - mu)^2 and of its two parts, beside the prediction."""
    population = Population.draw(structure_of("chain1", size), trial)
    structure, mu = population.structure, population.marginals
    seed, for_noise = np.random.SeedSequence([trial, records, round(1e6 * epsilon)]).generate_state(2)
    counts = chain_counts(population, records, int(seed))
    noise = make("mechanism", "laplace").noise(Sensitivity.of(structure, "add-remove"), Budget.pure(epsilon))
    drawn = noise.draw((structure.cells,), SeededRandomness(int(for_noise)))
    cliques = len(structure.cliques)
    return {
        "mse": float(np.mean(((counts + drawn) / records - mu) ** 2)),
        "sampling": float(np.mean((counts / records - mu) ** 2)),
        "noise": float(np.mean((drawn / records) ** 2)),
        "predicted": float(prediction(mu, records, cliques, epsilon).mean()),
        "predicted_sampling": float((mu * (1 - mu)).mean() / records),
    }


def projection(records: int, trial: int, method: str, size: int = 20) -> dict[str, Any]:
    """(b): KL along the penalty, or at the learner's own choice; mean squared error of the tables it fits."""
    population = Population.draw(structure_of("er", size), trial)
    noisy = draw_release(population, records, 0.5, trial)
    project = method.startswith("projected")
    if method.endswith("own"):
        fit = learn(noisy, make("learner", "naive-mle", project=project), randomness=SeededRandomness(trial))
        return {"kl_own": population.kl(fit.model.potentials.values), "l2": fit.certificate["l2"]}
    fitted = targets(noisy, project=project)
    return {
        "kl": path(population, fitted),
        "mse": float(np.mean((fitted.values - population.marginals) ** 2)),
        "mse_noisy": float(np.mean((noisy.tables.values / records - population.marginals) ** 2)),
    }


def penalty(records: int, trial: int, statistics: str, size: int = 10) -> dict[str, Any]:
    """(c): KL along the penalty, fitted to the true or to the noisy tables."""
    population = Population.draw(structure_of("chain1", size), trial)
    if statistics == "noisy":
        return {"kl": path(population, targets(draw_release(population, records, 0.1, trial), project=True))}
    counts = count(as_source(population.records(records, trial)), population.structure).tables
    return {"kl": path(population, counts / float(records))}


def path(population: Population, target: Tables) -> list[float]:
    """KL of the penalised maximum-likelihood fit at each of LAMBDAS, found from the strongest on.

    Once it is above HOPELESS no weaker penalty is tried: the numbers for those say "at least".
    """
    problem = Likelihood(population.engine, target, silent)
    theta, kls = np.zeros(target.structure.cells), []
    for l2 in reversed(LAMBDAS):
        if not kls or kls[-1] < HOPELESS:
            theta, _ = problem.minimise(theta, l2, 1e-6, STEPS)
        kls.append(population.kl(theta))
    return kls[::-1]


def learned(epsilon: float, records: int, trial: int, size: int) -> dict[str, float]:
    """Figure 1a as its caption says, and the other half of Proposition 4: naive MLE, and the MLE of the true tables.

    Mean over cells of the squared error of noisy and of learned marginals, and both KLs. Both fits have the same tiny
    penalty, 1e-6 or .1/N, whichever is less: its bias is far below the standard error of a cell at any N.
    """
    population = Population.draw(structure_of("chain1", size), trial)
    structure, mu = population.structure, population.marginals
    seed, for_noise = np.random.SeedSequence([trial, records, round(1e6 * epsilon)]).generate_state(2)
    counts = chain_counts(population, records, int(seed))
    noise = make("mechanism", "laplace").noise(Sensitivity.of(structure, "add-remove"), Budget.pure(epsilon))
    noisy = (counts + noise.draw((structure.cells,), SeededRandomness(int(for_noise)))) / records
    projected = [project_to_simplex(table) for table in Tables(structure, noisy).arrays()]
    wanted = consistent(Tables(structure, np.concatenate([table.ravel() for table in projected])))
    fits = [
        Likelihood(population.engine, target, silent).minimise(
            np.zeros(structure.cells), min(1e-6, 0.1 / records), 1e-7, STEPS
        )[0]
        for target in (wanted, Tables(structure, counts / records))
    ]
    inferred = population.engine.infer(Tables(structure, fits[0])).marginals.values
    return {
        "mse": float(np.mean((noisy - mu) ** 2)),
        "mse_learned": float(np.mean((inferred - mu) ** 2)),
        "kl": population.kl(fits[0]),
        "kl_true": population.kl(fits[1]),
    }


def sensitivity(facts: Mapping[str, str], trial: int) -> dict[str, float]:
    """Proposition 3: by how much one more record changes the tables, least and most of 200 pairs; and for mobility."""
    structure = structure_of("chain3", int(facts["k"]))
    codes = np.random.default_rng(trial).integers(int(facts["k"]), size=(200, len(structure.domain.names)))
    tables = [count(as_source(codes[:number]), structure).tables.values for number in range(1, 201)]
    moved = [float(np.abs(after - before).sum()) for before, after in pairwise(tables)]
    days = mobility.load(None, 5, 2)
    chain, tied = (mobility.structure_of(days, "pairs", each) for each in (False, True))
    each_row = Sensitivity.of(chain, "add-remove", rows_per_person=days.rows)
    shares = Contributions(per="clique", empty=days.empty)
    return {
        "cliques": len(structure.cliques),
        "least": min(moved),
        "most": max(moved),
        "mobility_cliques": len(chain.cliques),
        "mobility_plain": float(each_row.l1),
        "mobility_normalised": float(shares.sensitivity(tied, "add-remove").l1) / shares.grid,
    }


def stirling(facts: Mapping[str, str], trial: int) -> dict[str, float]:
    """Proposition 5: log h(n) of the tables of N records, and N H(q_n); a first-order chain, exact counts."""
    records = int(facts["N"])
    population = Population.draw(structure_of("chain1", int(facts["k"])), trial)
    tables = Tables(population.structure, chain_counts(population, records, trial)).arrays()
    separators = [table.sum(axis=1) for table in tables[1:]]

    def logs(counts: list[np.ndarray]) -> float:
        return math.fsum(gammaln(np.concatenate([each.ravel() for each in counts]) + 1))

    def entropies(counts: list[np.ndarray]) -> float:
        shares = np.concatenate([each.ravel() for each in counts]) / records
        return -math.fsum(xlogy(shares, shares))

    exact = float(gammaln(records + 1)) + logs(separators) - logs(tables)
    return {"log_h": exact, "entropy": records * (entropies(tables) - entropies(separators))}


def mode(facts: Mapping[str, str], trial: int) -> dict[str, float]:
    """How far the mode of the hidden table is from its mean, |mode - mean|_1 / N: one table of three cells, all tables.

    The model is the truth, its noise continuous Laplace noise of scale 1/epsilon.
    """
    records, epsilon = int(facts["N"]), float(facts["eps"])
    rng = np.random.default_rng(trial)
    mu = rng.dirichlet(np.ones(3))
    first, second = (each.ravel() for each in np.meshgrid(range(records + 1), range(records + 1)))
    kept = first + second <= records
    tables = np.stack([first[kept], second[kept], records - (first + second)[kept]], axis=1)
    prior = tables @ np.log(mu) - gammaln(tables + 1).sum(axis=1)
    distances = []
    for counts in rng.multinomial(records, mu, size=40):
        noisy = counts + rng.laplace(scale=1 / epsilon, size=3)
        log = prior - epsilon * np.abs(tables - noisy).sum(axis=1)
        weights = np.exp(log - log.max())
        mean = weights @ tables / weights.sum()
        distances.append(np.abs(tables[log.argmax()] - mean).sum() / records)
    return {"distance": float(np.mean(distances))}


def algorithm(facts: Mapping[str, str], trial: int) -> dict[str, float]:
    """Algorithm 1 after 500 inference calls, |n - n*|_1 / N: as printed at two constant steps, and as it converges.

    n* solves problem (6) to a relative gap of 1e-8; the evidence is that of ten merged EM steps.
    """
    population = Population.draw(structure_of("chain1", int(facts["k"])), trial)
    noisy = draw_release(population, int(facts["N"]), float(facts["eps"]), trial)
    printed = {"name": "nlbp", "damp": "marginals", "schedule": "constant", "tolerance": 1e-12}
    solvers: dict[str, dict[str, Any]] = {
        "exact": {"name": "collective-dual", "tolerance": 1e-8, "share": 1e-12},
        "constant .5": printed | {"rate": 0.5},
        "constant .1": printed | {"rate": 0.1},
        "2/(t+2)": printed | {"schedule": "diminishing"},
        "multipliers": {"name": "nlbp", "tolerance": 1e-12},
    }
    nowhere = Tables.zeros(population.structure)
    tables = {
        name: make("collective", options).compile(population.engine, noisy).infer(nowhere, evidence_weight=10.0)
        for name, options in solvers.items()
    }
    best = tables.pop("exact").marginals.values
    records = float(facts["N"])
    return {name: float(np.abs(one.marginals.values - best).sum() / records) for name, one in tables.items()}


# --------------------------------------------------------------------------------------------------
# Figure 2: one data set, its learners, references and DP-SGD.

GRAPHS = {"chain3": "third-order chain", "er": "Erdős-Rényi, 18 edges"}
RATES = (0.1, 0.3, 1.0)  # learning rates of DP-SGD


def plans(records: int) -> tuple[tuple[float, float], tuple[float, float]]:
    """(sampling rate, epochs) of DP-SGD; a pass over a million records takes ten seconds or more."""
    return ((0.01, 5.0), (0.1, 5.0)) if records <= 2 * 10**5 else ((0.001, 1.0), (0.01, 1.0))


def data_set(task: Task) -> trials.DataSet:
    """Draws 0 to 4 are five populations, draws 5 to 9 the same five with other records and other noise, and so on."""
    facts = facts_of(task.cell)
    cell = trials.Cell(
        truth="dirichlet",
        graph=task.cell.split()[1],
        size=int(facts["k"]),
        records=int(facts["N"]),
        epsilon=float(facts["eps"]),
        noise="laplace",
    )
    return trials.data_set(cell.name, task.trial)


#: The methods of figure 2 by the words of its store; each gives one curve or two.
FIGURE_2 = {
    "learners": ("naive-tiny", "naive-auto", "naive-path", "em-auto", "em-path", "eb-map"),
    "references": ("uniform", "random", "non-private"),
    "mbi": ("mbi",),
}


def figure_2(task: Task) -> trials.Results:
    """One group of methods on one data set. "gaussian eb-map": one Gaussian release at the (epsilon, 1/N) of DP-SGD."""
    data = data_set(task)
    if task.method == "psgd":
        return psgd(
            lambda: curator(data.codes, data.population, data.epsilon, data.seed),
            lambda one, source: descended(data.population, one, source, data.seed),
            len(data.codes),
        )
    found: trials.Results = {}
    for method in FIGURE_2[task.method]:
        found |= trials.METHODS[method].function(data)
    if task.method == "learners":
        gaussian = curator(data.codes, data.population, data.epsilon, data.seed).release()
        found |= trials.learner(evolve(data, release=gaussian), label="gaussian eb-map", name="eb-map")
    return found


def psgd(opened: Callable[[], LiveCurator], score: Callable[[Any, LiveCurator], float], records: int) -> trials.Results:
    """DP-SGD with per-example clipping to sqrt(|C|) and momentum .9: the best of its grid, and the untuned point of it.

    The grid has two `plans` and three `RATES`. Untuned is the second plan at the learner's default rate of 1. opened: a
    fresh curator. score: what a learner reaches on it; infinite is a run that diverged, and left out where not all did.
    """
    # the same rounds are opened for each learning rate: calibrate them once
    dpgm_core.curator.live.round_noise = _round_noise
    grid = {}
    for rate, epochs in plans(records):
        for step in RATES:
            one = make(
                "learner", "psgd", mode="clip", sampling_rate=rate, epochs=epochs, learning_rate=step, momentum=0.9
            )
            source = opened()
            before = time.process_time()
            reached = score(one, source)
            spent = time.process_time() - before
            grid[rate, step] = {"kl": reached, "seconds": spent, "learning_rate": step, "sampling_rate": rate}
    untuned = grid[plans(records)[1][0], RATES[-1]]
    return {
        "psgd oracle": min((one for one in grid.values() if math.isfinite(one["kl"])), key=lambda one: one["kl"]),
        "psgd untuned": untuned if math.isfinite(untuned["kl"]) else untuned | {"kl": 1e3},
    }


_round_noise = cache(dpgm_core.privacy.rounds.round_noise)


# --------------------------------------------------------------------------------------------------
# Figure 3a: true against inferred edge marginals; and the same where no junction tree fits.

POINTS = 300  # of the cells, drawn once, in the scatter plots
TINY_PENALTY = {"name": "naive-mle", "l2": TINY, "max_iterations": STEPS}
LEARNERS: dict[str, Any] = {"naive tiny": TINY_PENALTY, "naive": "naive-mle", "cgm-em": "cgm-em", "eb-map": "eb-map"}
# An engine that cannot sample cannot simulate releases: rules without a bootstrap.
RULES: dict[str, Any] = {
    "naive tiny": TINY_PENALTY,
    "naive": {"name": "naive-mle", "l2": "discrepancy"},
    "cgm-em": {"name": "cgm-em", "stop": "plateau"},
    "eb-map": "eb-map",
}


def agreement(true: FloatArray, inferred: FloatArray, edges: int) -> dict[str, float]:
    """Correlation over all cells, the mean L1 distance of an edge's table, and the correlation of logarithms.

    The last leaves out cells that are not above 0, which only noisy tables have; "positive" is the share of the others.

    >>> agreement(np.array([0.2, 0.8]), np.array([0.3, 0.7]), 1)["l1"].__round__(9)
    0.2
    """
    above = inferred > 0
    return {
        "correlation": float(np.corrcoef(true, inferred)[0, 1]),
        "log_correlation": float(np.corrcoef(np.log(true[above]), np.log(inferred[above]))[0, 1]),
        "l1": float(np.abs(true - inferred).sum() / edges),
        "positive": float(above.mean()),
    }


def figure_3a(task: Task) -> dict[str, Any]:
    """Tables inferred from one release of an Erdos-Renyi graph with k = 20, each beside the true ones."""
    facts, seed = facts_of(task.cell), task.trial
    population = Population.draw(structure_of("er", int(facts["k"])), seed)
    structure, records, epsilon = population.structure, int(facts["N"]), float(facts["eps"])
    codes = population.records(records, seed)
    found: dict[str, Any] = {}

    def add(label: str, inferred: FloatArray, **more: float) -> None:
        found[label] = agreement(population.marginals, inferred, len(structure.cliques)) | more
        if seed == BASE and records <= 10**5:
            cells = np.random.default_rng(0).choice(len(inferred), min(POINTS, len(inferred)), replace=False)
            pairs = zip(population.marginals[cells], inferred[cells], strict=True)
            found[label]["points"] = [[float(f"{value:.2g}") for value in pair] for pair in pairs]

    def fitted(label: str, theta: FloatArray, seconds: float = 0.0) -> None:
        inferred = population.engine.infer(Tables(structure, theta)).marginals.values
        add(label, inferred, kl=population.kl(theta), seconds=seconds)

    if task.method == "references":
        fitted("non-private", non_private_mle(population.engine, count(as_source(codes), structure).tables, l2=1e-7))
        return found
    if task.method == "psgd":
        reached: list[tuple[float, FloatArray]] = []

        def score(one: Any, source: LiveCurator) -> float:
            try:
                fit = one.learn(source, JunctionTree(), randomness=SeededRandomness(seed), progress=silent)
            except InferenceError:
                return math.inf
            reached.append((population.kl(fit.model.potentials.values), fit.model.potentials.values))
            return reached[-1][0]

        best = psgd(lambda: curator(codes, population, epsilon, seed), score, records)["psgd oracle"]
        fitted("psgd oracle", min(reached, key=lambda each: each[0])[1], best["seconds"])
        return found
    noisy = draw_release(population, records, epsilon, seed)
    if task.method == "mbi":
        fit = mbi_fit(noisy, oracle="fast")  # mbi's own choice needs minutes here and gives the same potentials
        fitted("mbi", fit.potentials, fit.seconds)
        return found
    wanted = {name: one for name, one in LEARNERS.items() if (name == "eb-map") == (task.method == "eb-map")}
    if task.method == "learners":
        add("noisy tables", noisy.tables.values / records)
    for label, options in wanted.items():
        before = time.process_time()
        model = learn(noisy, make("learner", options), randomness=SeededRandomness(seed)).model
        fitted(label, model.potentials.values, time.process_time() - before)
    return found


def loopy(task: Task) -> dict[str, Any]:
    """A grid, measured on all its edges, with loopy belief propagation as inner engine.

    The truth is a chain that winds through the grid, so that the true marginals of all edges are exact all the same.
    """
    facts, seed = facts_of(task.cell), task.trial
    side, records = int(facts["side"]), int(facts["N"])
    domain = Domain.from_sizes({f"x{place}": int(facts["k"]) for place in range(side**2)})
    names = np.array(domain.names).reshape(side, side)
    winding = [name for row, line in enumerate(names) for name in (line if row % 2 == 0 else line[::-1])]
    chain = Structure(domain, [tuple(sorted(pair, key=domain.names.index)) for pair in pairwise(winding)])
    structure = Structure.grid(domain, side, side)
    potentials = dirichlet_potentials(chain, np.random.default_rng(seed))
    truth = Model(chain, potentials)
    true = Tables.from_arrays(structure, truth.marginals_of(structure.cliques)).values
    codes = np.stack(truth.engine.sample(potentials, records, np.random.default_rng(seed + 1)), axis=1)
    terms, randomness = Terms(neighbours="add-remove", total="public"), SeededRandomness(seed)
    noisy = release(codes, structure, Budget.pure(float(facts["eps"])), "laplace", terms=terms, randomness=randomness)
    inference = make("inference", "loopy-bp", tolerance=1e-6)
    found = {"noisy tables": agreement(true, noisy.tables.values / records, len(structure.cliques))}
    for label, options in RULES.items():
        before = time.process_time()
        model = learn(noisy, make("learner", options), inference, randomness=SeededRandomness(seed)).model
        spent = time.process_time() - before
        inferred = inference.compile(structure).infer(model.potentials).marginals.values
        found[label] = agreement(true, inferred, len(structure.cliques)) | {"seconds": spent}
    try:
        JunctionTree().compile(structure)
    except TooLarge:
        return found | {"junction tree": {"fits": 0.0}}
    return found | {"junction tree": {"fits": 1.0}}


# --------------------------------------------------------------------------------------------------
# Figure 3b: mobility.

DAYS = 124_399  # person-days of the paper: 21 days


@lru_cache(maxsize=1)
def _campus(days: int) -> tuple[mobility.Days, mobility.Days]:
    """(train, test) person-days of the made-up campus; a quarter is held out."""
    campus = mobility.load(None, -(-days // 21), 21)
    return mobility.split(evolve(campus, codes=campus.codes[:days]))


def figure_3b(task: Task) -> dict[str, Any]:
    """Held-out log-likelihood of a segment, nats; N person-days to learn from, tied chain, contributions as printed.

    DP-SGD takes no normalised contributions: its rounds count each of a day's segments as 1.
    """
    facts, seed = facts_of(task.cell), task.trial
    train, test = _campus(int(facts["of"]))
    train = evolve(train, codes=train.codes[: int(facts["N"])])

    def score(structure: Structure, theta: FloatArray) -> float:
        return mobility.scores(test, "segments", structure, theta)["segment"]

    if task.method == "references":
        structure, theta = mobility.reference(train, "segments", "tied")
        uniform = -len(test.names) * math.log(len(test.labels))
        return {"non-private": {"score": score(structure, theta)}, "uniform": {"score": uniform}}
    epsilon = float(facts["eps"])
    if task.method == "psgd":
        return _mobile_psgd(train, epsilon, seed, score)
    found = {}
    for weights, learners in {"R1": LEARNERS, "tied": {"naive": "naive-mle"}}.items():
        noisy = mobility.draw(train, "segments", weights, epsilon, seed)
        for label, options in learners.items():
            before = time.process_time()
            model = learn(noisy, make("learner", options), randomness=SeededRandomness(seed)).model
            spent = time.process_time() - before
            place = label if weights == "R1" else f"{label}, not normalised"
            found[place] = {"score": score(model.structure, model.potentials.values), "seconds": spent}
    return found


def _mobile_psgd(train: mobility.Days, epsilon: float, seed: int, score: Callable[..., float]) -> dict[str, Any]:
    structure = mobility.structure_of(train, "segments", True)
    persons = len(train.codes)

    def opened() -> LiveCurator:
        return LiveCurator(
            as_source(train.table()),
            structure,
            make("mechanism", "gaussian"),
            terms=Terms(
                neighbours="add-remove",
                unit="one person-day",
                person="person_day",
                rows_per_person=train.rows,
                total=float(persons * train.rows),
            ),
            budget=Budget.approx(epsilon, 1 / persons),
            randomness=SeededRandomness(seed),
        )

    def loss(one: Any, source: LiveCurator) -> float:
        try:
            fit = one.learn(source, JunctionTree(), randomness=SeededRandomness(seed), progress=silent)
        except InferenceError:
            return math.inf
        return -score(structure, fit.model.potentials.values)

    found = psgd(opened, loss, persons * train.rows)
    return {label: {"score": -one["kl"], "seconds": one["seconds"]} for label, one in found.items()}


# --------------------------------------------------------------------------------------------------
# One run of the study.


def work(task: Task, asked: Namespace) -> dict[str, Any]:
    """One run; numbers of results with no more digits than mean something."""
    figure, facts = task.cell.split()[0], facts_of(task.cell)
    if figure in ("2", "3a", "3b", "loopy"):
        kinds = {"2": figure_2, "3a": figure_3a, "3b": figure_3b, "loopy": loopy}
        return {"results": {label: _short(numbers) for label, numbers in kinds[figure](task).items()}}
    if figure == "theory":
        theories = {"sensitivity": sensitivity, "stirling": stirling, "mode": mode, "algorithm": algorithm}
        return theories[task.cell.split()[1]](facts, task.trial)
    records, size = int(facts["N"]), int(facts["k"])
    if figure == "1a":
        call = learned if task.method == "learned" else noisy_error
        return call(float(facts["eps"]), records, task.trial, size)
    if figure == "1b":
        return projection(records, task.trial, task.method, size)
    return penalty(records, task.trial, task.method, size)


def _short(numbers: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value if name == "points" else float(f"{value:.{3 if name == 'seconds' else 5}g}")
        for name, value in numbers.items()
    }

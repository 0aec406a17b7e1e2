"""Figure 1 of Bernstein et al. (2017): what noise does to marginals, what projection and the penalty do to naive MLE.

    python -m benchmarks.fig1 [--smoke|--full|--report] [--jobs 2]

(a) mean squared error of the noisy marginals y/N against N, first-order chain T=10 k=10, with Proposition 4's
    prediction mu(1-mu)/N + 2|C|^2/(N eps)^2 and both of its slopes;
(b) naive MLE with and without projection to the simplex, connected Erdos-Renyi graph T=10 k=20, eps=.5;
(c) naive MLE against its penalty lambda, with true and with noisy statistics, chain T=10 k=10, eps=.1.

Add-remove neighbours and public N, as the paper has it; a trial is a population with its own records and noise. What
we have of the paper does not say eps in (a) nor N in (c): several are shown.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from dpgm_naive_mle.projection import targets

from benchmarks.harness.main import Study, main
from benchmarks.harness.output import beginning, facts_of, grouped, having, pyplot, save, section
from benchmarks.harness.runs import Line, Task
from benchmarks.protocol.populations import Population, draw_release, structure_of
from dpgm.study import Estimate
from dpgm_core import Budget, FloatArray, SeededRandomness, Sensitivity, Tables, learn, make
from dpgm_core._util.progress import silent
from dpgm_core.counting.table_counts import count
from dpgm_core.learning import Likelihood
from dpgm_core.sources import as_source

# penalties, weak to strong
LAMBDAS = [10.0 ** (half / 2) for half in range(-12, 1)]
TINY = LAMBDAS[0]
STEPS = 300  # at most, from one penalty to the next; only weak penalties on noisy tables would want more
HOPELESS = 30.0  # nats; the uniform model is at 3 to 8
PROJECTIONS = ["projected", "unprojected", "projected own", "unprojected own"]
METHODS = {"a": ["laplace"], "b": PROJECTIONS, "c": ["true", "noisy"]}  # by panel


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


def work(task: Task, asked: Namespace) -> dict[str, Any]:
    """One run; the cell says the panel and its numbers, "a eps=0.1 N=1000"."""
    panel, facts = task.cell[0], facts_of(task.cell)
    records, size = int(facts["N"]), int(facts["k"])
    if panel == "a":
        return noisy_error(float(facts["eps"]), records, task.trial, size)
    if panel == "b":
        return projection(records, task.trial, task.method, size)
    return penalty(records, task.trial, task.method, size)


def cells(asked: Namespace) -> dict[str, int]:
    """cell -> draws."""
    if asked.extent == "smoke":
        return {"a eps=0.5 N=1000 k=10": 2, "a eps=0.5 N=100000 k=10": 2, "b N=10000 k=5": 1, "c N=10000 k=5": 1}
    full = asked.extent == "full"
    halves = [round(10 ** (half / 2)) for half in range(6, 17)]
    return {
        **{f"a eps={eps} N={n} k=10": 25 for eps in (0.1, 0.5, 1.0) for n in halves},
        **{f"b N={n} k=20": 5 if full else 2 for n in halves[2:7]},
        **{f"c N={n} k=10": 10 if full else 5 for n in (10**4, 10**5, 10**6)},
    }


def tables(lines: Sequence[Line]) -> str:
    """The three panels in numbers."""
    rows: dict[str, list[list[str]]] = {"a": [], "b": [], "c": []}
    by_cell = grouped(lines, "cell")
    for cell in sorted(by_cell, key=lambda cell: (cell[0], float(facts_of(cell).get("eps", 0)), _records(cell))):
        panel, facts, here = cell[0], facts_of(cell), by_cell[cell]
        for method in ("laplace", "projected", "unprojected", "true", "noisy"):
            some = having(here, method=method)
            if not some:
                continue
            if panel == "a":
                ratio = Estimate.of(line["mse"] / line["predicted"] for line in some)
                means = [f"{np.mean([line[name] for line in some]):.3g}" for name in ("mse", "predicted")]
                rows[panel].append([facts["eps"], facts["N"], *means, f"{ratio.mean:.4f}", f"{ratio.error:.4f}"])
                continue
            kls = np.array([line["kl"] for line in some])
            tiny, at = _mean(kls[:, 0]), LAMBDAS[int(np.median(kls.argmin(axis=1)))]
            row = [facts["N"], method, f"{'> ' * (tiny > HOPELESS)}{min(tiny, HOPELESS):.3g}"]
            row += [f"{_mean(kls.min(axis=1)):.3g}", f"{at:.1e}"]
            if panel == "b":
                own = [line["kl_own"] for line in having(here, method=f"{method} own")]
                row += [f"{_mean(own):.3g}" if own else "-"]
                row += [f"{np.mean([line[name] for line in some]):.3g}" for name in ("mse", "mse_noisy")]
            rows[panel].append([*row, str(len(some))])
    tiny = f"KL at {TINY:.0e}"
    heads = {
        "(a) Mean squared error of noisy marginals against Proposition 4": [
            "eps", "N", "MSE", "predicted", "ratio", "standard error"
        ],
        "(b) Naive MLE with and without projection: geometric means of KL(true || learned), nats": [
            "N", "tables", tiny, "best KL", "at lambda", "KL, own lambda", "MSE fitted", "MSE y/N", "trials"
        ],
        "(c) Naive MLE against the penalty: geometric means of KL(true || learned), nats": [
            "N", "statistics", tiny, "best KL", "at lambda", "trials"
        ],
    }  # fmt: skip
    parts = [section(title, head, rows[title[1]]) for title, head in heads.items()]
    return "\n".join(["# Figure 1\n", *filter(None, parts)])


def _records(cell: str) -> float:
    return float(facts_of(cell)["N"])


def _mean(values: Any) -> float:
    return float(np.exp(np.mean(np.log(np.maximum(values, 1e-300)))))


def _curve(lines: Sequence[Line], value: Callable[[Line], float], mean: Callable[[Any], float]) -> list[list[float]]:
    """Numbers of records, and the means of a value there."""
    by_records = {_records(cell): some for cell, some in grouped(lines, "cell").items()}
    return [sorted(by_records), [mean([value(line) for line in by_records[n]]) for n in sorted(by_records)]]


def plot(lines: Sequence[Line], stem: Path) -> Path:
    """The three panels."""
    figure, (one, two, three) = pyplot().subplots(1, 3, figsize=(10, 3.9), layout="constrained")
    noisy = {}
    for line in beginning(lines, "a"):
        noisy.setdefault(float(facts_of(line["cell"])["eps"]), []).append(line)
    for color, eps in enumerate(sorted(noisy)):
        for name, style in (("mse", "o"), ("predicted", "-")):
            curve = _curve(noisy[eps], itemgetter(name), np.mean)
            one.plot(*curve, style, color=f"C{color}", label=f"eps = {eps:g}" if name == "mse" else None)
    if noisy:
        every = beginning(lines, "a")
        records = np.array(sorted({_records(line["cell"]) for line in every}))
        sampling = np.mean([line["predicted_sampling"] * _records(line["cell"]) for line in every])
        one.plot(records, sampling / records, "k:", lw=1, label="slope -1: sampling alone")
        noise = 2 * 9**2 / (records * min(noisy)) ** 2
        one.plot(records, noise, "k--", lw=1, label="slope -2: noise alone")
    one.set(xlabel="N", ylabel="mean squared error of a marginal", title="(a) chain: points measured, lines Prop. 4")
    for color, (method, style) in enumerate((("projected", "o-"), ("unprojected", "s--"))):
        if some := having(beginning(lines, "b"), method=method):
            best = _curve(some, lambda line: min(line["kl"]), _mean)
            tiny = _curve(some, lambda line: line["kl"][0], _mean)
            two.plot(*best, style, color=f"C{color}", label=f"{method}, best lambda")
            two.plot(*tiny, style, color=f"C{color}", alpha=0.5, label=f"{method}, lambda = {TINY:g}")
    two.set(xlabel="N", ylabel="KL(true || learned), nats", title="(b) random graph, k = 20, eps = .5")
    by_cell = grouped(beginning(lines, "c"), "cell")
    for color, cell in enumerate(sorted(by_cell, key=_records)):
        for method, style in (("true", "-"), ("noisy", "o--")):
            if some := [line["kl"] for line in having(by_cell[cell], method=method)]:
                label = f"N = {_records(cell):g}, {method} statistics"
                three.plot(LAMBDAS, np.exp(np.log(some).mean(axis=0)), style, color=f"C{color}", ms=4, label=label)
    three.set(xlabel="lambda", ylabel="KL(true || learned), nats", title="(c) chain, k = 10, eps = .1")
    for axes in (one, two, three):
        if axes.lines:
            axes.set(xscale="log", yscale="log")
            axes.legend(fontsize=8)
    return save(figure, stem)


STUDY = Study(
    about=__doc__,
    name="fig1",
    cells=cells,
    methods=[method for methods in METHODS.values() for method in methods],
    serves=lambda cell, draw, method: method in METHODS[cell[0]],
    work=work,
    text=tables,
    pictures=lambda lines, folder: [plot(lines, folder / "fig1")],
)

if __name__ == "__main__":
    main(STUDY)

"""The Adult census table: dpgm, mbi and a baseline at equal measured cliques and equal budget.

    DPGM_MBI_PYTHON=VENV/bin/python python -m benchmarks.adult [DIR] [--smoke|--full|--report] [--jobs 2]

DIR holds `adult/` (adult.csv of codes and adult-domain.json) and perhaps `adult_raw/` (adult.csv of labels); by default
$DPGM_SHARED/data or ../shared/data. The data are not part of the project.

A fixed tree over the attributes is measured, chosen from what the attributes mean, before any score or joint table was
seen (cases/). Laplace noise at epsilon, or Gaussian noise at (epsilon, 1e-6); add-remove neighbours, N unknown and
estimated from the noisy tables (mbi's estimator gives the same number). Every learner but the baseline gets the same
noisy tables; the baseline spends the whole budget on the one-way tables alone and takes the attributes as independent.
"mbi best stop" is mbi where it served the held-out records best, which nobody could know. A trial is a seed of the
noise; 4/5 of the records are for training.

Scores: total variation distance, averaged over all pairs and over all triples of attributes, to the training records
and to the held-out ones, and the mean log-likelihood of a held-out record in nats. All are exact, none is private.
"""

from __future__ import annotations

import itertools
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from dpgm_naive_mle.projection import project_to_simplex

from benchmarks.cases.census import TREES, Census, load, model_margins, records_margins, scores
from benchmarks.harness.main import Study, main
from benchmarks.harness.output import grouped, having, markdown, mean_and_error, pyplot, save
from benchmarks.harness.runs import Line, Task, refuse
from benchmarks.peers.mbi_peer import mbi_fit, mbi_missing, stops_until
from benchmarks.protocol.populations import non_private_mle
from dpgm_core import (
    Budget,
    FloatArray,
    Model,
    NoisyTables,
    SeededRandomness,
    Structure,
    Tables,
    learn,
    log_likelihood,
    release,
)
from dpgm_core.counting.table_counts import count
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.sources import as_source

EPSILONS, DELTA = ("0.1", "0.5", "1", "2"), "1e-6"

LEARNERS = {"naive": "naive-mle", "cgm-em": "cgm-em", "eb-map": "eb-map"}
METHODS = ["independent", *LEARNERS, "mbi", "mbi best stop"]
MOST = 20_000  # iterations of mbi among which the best stop is looked for
REFERENCES = ["exact tables", "exact one-way", "training records"]


def judged(census: Census, potentials: Tables) -> dict[str, float]:
    """All scores of a model over the tree."""
    model = Model(census.tree, potentials)
    likelihood = log_likelihood(model, census.heldout, allow_non_private=True) / len(census.heldout)
    return scores(census, model_margins(model)) | {"loglik": likelihood}


def over_tree(tree: Structure, alone: Mapping[str, FloatArray]) -> Tables:
    """Independent attributes as potentials over the tree: each one's log-probabilities in its first clique."""
    values, seen = Tables.zeros(tree).values.copy(), set()
    for number, (clique,) in enumerate(tree.groups):
        block = values[tree.slices[number]].reshape(tree.shapes[number])
        for axis, name in enumerate(clique):
            if name not in seen:
                seen.add(name)
                # below any share that could be told from nothing, so that no record is impossible
                share = np.log(np.maximum(alone[name], 1e-9))
                block += share[:, None] if axis == 0 else share
    return Tables(tree, values)


def measured(census: Census, structure: Structure, noise: str, epsilon: str, seed: int) -> NoisyTables:
    """A release of the training records' tables."""
    budget = Budget.pure(epsilon) if noise == "laplace" else Budget.approx(epsilon, DELTA)
    return release(
        census.training, structure, budget, noise, neighbours="add-remove", randomness=SeededRandomness(seed)
    )


def independent(census: Census, noise: str, epsilon: str, seed: int) -> Tables:
    """The baseline: one-way tables for the whole budget, each moved to the simplex."""
    structure = Structure(census.domain, [(name,) for name in census.domain.names])
    noisy = measured(census, structure, noise, epsilon, seed)
    shares = {name: project_to_simplex(noisy.tables[(name,)] / noisy.total) for name in census.domain.names}
    return over_tree(census.tree, shares)


def work(task: Task, asked: Namespace) -> dict[str, Any]:
    """One method on one release: cell "adult laplace 0.5", or "adult exact" for the references."""
    name, noise, *rest = task.cell.split()
    census = load(_folder(asked), name)
    if noise == "exact":
        return reference(census, task.method)
    if task.method == "independent":
        return judged(census, independent(census, noise, rest[0], task.trial))
    noisy = measured(census, census.tree, noise, rest[0], task.trial)
    if task.method.startswith("mbi"):
        return by_mbi(census, noisy, task.method)
    fit = learn(noisy, LEARNERS[task.method], randomness=SeededRandomness(task.trial))
    return judged(census, fit.model.potentials) | {"converged": fit.converged, "N": noisy.total}


def by_mbi(census: Census, noisy: NoisyTables, method: str) -> dict[str, float]:
    """mbi as it comes, or at the stop with the best likelihood of the held-out records: a tuning nobody could have."""
    if method == "mbi":
        found = mbi_fit(noisy, own_total=True)
        return judged(census, Tables(census.tree, found.potentials)) | {"seconds": found.seconds, "N": found.total}
    stops = stops_until(MOST)
    found = mbi_fit(noisy, own_total=True, stops=stops)
    shares = count(as_source(census.heldout), census.tree).tables.values / len(census.heldout)
    engine = JunctionTree().compile(census.tree)
    likelihoods = [shares @ row - engine.infer(Tables(census.tree, row)).log_partition for row in found.path]
    best = int(np.argmax(likelihoods))
    return judged(census, Tables(census.tree, found.path[best])) | {"iterations": stops[best], "N": found.total}


def reference(census: Census, method: str) -> dict[str, float]:
    """What no noise would give: the tree's or the one-way tables' maximum likelihood, or the training records."""
    if method == "training records":
        return scores(census, records_margins(census.domain, census.training))
    if method == "exact one-way":
        shares = {
            name: np.bincount(census.training[:, place], minlength=size) / len(census.training)
            for place, (name, size) in enumerate(census.domain.sizes.items())
        }
        return judged(census, over_tree(census.tree, shares))
    counts = count(as_source(census.training), census.tree).tables
    # a tiny penalty: held-out records have combinations that the training records have not
    theta = non_private_mle(JunctionTree().compile(census.tree), counts, l2=1e-7)
    return judged(census, Tables(census.tree, theta))


def cells(asked: Namespace) -> dict[str, int]:
    """cell -> draws, for the data sets that are there."""
    folder, smoke = _folder(asked), asked.extent == "smoke"
    draws = {"smoke": 1, "usual": 5, "full": 10}[asked.extent]
    found = {}
    for name in TREES:
        if (folder / name / "adult.csv").is_file():
            found[f"{name} exact"] = 1
            for noise in ("laplace", "gaussian"):
                found |= {f"{name} {noise} {epsilon}": draws for epsilon in (("1",) if smoke else EPSILONS)}
    if not found:
        refuse(f"adult asks for a folder with adult/adult.csv, and {folder} has none; name one: benchmarks.adult DIR")
    if smoke:
        found.pop("adult gaussian 1", None)
    return found


def tables(lines: Sequence[Line]) -> str:
    """One table per data set and noise: means over the trials, standard errors in brackets."""
    parts = ["# Adult\n"]
    head = ["method", "eps", "TV2 train", "TV3 train", "TV2 held out", "TV3 held out", "log-likelihood", "trials"]
    keys = ["training2", "training3", "heldout2", "heldout3", "loglik"]
    for name, noise in itertools.product(TREES, ("laplace", "gaussian")):
        rows = []
        cells = {line["cell"] for line in lines if line["cell"].startswith(f"{name} {noise} ")}
        for cell in sorted(cells, key=lambda cell: float(cell.split()[2])):
            for method in METHODS:
                if some := having(lines, cell=cell, method=method):
                    means = [mean_and_error([line[key] for line in some]) for key in keys]
                    rows.append([method, cell.split()[2], *means, str(len(some))])
        if rows:
            for line in having(lines, cell=f"{name} exact"):
                scored = [f"{line[key]:.4f}" if key in line else "-" for key in keys]
                rows.append([line["method"], "none", *scored, "1"])
            said = f"Gaussian noise, delta = {DELTA}" if noise == "gaussian" else "Laplace noise"
            parts.append(f"## {name}, {said}\n\n{markdown(head, rows)}")
    return "\n".join(parts)


def plot(lines: Sequence[Line], folder: Path) -> list[Path]:
    """Total variation on triples and held-out log-likelihood against epsilon."""
    if not any(line["cell"].startswith("adult ") for line in lines):
        return []
    plt = pyplot()

    figure, grid = plt.subplots(2, 2, figsize=(8, 6.4), layout="constrained")
    panels = grid.ravel()
    quantities = (("heldout3", "mean TV, triples, held out"), ("loglik", "log-likelihood per held-out record, nats"))
    for place, (noise, (key, label)) in enumerate(itertools.product(("laplace", "gaussian"), quantities)):
        axes = panels[place]
        for color, method in enumerate(METHODS):
            some = [line for line in having(lines, method=method) if line["cell"].startswith(f"adult {noise} ")]
            values = {float(cell.split()[2]): [line[key] for line in of] for cell, of in grouped(some, "cell").items()}
            at = sorted(values)
            means, deviations = ([function(values[one]) for one in at] for function in (np.mean, np.std))
            axes.errorbar(at, means, deviations, marker="o", color=f"C{color}", label=method)
        for line in having(lines, cell="adult exact", method="exact tables"):
            axes.axhline(line[key], color="k", lw=1, ls=":", label="the tree, no noise")
        axes.set(xscale="log", xlabel="epsilon", ylabel=label, title=f"Adult, {noise} noise")
    panels[0].legend(fontsize=8)
    return [save(figure, folder / "adult")]


def _folder(asked: Namespace) -> Path:
    folder: Path = asked.folder
    return folder.parent if (folder / "adult.csv").is_file() else folder


STUDY = Study(
    about=__doc__,
    name="adult",
    data="adult/ and adult_raw/",
    check=lambda asked, cell: load(_folder(asked), cell.split()[0]),
    cells=cells,
    methods=[*METHODS, *REFERENCES],
    serves=lambda cell, draw, method: (method in REFERENCES) == cell.endswith(" exact"),
    missing=lambda method: mbi_missing() if method.startswith("mbi") else None,
    work=work,
    text=tables,
    pictures=plot,
)

if __name__ == "__main__":
    main(STUDY)

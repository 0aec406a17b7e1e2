"""The mobility case study, after figure 3b of Bernstein et al. (2017): held-out log-likelihood against epsilon.

    python -m benchmarks.fig3b [DATA] [--smoke|--full|--report] [--name NAME] [--jobs 2]

DATA is a folder (or file) of person-days, see cases/mobility.py; without it the campus of `benchmarks.traces`. NAME
stands for it in the results, which hold scores and nothing else of the data; scores on records are NOT PRIVATE.

Compared: a table for each edge and a person-day's segments counted as ones ("untied": sensitivity 24|C|), tied edges
("tied"), and tied edges with normalised contributions, per clique ("R1") or per tied group ("R2"). A quarter of the
person-days is held out. A trial is fresh noise.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cases.mobility import VIEWS, WEIGHTS, draw, load, reference, scores, split
from benchmarks.harness.main import Study, main
from benchmarks.harness.output import having, markdown, mean_and_error, pyplot, save
from benchmarks.harness.runs import Line, Task, refuse
from dpgm_core import SeededRandomness, learn

EPSILONS = (0.01, 0.03, 0.1, 0.5, 1.0)
LEARNERS: dict[str, Any] = {
    "naive-mle": "naive-mle",
    "cgm-em": "cgm-em",
    "cgm-em discrepancy": {"name": "cgm-em", "stop": "discrepancy"},
    "eb-map": "eb-map",
}
METHODS = [f"{weights} {learner}" for weights in WEIGHTS for learner in LEARNERS]
REFERENCES = ["tied reference", "R2 reference"]


def work(task: Task, asked: Namespace) -> dict[str, Any]:
    """One run: a release and a model learned from it, or the non-private reference; its scores."""
    _, view, *epsilon = task.cell.split("/")
    weights, learner = task.method.split(" ", 1)
    train, test = split(load(asked.data, *people(asked)))
    if learner == "reference":
        return scores(test, view, *reference(train, view, weights))
    noisy = draw(train, view, weights, float(epsilon[0].removeprefix("eps")), task.trial)
    model = learn(noisy, LEARNERS[learner], randomness=SeededRandomness(2000 + task.trial)).model
    return scores(test, view, model.structure, model.potentials.values)


def cells(asked: Namespace) -> dict[str, int]:
    """cell -> draws; the references need no epsilon and are run once."""
    name = named(asked)
    epsilons, draws = ((1.0,), 1) if asked.extent == "smoke" else (EPSILONS, 10 if asked.extent == "full" else 2)
    each = {f"{name}/{view}/eps{epsilon:g}": draws for view in VIEWS for epsilon in epsilons}
    return {f"{name}/{view}": 1 for view in VIEWS} | each


def _score(view: str) -> str:
    return "segment" if view == "segments" else "pair"


def _values(lines: Sequence[Line], cell: str, method: str, score: str) -> list[float]:
    return [line[score] for line in having(lines, cell=cell, method=method) if score in line]


def _epsilons(lines: Sequence[Line], name: str, view: str) -> list[float]:
    head = f"{name}/{view}/eps"
    return sorted({float(line["cell"][len(head) :]) for line in lines if line["cell"].startswith(head)})


def tables(lines: Sequence[Line]) -> str:
    """One table per data set, view and score."""
    parts = ["# Figure 3b: held-out log-likelihood, nats (mean over noise draws, standard error)\n"]
    for name, view in product(sorted({line["cell"].split("/")[0] for line in lines}), VIEWS):
        cell, epsilons = f"{name}/{view}", _epsilons(lines, name, view)
        for score in (["segment"] if view == "segments" else []) + ["pair", "pair_by_day"]:
            rows = [_row(lines, cell, method, score, epsilons) for method in METHODS]
            rows = [row for row in rows if any(text != "-" for text in row[1:])]
            known = {
                "non-private": _values(lines, cell, "tied reference", score),
                "non-private, weighted as R2": _values(lines, cell, "R2 reference", score),
                "uniform": _values(lines, cell, "tied reference", f"{score.removesuffix('_by_day')}_uniform"),
            }
            rows += [[what, *[f"{one[0]:.3f}"] * len(epsilons)] for what, one in known.items() if one]
            head = ["weights, learner", *(f"eps {epsilon:g}" for epsilon in epsilons)]
            parts.append(f"## {name}, view {view}, score {score}\n\n{markdown(head, rows)}")
    return "\n".join(parts)


def _row(lines: Sequence[Line], cell: str, method: str, score: str, epsilons: Sequence[float]) -> list[str]:
    found = [_values(lines, f"{cell}/eps{epsilon:g}", method, score) for epsilon in epsilons]
    return [method, *(mean_and_error(one, "{:.3f}", " ±{:.3f}") if one else "-" for one in found)]


def plots(lines: Sequence[Line], folder: Path) -> list[Path]:
    """One picture per data set."""
    names = sorted({line["cell"].split("/")[0] for line in lines})
    return [plot(lines, name, folder / f"fig3b-{name}") for name in names]


def plot(lines: Sequence[Line], name: str, stem: Path) -> Path:
    """One row of panels per view, one panel per learner, one line per weighting."""
    figure, axes = pyplot().subplots(
        len(VIEWS), len(LEARNERS), figsize=(3.1 * len(LEARNERS), 6), layout="constrained", sharex=True, sharey="row"
    )
    for row, view in zip(axes, VIEWS, strict=True):
        epsilons = _epsilons(lines, name, view)
        for panel, learner in zip(row, LEARNERS, strict=True):
            for weights, style in zip(WEIGHTS, ("s--", "o-", "^-", "v-"), strict=True):
                method = f"{weights} {learner}"
                found = {one: _values(lines, f"{name}/{view}/eps{one:g}", method, _score(view)) for one in epsilons}
                seen = {epsilon: values for epsilon, values in found.items() if values}
                means = [np.mean(values) for values in seen.values()]
                errors = [np.std(values) / np.sqrt(max(1, len(values) - 1)) for values in seen.values()]
                panel.errorbar(list(seen), means, errors, fmt=style, ms=4, label=weights)
            for method, color in (("tied reference", "k"), ("uniform", "0.6")):
                key = _score(view) if method != "uniform" else f"{_score(view)}_uniform"
                level = _values(lines, f"{name}/{view}", "tied reference", key)
                if level:
                    panel.axhline(level[0], color=color, lw=1, ls=":", label=method.replace("tied", "non-private"))
            panel.set(title=f"{view}: {learner}", xscale="log")
        row[0].set_ylabel(f"log-likelihood of a held-out {_score(view)}, nats", fontsize=8)
    for panel in axes[-1]:
        panel.set_xlabel("epsilon")
    axes[0][0].legend(fontsize=7)
    figure.suptitle(name)
    return save(figure, stem)


def arguments(parser: ArgumentParser) -> None:
    """The data and their name."""
    parser.add_argument("data", nargs="?", help="a folder or file of person-days; none: made-up campus traces")
    parser.add_argument("--name", help="what to call the data in the results (default: the folder's name)")


def named(asked: Namespace) -> str:
    """What the data are called in the results."""
    name = asked.name or ("campus" if asked.data is None else Path(asked.data).resolve().stem)
    if "/" in name or " " in name:
        refuse(f"--name {name!r} names cells of the results: no slashes or spaces")
    return str(name)


def people(asked: Namespace) -> tuple[int, int]:
    """(persons, days) of the campus."""
    return (40, 5) if asked.extent == "smoke" else (1000, 20)


def check(asked: Namespace, cell: str) -> None:
    """Read the data, which must say where nobody knows."""
    if load(asked.data, *people(asked)).empty is None:
        refuse("the data have no label 'absent' or 'null'; name the one that means nobody knows so")


STUDY = Study(
    about=__doc__,
    name="fig3b",
    arguments=arguments,
    check=check,
    cells=cells,
    methods=[*METHODS, *REFERENCES],
    serves=lambda cell, draw, method: (method in REFERENCES) == ("/eps" not in cell),
    work=work,
    text=tables,
    pictures=plots,
)

if __name__ == "__main__":
    main(STUDY)

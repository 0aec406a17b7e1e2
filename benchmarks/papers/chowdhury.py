"""Chowdhury, Rekatsinas and Jha (ICML 2020): parameters of Bayesian networks over a public graph.

    python -m benchmarks.paper chowdhury [DIR] [--smoke|--full|--report] [--cells "alarm 1"] [--draws 12]

Two networks are made up and always there. DIR holds `bif/` (asia.bif, sachs.bif, child.bif, alarm.bif, insurance.bif,
hailfinder.bif of the bnlearn repository) and `adult/`, by default $DPGM_SHARED/data or ../shared/data; what is not
there is left out. A cell is a network and an epsilon, a trial is a seed from 260000 on. All methods get the same 10,000
records, drawn anew in each trial; add-remove neighbours, N unknown; Laplace noise at epsilon, Gaussian noise at
(epsilon, 1/N).

The baseline (Zhang et al. 2016, as their summaries have it): every family, one noise, negative counts are 0, one more
in each cell for KL and none for L1. KL: of the truth to the network learned, nats, after q <- (1 - 1e-4) q + 1e-4 / K
in each row, for all methods alike. L1: of conditional tables to the exact ones, a mean over rows with a record.
Queries: mean L1 of single attributes' marginals, and of P(target | two others) for 30 questions, both to the truth, and
how much less likely, in nats, the most probable record with that evidence is than the true one.
"Two-stage sampled" is a reading of Chowdhury et al. (2020): a tenth of the budget on a tenth of the records first,
to divide the rest over the families, and the second look alone is learned from. "Two-stage" takes all records first.

Cells `time` are CPU seconds on one thread; `hailfinder` (56 nodes) is one fit. Cells `adult` are real records, of which
nobody knows the graph: one written down from what the attributes mean, before any look (cases/people.py), and the same
with attributes dealt anew; "undirected" measures the same tables and is not moved to the graph; `mst` and `auto` choose
for themselves, all pairs wanted. Their errors: total variation over all pairs, a mean, to the training records, and the
log-likelihood of a held-out record (a fifth), nats, of (1 - 1e-4) p + 1e-4 / states for all. Exact, hence not private.
"""

from __future__ import annotations

import math
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cases.census import load
from benchmarks.cases.networks import GENERATED, MADE, network, there
from benchmarks.harness.main import Study, main
from benchmarks.harness.output import pyplot, save
from benchmarks.harness.runs import Line, Task, say
from benchmarks.papers.claims import Claim, claim, report
from benchmarks.protocol.directed import (
    BASELINE,
    EXACT,
    METHODS,
    NO_NOISE,
    PEOPLE,
    REFERENCES,
    epsilons_of,
    judged,
    networks_alone,
    networks_of,
    of_people,
    over_baseline,
    paired_curves,
    ratio_of_budgets,
    seconds,
    tables,
    values_of,
)

NETWORKS = (*GENERATED, "asia", "sachs", "child", "alarm", "insurance")
#: The first is the one that targets are about.
EPSILONS = ("1", "0.1", "0.5", "3", "0.25")
TIMED = ("alarm", "hailfinder")
RECORDS, FEW = 10_000, 1000
DRAWS, SEEDS, BASE = 12, 5, 260_000


def work(task: Task, asked: Namespace) -> dict[str, Any]:
    """One run: its cell is "alarm 0.5", "time alarm" or "adult 1 pure"."""
    folder, records = asked.folder, FEW if asked.extent == "smoke" else RECORDS
    kind, *rest = task.cell.split()
    if kind == "adult":
        return of_people(task.method, folder, rest[0], rest[1], task.trial)
    if kind == "time":
        return seconds(network(folder / "bif", rest[0]), task.method, "1", records, task.trial)
    return judged(network(folder / "bif", kind), task.method, rest[0], records, task.trial)


def cells(asked: Namespace) -> dict[str, int]:
    """cell -> draws, of what is here."""
    if asked.extent == "smoke":
        return {f"{MADE} {epsilon}": 1 for epsilon in ("1", "0.25")}
    bif = asked.folder / "bif"
    here = [name for name in NETWORKS if there(bif, name)]
    found = {f"{name} {epsilon}": asked.draws for epsilon in EPSILONS for name in here}
    found |= {f"time {name}": 1 for name in TIMED if there(bif, name)}
    if (asked.folder / "adult" / "adult.csv").is_file():
        found[f"adult {NO_NOISE}"] = 1
        found |= {
            f"adult {epsilon} {kind}": min(SEEDS, asked.draws) for epsilon in ("0.1", "1") for kind in ("pure", "delta")
        }
    left_out = [name for name in dict.fromkeys((*NETWORKS, *TIMED)) if not there(bif, name)]
    if not any(cell.startswith("adult") for cell in found):
        left_out.append("adult")
    if left_out:
        say(f"{asked.folder} has no {', '.join(left_out)}: left out; name a folder with bif/ and adult/")
    return found


def serves(cell: str, draw: int, method: str) -> bool:
    """What needs no epsilon is run at one."""
    kind, *rest = cell.split()
    if kind == "adult":
        return method in (REFERENCES if cell.endswith(NO_NOISE) else PEOPLE)
    if kind == "time":
        return method in ("bayes-net", "bayes-net local")
    return method in METHODS and (method != EXACT or rest[0] == "1")


def arguments(parser: ArgumentParser) -> None:
    """How many draws."""
    parser.add_argument("--draws", type=int, default=DRAWS, help="of records and noise")


def check(asked: Namespace, cell: str) -> None:
    """Read the file of a cell."""
    kind, *rest = cell.split()
    if kind == "adult":
        load(asked.folder, "adult")
    else:
        network(asked.folder / "bif", rest[0] if kind == "time" else kind)


#: The paper's method as we read it, with its settings and with all records in the first stage.
TWO_STAGE = ("two-stage sampled", "two-stage")
SHOWN = {
    EXACT: "0.6", BASELINE: "C0", "two-stage sampled": "C1", "two-stage errors alone": "C2", "bayes-net": "C3",
    "bayes-net Gaussian": "C4",
}  # fmt: skip
PANELS = {
    "kl": "KL, nats", "alone": "marginals, L1", "asked": "conditionals, L1", "map": "MAP record, nats lost",
}  # fmt: skip


def claims(lines: Sequence[Line]) -> list[Claim]:
    """What the part of the paper at hand states, and what these runs show of it."""
    runs = networks_alone(lines)
    reading = "; the weights are our reading of the paper"
    none = "not attempted"
    return [
        claim("C1", "same utility as the baseline with a roughly 3 times smaller budget", runs, _budget, "headline"),
        *(
            claim(name, f"{what} queries are answered better than by the baseline", runs, _better(error))
            for name, what, error in (("C2", "marginal", "alone"), ("C3", "conditional", "asked"), ("C4", "MAP", "map"))
        ),
        claim("C5", "a first stage on a sample saves budget", runs, _compare("two-stage sampled", "two-stage", "kl")),
        claim(
            "C6", "weights by height, children and first look improve on the noise-to-signal part alone" + reading,
            runs, _compare("two-stage", "two-stage errors alone", "kl"),
        ),
        claim(
            "C7", "making tables mutually consistent improves them",
            runs, _compare("baseline + consistency", BASELINE, "kl"),
        ),
        Claim(
            name="C8", says="two stages of eps_I and eps_B - eps_I are eps_B-DP", status="reproduced",
            found="by adaptive composition, in exact fractions; the tests of `dpgm-bayes-net` add the two charges",
        ),
        Claim(
            name="C9", says="a root gets more budget than a leaf, all else equal", status="reproduced",
            found="on a chain of equal tables (test of `dpgm-bayes-net`)",
        ),
        Claim(
            name="C10", says="inference error: upper bound exponential in the treewidth", status=none,
            found="the part of the paper that we have gives no formula, so there is no number to hold errors against",
        ),
        Claim(
            name="C11", says="inference error: lower bound by the maximal degree", status=none,
            found="no formula either, as for C10",
        ),
    ]  # fmt: skip


def _budget(runs: Sequence[Line]) -> tuple[str, str]:
    """C1: the baseline's epsilon = 1 over what the two stages need."""
    said, best = [], 0.0
    for method in TWO_STAGE:
        for error, called in (("l1", "L1 of conditional tables"), ("kl", "KL")):
            found = []
            for name in networks_of(runs):
                ratio = ratio_of_budgets(*paired_curves(runs, name, method, error), 1.0)
                if ratio is not None:
                    found.append(ratio)
            if found:
                best = max(best, min(found))
                said.append(f"{method}, {called}: {_range(found)}")
    if not said:
        return "not attempted", "no epsilon of equal error lies between those that were run"
    status = "reproduced" if best >= 2.5 else "contradicted"
    return status, f"times less budget at the baseline's epsilon = 1: {'; '.join(said)} (weights as we read them)"


def _better(error: str) -> Callable[[Sequence[Line]], tuple[str, str]]:
    """C2 to C4."""
    return _compare("two-stage sampled", BASELINE, error)


def _compare(ours: str, theirs: str, error: str) -> Callable[[Sequence[Line]], tuple[str, str]]:
    """Whether a method has less error than another on every network at epsilon = 1, beyond two standard errors; of one
    draw neither less nor more is said."""
    reading = " (weights as we read them)" if ours.startswith("two-stage") else ""

    def judge(runs: Sequence[Line]) -> tuple[str, str]:
        found = {}
        for name in networks_of(runs):
            values = [values_of(runs, f"{name} 1", method, error) for method in (ours, theirs)]
            ratio, spread, count = over_baseline(*values)
            if count and math.isfinite(ratio):
                found[name] = (ratio, math.inf if math.isnan(spread) else spread)
        if not found:
            return "not attempted", "its runs are not in the store yet"
        less = [name for name, (ratio, spread) in found.items() if ratio + 2 * spread < 1]
        more = [name for name, (ratio, spread) in found.items() if ratio - 2 * spread > 1]
        some = "with a caveat" if len(less) >= len(more) else "contradicted"
        status = "reproduced" if len(less) == len(found) else some
        each = ", ".join(f"{name} {ratio:.2f}" for name, (ratio, _) in found.items())
        return status, f"{PANELS[error]}, {ours} over {theirs}, epsilon = 1: {each}{reading}"

    return judge


def _range(values: Sequence[float]) -> str:
    low, high = (f"{value:.1f}" for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def text(lines: Sequence[Line]) -> str:
    """The page."""
    return report("Bayesian networks over a public graph", claims(lines), lines, tables(lines))


def pictures(lines: Sequence[Line], folder: Path) -> list[Path]:
    """Each error against epsilon, a column for each network."""
    runs = networks_alone(lines)
    names, epsilons, plt = networks_of(runs), epsilons_of(runs), pyplot()
    width = 2.6 * len(names) + 0.4
    figure, axes = plt.subplots(
        len(PANELS), len(names), figsize=(max(width, 6), 9.2), squeeze=False, sharex=True, layout="constrained"
    )
    for row, (error, called) in zip(axes, PANELS.items(), strict=True):
        row[0].set_ylabel(called)
        for name, ax in zip(names, row, strict=True):
            for method, color in SHOWN.items():
                curve = {float(at): _mean(values_of(runs, f"{name} {at}", method, error)) for at in epsilons}
                curve = {at: value for at, value in curve.items() if value > 0 or (error == "map" and value == 0)}
                if method == EXACT and curve:  # the same at every epsilon
                    ax.axhline(next(iter(curve.values())), color=color, linestyle=":", label=method)
                elif curve:
                    ax.plot(list(curve), list(curve.values()), "o-", color=color, label=method, markersize=3)
            ax.set(xscale="log", yscale="log")
            if error == "map":  # nothing is lost where records are many
                ax.set_yscale("symlog", linthresh=1e-3)
                ax.set_ylim(bottom=0)
    for name, ax in zip(names, axes[0], strict=True):
        ax.set_title(name)
    for ax in axes[-1]:
        ax.set_xlabel("epsilon")
    drawn: dict[str, Any] = {}
    for ax in axes.flat:
        drawn |= dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    figure.legend(drawn.values(), drawn.keys(), loc="outside lower center", ncols=3)
    return [save(figure, folder / "chowdhury")]


def _mean(values: Any) -> float:
    return float(np.mean(list(values.values()))) if values else -1.0


STUDY = Study(
    about=__doc__,
    name="paper-chowdhury",
    data="bif/ and adult/",
    arguments=arguments,
    check=check,
    cells=cells,
    methods=[*METHODS, *PEOPLE, *REFERENCES],
    serves=serves,
    trial=lambda asked, cell, draw: BASE + draw,
    work=work,
    text=text,
    pictures=pictures,
)

if __name__ == "__main__":
    main(STUDY)

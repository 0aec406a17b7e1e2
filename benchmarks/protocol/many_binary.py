"""Records of many binary attributes: hours of working days, held out; and how far selection scales.

The days are those of `cases.mobility` (a folder with one table of person-days in 24 hourly slots and their labels);
each slot and label but the first is an attribute, yes or no. What is judged is the pseudo-likelihood, which asks for no
engine: the mean over held-out days of sum_i log P(x_i | all others), nats, of (1 - 1e-4) p + 1e-4 / 2.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

from benchmarks.cases.markov import ising
from benchmarks.cases.mobility import load
from benchmarks.harness.alone import peak_megabytes
from benchmarks.protocol.recovery import BASE, couplings_of, found_edges
from dpgm_core import Array, Budget, Domain, Fit, Model, SeededRandomness, Structure, Terms, Workload, fit

__all__ = ["DAYS", "Days", "days", "of_days", "of_wide", "pseudo_likelihood"]

SMOOTHING, HELD_OUT = 1e-4, 0.25
TERMS = Terms(neighbours="add-remove")


@frozen
class Asked:
    """selector: and its options; None: attributes alone."""

    selector: Mapping[str, Any] | str | None


#: Rare codes are left as they are, so that all models are over the same attributes.
DAYS = {
    "independence": Asked(None),
    "mst": Asked({"name": "mst", "merge": False}),
    "aim": Asked({"name": "aim", "merge": False}),
    "mrf-select contrasts": Asked({"name": "mrf-select", "measure": "contrasts"}),
    "mrf-select tables": Asked({"name": "mrf-select", "measure": "tables"}),
    "mrf-select tables, 2 picks": Asked({"name": "mrf-select", "measure": "tables", "picks": 2}),
}


@frozen(kw_only=True, eq=False)
class Days:
    """Codes of days to learn from and of days held out, (days, attributes); always the same ones."""

    domain: Domain
    learned: Array
    held_out: Array


def days(folder: Path) -> Days:
    """A slot and a label: whether it was that one. Raises DataError."""
    table = load(str(folder), length=24)
    labels = [code for code in range(len(table.labels)) if table.labels[code] != (table.empty or table.labels[0])]
    slots = table.codes[:, 0, :]
    codes = np.stack([slots == code for code in labels], axis=2).reshape(len(slots), -1).astype(np.uint8)
    names = [f"h{slot:02}-{table.labels[code]}" for slot in range(slots.shape[1]) for code in labels]
    order = np.random.default_rng(0).permutation(len(codes))
    cut = round(HELD_OUT * len(codes))
    domain = Domain.from_sizes(dict.fromkeys(names, 2))
    return Days(domain=domain, learned=codes[order[cut:]], held_out=codes[order[:cut]])


def of_days(method: str, folder: Path, promise: str, seed: int) -> dict[str, Any]:
    """One method. promise: "rho .01" or "(1, 1e-9)", as in `BUDGETS`."""
    table, budget = days(folder), BUDGETS[promise]
    start = time.process_time()
    done = _learned(DAYS[method], table, budget, seed)
    spent = time.process_time() - start
    return {
        "pseudo": pseudo_likelihood(done.model, table.held_out),
        "seconds": round(spent, 3),
        "peak": round(peak_megabytes(), 1),
        "cliques": len(done.model.structure.cliques),
        "said": list(done.notes),
    }


BUDGETS = {"0.01": Budget.zcdp("0.01"), "1": Budget.approx("1", "1e-9")}


def _learned(asked: Asked, table: Days, budget: Budget, seed: int) -> Fit:
    randomness = SeededRandomness(seed)
    if asked.selector is None:
        alone = Structure(table.domain, [(name,) for name in table.domain.names])
        return fit(table.learned, alone, budget, "gaussian", terms=TERMS, randomness=randomness)
    wanted = Workload.all(table.domain, order=2)
    return fit(table.learned, asked.selector, budget, workload=wanted, terms=TERMS, randomness=randomness)


def pseudo_likelihood(model: Model, codes: Array) -> float:
    """The mean over records of sum_i log P(x_i | all others), binary attributes, smoothed."""
    structure, place = model.structure, {name: at for at, name in enumerate(model.structure.domain.names)}
    gain = np.zeros(codes.shape)  # log-odds of the record's own value
    for group, table in zip(structure.groups, model.potentials.arrays(), strict=True):
        bounded = np.clip(table, -50, 50)  # of a cell ruled out; -inf less -inf has no value
        for clique in group:
            columns = [codes[:, place[name]] for name in clique]
            own = bounded[tuple(columns)]
            for at, name in enumerate(clique):
                other = [1 - column if here == at else column for here, column in enumerate(columns)]
                gain[:, place[name]] += own - bounded[tuple(other)]
    shares = 1 / (1 + np.exp(-np.clip(gain, -500, 500)))
    return float(np.log((1 - SMOOTHING) * shares + SMOOTHING / 2).sum(axis=1).mean())


def best_constant(codes: Array) -> float:
    """What no dependence can beat: each attribute's own share, in nats."""
    shares = codes.mean(axis=0)
    return -float(sum(-p * math.log(p) - (1 - p) * math.log1p(-p) for p in shares if 0 < p < 1))


def of_wide(attributes: int, records: int, seed: int) -> dict[str, Any]:
    """`mrf-select` on made-up records of a matching: seconds, peak memory and the edges found. Records come first."""
    rng = np.random.default_rng([BASE, seed])
    truth = ising("matching", attributes, rng)
    codes = truth.records(records, rng)
    start = time.process_time()
    done = fit(
        codes,
        "mrf-select",
        Budget.zcdp("0.01"),
        workload=Workload.all(truth.domain, order=2),
        terms=TERMS,
        randomness=SeededRandomness(seed),
    )
    found = {"seconds": time.process_time() - start, "peak": peak_megabytes()}
    edges = found_edges(couplings_of(done.model))
    said = f"{len(edges & truth.edges)} of {len(truth.edges)} found, {len(edges - truth.edges)} others"
    return {key: round(value, 2) for key, value in found.items()} | {"said": said}

"""Do analyses of a model hold? Coverage and width of intervals for regressions, means, odds ratios and correlations.

    python -m benchmarks.research [FOLDER] [--smoke | --full | --report] [--jobs N] [--cells A,B] [--only-methods A,B]

A table is the population; records are drawn from it with replacement, a model is fitted under differential privacy, and
the intervals of `dpgm analyse` are compared with the population's own values: after `auto`, with a share for a
structure check (`check`), with a plan that states the logistic regression (`plan`: a share of .9 of the budget, the
rest by `auto`; `plan alone`: all of it), and on a chain that is wrong on purpose (`chain`). Beside them: the intervals
of the same records without privacy, and of the model taken for data. Cells are "population budget": (epsilon, 1e-6), or
pure epsilon. Seeds are 1000 and on, which no rule was chosen on. On the population `narrow` all pairs are measured,
under replace-one, and NAPSU-MQ (twinify, in an environment of `peers/environments.py`) gets the same pairs and budget;
its 100 data sets are combined by its authors' rule. Runs go to benchmarks/results/research.jsonl, the tables to
research.md beside it.
"""

from __future__ import annotations

import csv
import functools
import itertools
import math
import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from attrs import frozen
from scipy.special import ndtri

from benchmarks.cases.coded import Coded
from benchmarks.cases.tables import HEALTH
from benchmarks.harness.alone import alone
from benchmarks.harness.main import Study, main
from benchmarks.harness.output import grouped, having, markdown
from benchmarks.harness.runs import Task
from benchmarks.peers.environments import python_of
from benchmarks.peers.napsu_worker import synthetic_counts
from dpgm.study.store import Line
from dpgm_core import Array, Budget, Domain, FloatArray, IntArray, Model, Structure, Workload, combine, fit
from dpgm_core.learning.research import ResearchPlan, Targeted, plan_research
from dpgm_core.models.analysis import estimate
from dpgm_core.models.functionals import Functional, Moments, Regression

LEVEL, QUERY_LEVEL, DELTA = 0.95, 0.9, "1e-6"
FIRST_SEED, DRAWS = 1000, 200
#: Kinds of questions, in the order of the tables.
KINDS = ("logistic", "linear", "difference", "log odds ratio", "correlation", "given")
METHODS = ("auto", "plan", "plan alone", "check", "chain", "pairs", "contrasts", "napsu-mq")
#: Shares of the budget for the tables of a planned logistic regression.
PLANS = {"plan": 0.9, "plan alone": 1.0}
#: Populations of which all pairs are measured, and how.
PAIRS = {"narrow": ("pairs", "napsu-mq"), "binary": ("pairs", "contrasts")}
DATASETS, LIMIT = 100, 1800.0
NO_TWINIFY = "there is no environment with twinify; see benchmarks/README.md"


# --- Populations: codes of some columns, the binary outcome last --------------------------------


@frozen
class Population:
    """read: the folder of data -> the records. records: how many are drawn. file: below the folder, if any."""

    read: Callable[[Path], Coded]
    records: int = 20_000
    file: str = ""


def _columns(path: Path) -> dict[str, tuple[str, ...]]:
    with path.open(encoding="utf-8", newline="") as file:
        names, *rows = csv.reader(file)
    return dict(zip(names, zip(*rows, strict=True), strict=True))


def _coded(columns: Mapping[str, Any]) -> Coded:
    codes = np.stack([np.asarray(one, dtype=np.uint8) for one in columns.values()], axis=1)
    sizes = {name: int(one) + 1 for name, one in zip(columns, codes.max(axis=0), strict=True)}
    return Coded(domain=Domain.from_sizes(sizes), codes=codes)


def adult(folder: Path) -> Coded:
    """Return eight columns of the census table, with bins of our own."""
    table = {name: np.array(one, dtype=int) for name, one in _columns(folder / "adult" / "adult.csv").items()}
    most = {name: (table[name] == np.bincount(table[name]).argmax()) for name in ("marital-status", "workclass")}
    return _coded(
        {
            "age": np.digitize(table["age"], [9, 19, 29, 39, 49]),
            "education": np.digitize(table["education-num"], [8, 9, 12]),
            "married": most["marital-status"],
            "sex": table["sex"],
            "race": table["race"] == 0,
            "hours": np.digitize(table["hours-per-week"], [34, 39, 44]),
            "private": most["workclass"],
            "income": table["income>50K"],
        }
    )


def survey(folder: Path) -> Coded:
    """Return eight columns of the community survey."""
    table = _columns(folder / "nist_acs_ma2019" / "ma2019.csv")

    def cut(name: str, edges: Sequence[float]) -> IntArray:
        return np.digitize([float(text) if text not in ("N", "") else 0.0 for text in table[name]], edges)

    return _coded(
        {
            "age": cut("AGEP", [25, 40, 55, 65]),
            "sex": np.isin(table["SEX"], "1"),
            "married": np.isin(table["MSP"], ["1", "2"]),
            "white": np.isin(table["RAC1P"], "1"),
            "education": cut("EDU", [5, 9, 11]),
            "disabled": np.isin(table["DPHY"], "1"),
            "owner": np.isin(table["OWN_RENT"], "1"),
            "income": cut("PINCP_DECILE", [5]),
        }
    )


def insurance(folder: Path) -> Coded:
    """Return seven columns of the project's example, most of them cut in two."""
    table = _columns(HEALTH / "health.csv")

    def cut(name: str, edges: Sequence[float]) -> IntArray:
        return np.digitize([float(text or 0) for text in table[name]], edges)

    return _coded(
        {
            "coinsurance": np.unique(table["coinsurance"], return_inverse=True)[1],
            "deductible": np.isin(table["deductible"], "individual"),
            "incentive": cut("incentive", [1]),
            "limitation": np.isin(table["limitation"], ["1", "yes"]),
            "diseases": cut("diseases", [5, 10, 15, 25]),
            "health": [("excellent", "good", "fair", "poor").index(text or "excellent") for text in table["health"]],
            "visits": cut("visits", [1]),
        }
    )


def _loglinear(sizes: Sequence[int], orders: Mapping[int, tuple[float, float]], seed: int, records: int) -> Coded:
    """Return log-linear records. orders: size of a set -> the deviation of its effects, and how many have any."""
    rng = np.random.default_rng(seed)
    logs = np.zeros(sizes)
    for order, (scale, share) in orders.items():
        for axes in itertools.combinations(range(len(sizes)), order):
            shape = [size if at in axes else 1 for at, size in enumerate(sizes)]
            logs = logs + (rng.random() < share) * scale * rng.normal(size=shape)
    shares = np.exp(logs - logs.max()).reshape(-1)
    cells = rng.choice(len(shares), size=records, p=shares / shares.sum())
    codes = np.unravel_index(cells, sizes)
    return _coded({f"x{at}" if at < len(sizes) - 1 else "y": one for at, one in enumerate(codes)})


def triples(folder: Path) -> Coded:
    """Return a generated population with effects of three attributes."""
    return _loglinear((3, 2, 4, 2, 3, 2, 2, 2), {1: (0.5, 1), 2: (0.5, 1), 3: (0.25, 0.3)}, 77, 60_000)


def rare(folder: Path) -> Coded:
    """Return a generated population with many rare labels, which selectors merge."""
    rng = np.random.default_rng(78)
    records = 60_000
    columns: dict[str, Array] = {}
    for place, size in enumerate((16, 2, 24, 2, 12)):
        frequent = 1 / np.arange(1, size + 1) ** 1.4
        codes = rng.choice(size, size=records, p=frequent / frequent.sum())
        if place:
            before = columns[f"x{place - 1}"]
            follows = rng.random(records) < 0.4
            codes[follows] = rng.integers(0, size, int(before.max()) + 1)[before[follows]]
        columns[f"x{place}"] = codes
    logits = -0.5 + 0.06 * columns["x0"] - 0.4 * columns["x1"] + 0.03 * columns["x2"] + 0.3 * columns["x3"]
    return _coded(columns | {"y": rng.random(records) < 1 / (1 + np.exp(-logits))})


def narrow(folder: Path) -> Coded:
    """Return a generated population of five columns with effects of pairs alone."""
    return _loglinear((3, 2, 2, 3, 2), {1: (0.5, 1), 2: (0.4, 1)}, 79, 60_000)


def binary(folder: Path) -> Coded:
    """Return a generated population of six binary columns with effects of pairs alone."""
    return _loglinear((2, 2, 2, 2, 2, 2), {1: (0.5, 1), 2: (0.3, 1)}, 80, 60_000)


POPULATIONS = {
    "adult": Population(adult, file="adult/adult.csv"),
    "nist": Population(survey, records=7634, file="nist_acs_ma2019/ma2019.csv"),
    "health": Population(insurance),
    "triples": Population(triples),
    "rare": Population(rare),
    "narrow": Population(narrow),
    "binary": Population(binary),
}


# --- Questions ----------------------------------------------------------------------------------

#: A functional, and the codes that are given.
Question: TypeAlias = tuple[Functional, Mapping[str, int]]


def questions(domain: Domain) -> dict[str, list[Question]]:
    """Return the questions of each kind, with what is given."""
    names = domain.names
    *covariates, outcome = names
    binary = [name for name in covariates if domain[name].size == 2]
    many = next((name for name in covariates if domain[name].size > 2), binary[0])
    all_pairs = itertools.combinations(names, 2)
    pairs = ((binary[0], outcome), (binary[1], outcome), (binary[0], binary[1]))
    return {
        "logistic": [(_regression(domain, outcome, covariates, "logistic"), {})],
        "linear": [(_regression(domain, many, [name for name in names if name != many], "linear"), {})],
        "difference": [(_difference(domain, many, name), {}) for name in binary[:3]],
        "log odds ratio": [(_odds(domain, *pair), {}) for pair in pairs],
        "correlation": [(_correlation(domain, *pair), {}) for pair in itertools.islice(all_pairs, 8)],
        "given": [(_regression(domain, many, [outcome], "linear"), {binary[0]: 1})],
    }


def _grid(domain: Domain, names: Sequence[str]) -> FloatArray:
    """The codes of each cell, (names, cells)."""
    shape = domain.shape(tuple(names))
    return np.indices(shape).reshape(len(names), -1).astype(np.float64)


def _regression(domain: Domain, outcome: str, covariates: Sequence[str], family: Any) -> Regression:
    grid = _grid(domain, (*covariates, outcome))
    return Regression(
        attributes=(*covariates, outcome),
        names=("1", *covariates),
        family=family,
        design=np.concatenate([np.ones((1, grid.shape[1])), grid[:-1]]).T,
        outcome=grid[-1],
    )


def _difference(domain: Domain, value: str, group: str) -> Moments:
    codes, groups = _grid(domain, (value, group))

    def function(m: FloatArray) -> tuple[list[float], list[list[float]]]:
        high, low = m[0] / m[1], m[2] / m[3]
        return [high - low], [[1 / m[1], -high / m[1], -1 / m[3], low / m[3]]]

    features = np.stack([codes * groups, groups, codes * (1 - groups), 1 - groups])
    return Moments(attributes=(value, group), names=(f"{value} by {group}",), features=features, function=function)


def _odds(domain: Domain, one: str, other: str) -> Moments:
    a, b = _grid(domain, (one, other))
    signs = np.array([1.0, -1.0, -1.0, 1.0])
    features = np.stack([a * b, a * (1 - b), (1 - a) * b, (1 - a) * (1 - b)])
    return Moments(
        attributes=(one, other),
        names=(f"{one} and {other}",),
        features=features,
        function=lambda m: ([signs @ np.log(m)], [signs / m]),
    )


def _correlation(domain: Domain, one: str, other: str) -> Moments:
    a, b = _grid(domain, (one, other))

    def function(m: FloatArray) -> tuple[list[float], list[list[float]]]:
        u, v, w = m[2] - m[0] ** 2, m[3] - m[1] ** 2, m[4] - m[0] * m[1]
        r = w / math.sqrt(u * v)
        slopes = [r * m[0] / u - m[1] / math.sqrt(u * v), r * m[1] / v - m[0] / math.sqrt(u * v)]
        return [r], [[*slopes, -r / (2 * u), -r / (2 * v), 1 / math.sqrt(u * v)]]

    return Moments(
        attributes=(one, other),
        names=(f"{one}, {other}",),
        features=np.stack([a, b, a**2, b**2, a * b]),
        function=function,
    )


def shares_of(domain: Domain, codes: Array, names: Sequence[str]) -> FloatArray:
    """Return the shares of the cells of some attributes, (cells,)."""
    shape = domain.shape(tuple(names))
    columns = [codes[:, domain.names.index(name)].astype(np.int64) for name in names]
    counts = np.bincount(np.ravel_multi_index(columns, shape), minlength=math.prod(shape))
    return np.asarray(counts / len(codes))


# --- One run ------------------------------------------------------------------------------------


def work(task: Task, asked: Namespace) -> Mapping[str, Any]:
    """One fit, and whether each interval holds the population's value, by kind."""
    name, budget = task.cell.split()
    population, table = POPULATIONS[name], _table(name, asked.folder)
    domain, rng = table.domain, np.random.default_rng(task.trial)
    drawn = table.codes[rng.integers(0, len(table.codes), population.records)]
    if task.method == "napsu-mq":
        return _peer(table, drawn, budget, task.trial)
    start = time.process_time()
    model = _fit(task.method, drawn, domain, budget)
    fitted = time.process_time()
    found: dict[str, Any] = {"kinds": {}}
    asked_for = questions(domain)
    for kind, asks in (
        asked_for.items() if name not in PAIRS and task.method not in PLANS else [("logistic", asked_for["logistic"])]
    ):
        here: dict[str, list[Any]] = {key: [] for key in ("ours", "rows", "model", "sample", "width", "standing")}
        for functional, given in asks:
            _judge(here, model, functional, given, table, drawn, rng)
        found["kinds"][kind] = here
    found["queries"] = _queries(model, table)
    return found | {"fit": round(fitted - start, 3), "analyse": round(time.process_time() - fitted, 3)}


@functools.cache
def _table(name: str, folder: Path) -> Coded:
    return POPULATIONS[name].read(folder)


def _fit(method: str, records: Array, domain: Domain, budget: str) -> Model:
    kind, epsilon = budget.split("=")
    paid = Budget.pure(epsilon) if kind == "pure" else Budget.approx(epsilon, DELTA)
    if method == "chain":
        noise = "laplace" if kind == "pure" else "gaussian"
        return fit(records, Structure.chain(domain), paid, mechanism=noise, neighbours="add-remove").model
    if method in ("pairs", "contrasts"):
        pairs = Structure(domain, list(itertools.combinations(domain.names, 2)))
        split = "contrasts" if method == "contrasts" else "even"
        return fit(records, pairs, paid, mechanism="gaussian", neighbours="replace-one", split=split).model
    if method in PLANS:
        plan = _plan(domain, kind == "pure")
        selector = Targeted(tables=plan.tables, weights=plan.weights, share=PLANS[method])
        return fit(records, selector, paid, workload=Workload.default(domain), neighbours="add-remove").model
    held = {"holdout": 0.05} if method == "check" else "even"
    return fit(records, "auto", paid, workload=domain, neighbours="add-remove", split=held).model


@functools.cache  # the domain decides it
def _plan(domain: Domain, pure: bool) -> ResearchPlan:
    return plan_research([one for one, _ in questions(domain)["logistic"]], Workload.default(domain), pure=pure)


def _judge(
    here: dict[str, list[Any]],
    model: Model,
    functional: Functional,
    given: Mapping[str, int],
    table: Coded,
    drawn: Array,
    rng: np.random.Generator,
) -> None:
    """Add whether the intervals of one question hold the population's values, for each way to make them."""
    domain, z = table.domain, float(ndtri((1 + LEVEL) / 2))
    kept = [codes[_where(domain, codes, given)] for codes in (table.codes, drawn)]
    whole, sample = (shares_of(domain, codes, functional.attributes) for codes in kept)
    truth = functional.evaluate(whole)[0]
    ours = estimate(model, functional, level=LEVEL, given=given)
    inside = np.asarray(model.marginal(functional.attributes, given)).reshape(-1)
    spread = {}
    for key, shares in (("sample", sample), ("model", inside)):
        values, influence = functional.evaluate(shares)
        share = 1.0 if not given else float(np.prod(model.marginal([*given])[tuple(given.values())]))
        spread[key] = np.sqrt(influence**2 @ shares / (share * len(drawn)))
        here[key] += _held(values, z * spread[key], truth)
    here["ours"] += _held(ours.estimate, z * ours.standard_error, truth)
    here["width"] += (ours.standard_error / spread["sample"]).round(3).tolist()
    here["standing"] += ["b" if bad else one[0] for one, bad in zip(ours.standing, ours.unstable, strict=True)]
    if not given:
        counts = rng.multinomial(len(drawn), inside / inside.sum())
        rows = estimate(model, functional, level=LEVEL, rows=counts.astype(np.float64))
        here["rows"] += _held(rows.estimate, z * rows.standard_error, truth)


def _peer(table: Coded, drawn: Array, budget: str, seed: int) -> dict[str, Any]:
    """The same for the logistic regression of NAPSU-MQ's synthetic data sets."""
    names, epsilon = table.domain.names, float(budget.split("=")[1])
    problem = {
        "codes": drawn.tolist(),
        "names": list(names),
        "cliques": list(itertools.combinations(names, 2)),
        "epsilon": epsilon,
        "delta": float(DELTA),
        "seed": seed,
        "datasets": DATASETS,
    }
    answer = alone(synthetic_counts, problem, limit=LIMIT, python=str(python_of("twinify")))
    ((functional, _),) = questions(table.domain)["logistic"]
    truth = functional.evaluate(shares_of(table.domain, table.codes, functional.attributes))[0]
    sample = shares_of(table.domain, drawn, functional.attributes)
    spread = np.sqrt(functional.evaluate(sample)[1] ** 2 @ sample / len(drawn))
    values, variances = [], []
    for counts in answer["counts"]:
        shares = np.array(counts) / len(drawn)
        value, influence = functional.evaluate(shares)
        values.append(value)
        variances.append(influence**2 @ shares / len(drawn))
    found = combine(np.array(values), np.array(variances), level=LEVEL)
    half = (found.high - found.low) / 2
    here: dict[str, list[Any]] = {"ours": _held(found.estimate, half, truth), "standing": ["m"] * len(truth)}
    here |= {"width": (half / ndtri((1 + LEVEL) / 2) / spread).round(3).tolist()}
    here |= {"sample": [], "model": [], "rows": []}
    return {"kinds": {"logistic": here}, "queries": {}, "fit": round(answer["seconds"], 1), "analyse": 0.0}


def _where(domain: Domain, codes: Array, given: Mapping[str, int]) -> Array:
    found: Array = np.ones(len(codes), dtype=bool)
    for name, code in given.items():
        found = found & (codes[:, domain.names.index(name)] == code)
    return found


def _held(estimates: FloatArray, half: FloatArray, truth: FloatArray) -> list[int]:
    return [int(one) for one in np.abs(estimates - truth) <= half]


def _queries(model: Model, table: Coded) -> dict[str, list[float]]:
    """Return of all pairs, by standing: cells, how many intervals hold the truth, and the sum of their widths."""
    found: dict[str, list[float]] = {}
    for pair in itertools.combinations(table.domain.names, 2):
        if model.needs_replicates(pair):
            continue
        truth, interval = shares_of(table.domain, table.codes, pair), model.intervals(pair, level=QUERY_LEVEL)
        low, high = interval.low.reshape(-1), interval.high.reshape(-1)
        here = found.setdefault(model.standing(pair), [0, 0, 0.0])
        here[0] += len(truth)
        here[1] += int(np.sum((low <= truth) & (truth <= high)))
        here[2] += round(float(np.sum(high - low)), 4)
    return found


# --- Tables -------------------------------------------------------------------------------------


def tables(lines: Sequence[Line]) -> str:
    """Return coverage and widths by population, budget and method."""
    head = ["population", "budget", "method", "runs", "sample", "model as data", "ours", "on rows", "least coefficient"]
    head += ["width", "by structure", "queries measured", "by structure"]
    rows = []
    for (cell, method), here in grouped(lines, "cell", "method").items():
        name, budget = cell.split()
        whole = {key: _all(here, key) for key in ("sample", "model", "ours", "rows", "width", "standing")}
        promised = whole["standing"] != "b"
        shares = [_share(whole[key][promised] if key == "ours" else whole[key]) for key in ("sample", "model", "ours")]
        least = min(
            (float(np.mean(column[kept])) for column, kept in _by_answer(here) if kept.sum() >= len(here) / 2),
            default=math.nan,
        )
        queries = [_query_share(here, standing) for standing in ("measured", "by structure")]
        sizes = [f"{float(np.mean(whole['width'])):.2f}", f"{float(np.mean(~promised)):.3f}"]
        rows.append(
            [name, budget, method, len(here), *shares, _share(_promised_rows(here)), f"{least:.3f}", *sizes, *queries]
        )
    parts = [f"Coverage of nominal {LEVEL:.0%} intervals; of queries {QUERY_LEVEL:.0%}\n\n" + markdown(head, rows)]
    rows = []
    for method, here in grouped(lines, "method").items():
        for kind in KINDS:
            cells = [_of_kind(some, kind) for some in grouped(here, "cell").values() if kind in some[0]["kinds"]]
            if cells:
                hits, width, kept = (np.concatenate(part) for part in zip(*cells, strict=True))
                least = min((float(np.mean(one[0][one[2]])) for one in cells if one[2].any()), default=math.nan)
                shares = [_share(hits[kept]), f"{least:.3f}", f"{float(np.median(width)):.2f}"]
                rows.append([method, kind, *shares, f"{float(np.mean(~kept)):.3f}"])
    head = ["method", "kind", "coverage", "least cell", "median width", "by structure"]
    summary = f"<!-- --8<-- [start:summary] -->\n\n{_summary(lines)}\n<!-- --8<-- [end:summary] -->\n"
    plans = f"<!-- --8<-- [start:plans] -->\n\n{_plans(lines)}\n<!-- --8<-- [end:plans] -->\n"
    return "\n".join([summary, plans, *parts, "By kind\n\n" + markdown(head, rows)])


def _plans(lines: Sequence[Line]) -> str:
    """Widths of planned coefficients over those of the same coefficients without a plan, and what no plan can beat."""
    ratios: dict[tuple[str, str], list[float]] = {}
    for (cell, method), here in grouped(lines, "cell", "method").items():
        if method in ("plan", "plan alone", "auto") and (base := having(lines, cell=cell, method="auto")):
            ours, without = (_median_widths(some) for some in (here, base))
            over = 1 / without if method == "auto" else ours / without
            ratios.setdefault((cell.split()[1], method), []).append(float(np.exp(np.mean(np.log(over)))))
    rows = [
        [budget, *(_mean_and_span(ratios[budget, method]) for method in ("plan", "plan alone", "auto"))]
        for budget in dict.fromkeys(budget for budget, method in ratios if method == "plan")
    ]
    return markdown(["budget", _WORDS["plan"], _WORDS["plan alone"], "without noise"], rows)


def _mean_and_span(ratios: Sequence[float]) -> str:
    return f"{np.exp(np.mean(np.log(ratios))):.2f} ({_span(ratios, '.2f')})"


def _median_widths(lines: Sequence[Line]) -> FloatArray:
    """Return the median width over runs of each logistic coefficient."""
    return np.asarray(np.nanmedian(np.array([line["kinds"]["logistic"]["width"] for line in lines], float), axis=0))


#: What the methods are, for readers of the summary.
_WORDS = {
    "auto": "after `auto`",
    "plan": "planned, share .9",
    "plan alone": "planned, all of the budget",
    "check": "after `auto`, with a holdout",
    "chain": "on a wrong chain",
    "pairs": "all pairs, named",
    "contrasts": "all pairs, by contrasts",
    "napsu-mq": "NAPSU-MQ, all pairs",
}


def _summary(lines: Sequence[Line]) -> str:
    """Return coverage over the cells of each method, the least and the greatest, and widths over the sample's.

    Cells with less than a twentieth of a method's most runs are left out.
    """
    rows = []
    for method, words in _WORDS.items():
        cells = list(grouped(having(lines, method=method), "cell").values())
        if not cells:
            continue
        most = max(map(len, cells))
        cells = [some for some in cells if 20 * len(some) >= most]
        promised = [[(_all(some, key))[_all(some, "standing") != "b"] for key in ("ours", "width")] for some in cells]
        covered = [float(np.mean(hits)) for hits, _ in promised]
        queries = [float(share) for some in cells if (share := _query_share(some, "measured")) != "-"]
        runs = [len(some) for some in cells]
        plain = [float(np.mean(_all(some, "model"))) for some in cells if len(_all(some, "model"))]
        rows.append(
            [
                words,
                len(cells),
                _span(runs, "d"),
                _span(covered, ".3f"),
                _span(plain, ".3f"),
                f"{float(np.median(np.concatenate([width for _, width in promised]))):.2f}",
                f"{float(np.mean(np.concatenate([_all(some, 'standing') for some in cells]) == 'b')):.3f}",
                _span(queries, ".3f"),
            ]
        )
    head = ["tables", "cells", "runs", f"{LEVEL:.0%} intervals hold", "the model as data", "width", "not promised"]
    return markdown([*head, f"{QUERY_LEVEL:.0%} of measured pairs"], rows)


def _span(values: Sequence[float], form: str) -> str:
    if not values:
        return "-"
    low, high = f"{min(values):{form}}", f"{max(values):{form}}"
    return low if low == high else f"{low} to {high}"


def _of_kind(lines: Sequence[Line], kind: str) -> tuple[Array, Array, Array]:
    """Hits, widths over the sample's, and which are promised, over the runs of a cell."""
    hits, width, standing = (
        np.concatenate([line["kinds"][kind][key] for line in lines]) for key in ("ours", "width", "standing")
    )
    return hits, width, standing != "b"


def _all(lines: Sequence[Line], key: str) -> Array:
    return np.concatenate([line["kinds"][kind][key] for line in lines for kind in line["kinds"]])


def _promised_rows(lines: Sequence[Line]) -> Array:
    """Whether the promised intervals on rows hold; with a condition there are none."""
    kinds = [kind for line in lines for kind in line["kinds"].values() if kind["rows"]]
    parts = [np.array(kind["rows"])[np.array(kind["standing"]) != "b"] for kind in kinds]
    return np.concatenate(parts) if parts else np.zeros(0)


def _by_answer(lines: Sequence[Line]) -> list[tuple[Array, Array]]:
    """Each answer's hits over the runs, and whether it was promised."""
    hits = np.array([np.concatenate([one["ours"] for one in line["kinds"].values()]) for line in lines])
    kept = np.array([np.concatenate([one["standing"] for one in line["kinds"].values()]) for line in lines]) != "b"
    return list(zip(hits.T, kept.T, strict=True))


def _share(hits: Array) -> str:
    return f"{float(np.mean(hits)):.3f}" if len(hits) else "-"


def _query_share(lines: Sequence[Line], standing: str) -> str:
    cells, held, _ = np.sum([line["queries"].get(standing, [0, 0, 0.0]) for line in lines], axis=0)
    return f"{held / cells:.3f}" if cells else "-"


def _cells(asked: Namespace) -> dict[str, int]:
    if asked.extent == "smoke":
        return {"health approx=1": 1}
    budgets = ("approx=0.3", "approx=1", "approx=5", "pure=1")
    draws = DRAWS if asked.extent == "full" else 40
    cells = {f"{name} {budget}": draws for budget in budgets for name in POPULATIONS if name not in PAIRS}
    return cells | {f"{name} approx=1": 10 if name == "narrow" else draws for name in PAIRS}


def _check(asked: Namespace, cell: str) -> object:
    return POPULATIONS[cell.split()[0]].read(asked.folder)


STUDY = Study(
    about=__doc__,
    name="research",
    data="adult/adult.csv and nist_acs_ma2019/ma2019.csv",
    cells=_cells,
    methods=METHODS,
    trial=lambda asked, cell, draw: FIRST_SEED + draw,
    check=_check,
    serves=lambda cell, draw, method: method in PAIRS.get(cell.split()[0], METHODS[:5]),
    missing=lambda method: NO_TWINIFY if method == "napsu-mq" and python_of("twinify") is None else None,
    work=work,
    text=tables,
)

if __name__ == "__main__":
    main(STUDY)

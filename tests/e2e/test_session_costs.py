"""What sessions cost, computed again from their files by the formulas of docs/privacy.md, without core's accounting."""

import copy
import itertools
import json
import math
import zipfile
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import dpgm_core as dpgm
from dpgm_core import Budget, Domain, Terms, Workload
from tests.curator.merging import CODES, DOMAIN, MERGES, WORKLOAD, opened, steps

SLACK = 2.0**-30
SIZES = {"two labels": [2, 2, 2, 2], "labels": [2, 3, 2, 4]}
BUDGETS = {"pure": Budget.pure(4), "zcdp": Budget.zcdp("1/2"), "approx": Budget.approx(1, "1e-6")}


def number(text):
    """Of an exact text."""
    return float(Fraction(text))


def tables_cost(step, cliques, sizes, exchanged, rows, kind):
    """Each table moves by as many rows in one cell, or in two where a person is exchanged, which one cell does not
    show. A cell's Gaussian noise costs shift^2 / (2 sigma^2), its Laplace noise shift / scale."""
    cost = 0.0
    for clique, calibration in zip(cliques, step["calibration_of"], strict=True):
        noise = step["calibrations"][calibration]["noise"]
        cells = math.prod(sizes[name] for name in clique)
        hit = 1 if not exchanged else 2 if cells > 1 else 0
        each = rows / number(noise["scale"]) if kind == "pure" else rows**2 / (2 * number(noise["sigma_squared"]))
        cost += hit * each
    return cost


def descent_cost(step, cliques, sizes, moved, kind):
    """(2 h s sqrt(S) + sqrt(C) 2^-30)^2 / 8, or 2 h s S + C 2^-30; S of a record's residuals, C choices."""
    names = {name for clique in cliques for name in clique}
    pairs = step["loss"] == "pairs"
    touched = sum(sizes[name] - 1 if pairs else 1 for name in names)
    choices = sum(math.comb(sizes[name], 2) if pairs else 1 for name in names)
    grid = step["residual_grid"]
    largest = grid if step["loss"] == "softmax" else math.floor(grid / (1 + math.exp(-number(step["radius"]))))
    reach, unit = (touched * largest, grid) if kind == "pure" else (touched * largest**2, grid**2)
    if step["clip"] is not None:
        reach = min(reach, math.floor(Fraction(step["clip"]) * unit * touched))
    h = number(step["temperature"])
    if kind == "pure":
        return 2 * h * moved * reach + choices * SLACK
    return (2 * h * moved * math.sqrt(reach) + math.sqrt(choices) * SLACK) ** 2 / 8


def recomputed(document):
    """The kind of the session's budget, and what each step costs: epsilon or rho."""
    session, terms = document["session"], document["terms"]
    kind = "pure" if "epsilon" in session["budget"] else "zcdp"
    fine = {name: len(one["labels"]) for name, one in document["domain"]["attributes"].items()}
    coarse = fine | {name: max(codes) + 1 for name, codes in session["merges"].items()}
    candidates = [one for order in (1, 2) for one in itertools.combinations(fine, order)]
    rows, exchanged = terms["rows_per_person"], terms["neighbours"] == "replace-one"
    moved = 2 * rows if exchanged else rows
    found, before = [], None
    for step in document["steps"]:
        sizes = coarse if step.get("coarse") else fine
        numbers = step["cliques"] if step["kind"] == "measure" else step["candidates"]
        before = numbers = before if numbers is None else numbers
        cliques = [candidates[one] for one in numbers]
        if step["kind"] == "measure":
            found.append(tables_cost(step, cliques, sizes, exchanged, rows, kind))
        elif step["kind"] == "select":
            each = 2 * number(step["temperature"]) * step["grid"] * moved + SLACK
            picks = sum(map(len, step["chosen"]))
            found.append(picks * (each if kind == "pure" else each**2 / 8))
        elif step["kind"] in ("score", "mean"):
            sigma_squared = number(step["calibration"]["noise"]["sigma_squared"])
            count = len(cliques) if step["kind"] == "score" else len(step["groups"] or [cliques])
            found.append(count * (1024 * moved) ** 2 / (2 * sigma_squared))
        else:
            assert step["kind"] == "descend"
            found.append(descent_cost(step, cliques, sizes, moved, kind))
    return kind, found


def converted(rho, delta):
    """The epsilon of rho at delta: Canonne, Kamath and Steinke (2020), Corollary 13, over its order."""

    def at(log_order):
        more = math.exp(log_order)
        return (1 + more) * rho + (math.log(1 / delta) - math.log1p(more)) / more + math.log(more / (1 + more))

    return float(minimize_scalar(at, bounds=(-5, 15), method="bounded", options={"xatol": 1e-10}).fun)


def check(document, release):
    """Every step costs what the file's numbers say, the sum fits the session, and the session what is stated."""
    kind, costs = recomputed(document)
    told = [float(one.cost.epsilon if kind == "pure" else one.cost.rho) for one in release.steps]
    assert costs == pytest.approx(told, rel=1e-9)
    budget = number(document["session"]["budget"]["epsilon" if kind == "pure" else "rho"])
    assert 0.5 * budget < sum(costs) <= budget * (1 + 1e-12)
    cost = document["cost"]
    if "delta" in cost:
        epsilon = converted(budget, number(cost["delta"]))
        assert number(cost["epsilon"]) * (1 - 1e-6) < epsilon <= number(cost["epsilon"])
    else:
        assert cost == document["session"]["budget"]


def read(path):
    """The facts of a release's file."""
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("release.json"))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("kind", BUDGETS)
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_the_cost_in_files_of_frank_wolfe(tmp_path, neighbours, kind, sizes):
    """Tables, every descent and the rest of the budget; logistic, softmax and pairs, both relations."""
    domain = Domain.from_sizes(dict(zip("abcd", SIZES[sizes], strict=True)))
    codes = np.random.default_rng(0).integers(0, SIZES[sizes], (300, 4))
    options = {"width": 0.5, "steps": 3} | ({"regression": "pairs"} if kind == "approx" else {})
    asked = {"terms": Terms(neighbours=neighbours), "save_release": tmp_path / "x.dpgm"}
    selector, workload = {"name": "mrf-fw"} | options, Workload.all(domain, order=2)
    release, _ = dpgm.select(codes, selector, BUDGETS[kind], workload, **asked)
    document = read(tmp_path / "x.dpgm")
    assert sum(step["kind"] == "descend" for step in document["steps"]) >= 2
    check(document, release)
    sharper = copy.deepcopy(document)
    sharper["steps"][1]["temperature"] = str(Fraction(sharper["steps"][1]["temperature"]) * Fraction(101, 100))
    with pytest.raises(AssertionError):
        check(sharper, release)


@pytest.mark.parametrize("rows", [1, 2])
def test_the_cost_in_files_of_the_learner(tmp_path, rows):
    """The learner's file too, and persons of two rows."""
    names = "abcd"
    domain = Domain.from_sizes(dict.fromkeys(names, 2))
    codes = np.random.default_rng(0).integers(0, 2, (4, 300))
    data = {"id": np.arange(300) // 2, **dict(zip(names, codes, strict=True))}
    terms = Terms(neighbours="add-remove", person="id", rows_per_person=rows)
    learner = {"name": "mrf-fw", "width": 0.5, "steps": 3}
    asked = {"learner": learner, "terms": terms, "save_release": tmp_path / "x.dpgm"}
    fit = dpgm.fit(data, dpgm.Structure.complete(domain), Budget.zcdp("1/2"), **asked)
    check(read(tmp_path / "x.dpgm"), fit.model.releases[0])


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", BUDGETS)
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_the_cost_in_files_of_merged_codes(tmp_path, neighbours, kind):
    """Every kind of step before a merge and after it: as many labels and cells as there were then."""
    curator = opened(CODES, DOMAIN, BUDGETS[kind], neighbours=neighbours, save_to=tmp_path / "x.dpgm")
    with curator.session(workload=WORKLOAD) as session:
        steps(session, session.domain, pairs=False)
        steps(session, session.coarsen(MERGES), pairs=True)
    document = read(tmp_path / "x.dpgm")
    kinds = [step["kind"] for step in document["steps"]]
    assert kinds[: len(kinds) // 2] == kinds[len(kinds) // 2 :] and len(set(kinds)) == (3 if kind == "pure" else 5)
    check(document, dpgm.load_release(tmp_path / "x.dpgm"))

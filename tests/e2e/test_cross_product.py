"""Every learner x mechanism x kind of budget x way of taking it: it works and costs what was asked, or is refused."""

import itertools
import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm.cli import main
from dpgm_core.errors import UnknownComponent
from dpgm_core.sources import as_source
from tests.fixtures import Unread

BUDGETS = {"pure": dpgm.Budget.pure(2), "zcdp": dpgm.Budget.zcdp("0.5"), "approx": dpgm.Budget.approx(2, "1e-4")}
MECHANISMS = ("laplace", "gaussian")
LEARNERS = ("eb-map", "naive-mle", "cgm-em", "psgd", "psgd-clip")

#: Kinds of budget that one release of a mechanism can spend.
ONE = {"laplace": {"pure", "zcdp"}, "gaussian": {"zcdp", "approx"}}
#: Kinds that many rounds can: the accountant turns (epsilon, delta) into zCDP per round, for any noise.
MANY = {"laplace": {"pure", "zcdp", "approx"}, "gaussian": {"zcdp", "approx"}}

CHAIN = dpgm.Structure.chain(dpgm.Domain.from_sizes({"a": 2, "b": 3, "c": 2}))
CODES = np.random.default_rng(5).integers(0, [2, 3, 2], (300, 3))


def made(learner, sampling_rate=0.5):
    """The learner, small; skipped where its plugin is not installed."""
    options = {"epochs": 2, "sampling_rate": sampling_rate} if learner.startswith("psgd") else {}
    options |= {"mode": "clip"} if learner == "psgd-clip" else {}
    return found("learner", learner.removesuffix("-clip"), **options)


def found(kind, name, **options):
    """A component, or a skip."""
    try:
        return dpgm.make(kind, name, **options)
    except UnknownComponent:
        pytest.skip(f"{kind} {name} is not installed")


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("learner", "mechanism", "kind"), list(itertools.product(LEARNERS, MECHANISMS, BUDGETS)))
def test_every_learner_with_every_mechanism_and_budget(learner, mechanism, kind):
    """What is served spends at most the budget and learns a proper model; the rest is refused with nothing read."""
    budget, noise = BUDGETS[kind], found("mechanism", mechanism)
    served = (MANY if learner.startswith("psgd") else ONE)[mechanism]
    asked = {"terms": dpgm.Terms(neighbours="add-remove", total=300.0), "randomness": dpgm.SeededRandomness(2)}
    if kind not in served:
        with pytest.raises(dpgm.BudgetError, match=mechanism):
            dpgm.fit(Unread(), CHAIN, budget, noise, made(learner), **asked)
        return
    done = dpgm.fit(CODES, CHAIN, budget, noise, made(learner), **asked)
    assert done.release.cost <= budget and done.release.cost.kind == kind
    assert done.model.marginal("a").sum() == pytest.approx(1)
    assert math.isfinite(done.model.entropy())


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("mechanism", "kind"), list(itertools.product(MECHANISMS, BUDGETS)))
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_every_subsampled_release(mechanism, kind, neighbours):
    """A single round at rate 1/2 is served like many, under either relation."""
    source = CODES if kind in MANY[mechanism] else Unread()
    records = source if isinstance(source, Unread) else as_source(source)
    asked = {"terms": dpgm.Terms(neighbours=neighbours), "randomness": dpgm.SeededRandomness(2)}
    curator = dpgm.LiveCurator(records, CHAIN, found("mechanism", mechanism), budget=BUDGETS[kind], **asked)
    if isinstance(source, Unread):
        with pytest.raises(dpgm.BudgetError):
            curator.rounds(1, sampling_rate=0.5)
        assert curator.remaining == BUDGETS[kind]
    else:
        with curator.rounds(1, sampling_rate=0.5) as rounds:
            assert rounds.next().cost == BUDGETS[kind]
        assert curator.remaining.is_zero


@pytest.mark.sampled(3)
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("learner", LEARNERS)
def test_both_relations_without_subsampling(learner, neighbours):
    """At rate 1 every learner works under either relation, and replace-one draws more noise."""
    asked = {"terms": dpgm.Terms(neighbours=neighbours, total=300.0), "randomness": dpgm.SeededRandomness(2)}
    noise, clips = found("mechanism", "gaussian"), learner == "psgd-clip"
    done = dpgm.fit(CODES, CHAIN, dpgm.Budget.zcdp(1), noise, made(learner, sampling_rate=1), **asked)
    factor = 1 if neighbours == "add-remove" else 4 if clips else 2
    base = 2 * 1024**2 if clips else 2
    assert done.release.calibrations[0].sensitivity.l2_squared == factor * base


@pytest.mark.landing
@pytest.mark.parametrize("learner", ["eb-map", "naive-mle", {"name": "cgm-em", "e_step": "nlbp"}, "cgm-em"])
@pytest.mark.parametrize(("mechanism", "inference"), [("laplace", "junction-tree"), ("gaussian", "loopy-bp")])
def test_every_learner_learns_with_both_engines(mechanism, inference, learner):
    """With next to no noise marginals come out right, by every E-step too."""
    codes = np.repeat(CODES, 30, axis=0)
    asked = {"terms": dpgm.Terms(neighbours="add-remove"), "randomness": dpgm.SeededRandomness(3)}
    model = dpgm.fit(codes, CHAIN, dpgm.Budget.zcdp(50), mechanism, learner, inference, **asked).model
    assert model.marginal("b") == pytest.approx(np.bincount(codes[:, 1]) / len(codes), abs=0.02)


HEALTH = Path(__file__).resolve().parents[2] / "docs" / "examples" / "health"


def test_the_health_example_has_a_variant_at_epsilon_delta(tmp_path, capsys):
    """health-gaussian.toml runs on a copy, spends (1, 1e-6) of (10, 1e-5), and keeps the number of rows in sight."""
    folder = shutil.copytree(HEALTH, tmp_path / "health", ignore=shutil.ignore_patterns("out"))
    main(["fit", str(folder / "health-gaussian.toml"), "--json"])
    done = json.loads(capsys.readouterr().out)
    assert done["spent"] == {"epsilon": "1", "delta": "1/1000000"}
    assert done["left"] == {"epsilon": "9", "delta": "9/1000000"}
    assert done["private"] and done["unsafe"] is None and done["converged"]
    assert done["records"]["total"] == pytest.approx(20190, abs=200)  # 10 standard deviations of the estimate

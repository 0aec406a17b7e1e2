"""Every mechanism with every kind of budget, learner and engine on a tiny model: it works, or it says what would."""

import itertools
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm.cli import main

HEALTH = Path(__file__).resolve().parents[2] / "docs" / "examples" / "health"
BUDGETS = {"pure": dpgm.Budget.pure(2), "zcdp": dpgm.Budget.zcdp("0.5"), "approx": dpgm.Budget.approx(2, "1e-4")}
#: mechanism x kind of budget, as docs/noise.md has it
SERVED = {("laplace", "pure"), ("laplace", "zcdp"), ("gaussian", "zcdp"), ("gaussian", "approx")}

DOMAIN = dpgm.Domain.from_sizes({"a": 2, "b": 3, "c": 2})
PLAIN = dpgm.Structure(DOMAIN, [("a", "b"), ("b", "c")])
TIED = dpgm.Structure(dpgm.Domain.from_sizes({"a": 2, "b": 2, "c": 2}), [], tied=[[("a", "b"), ("b", "c")]])


def records(structure):
    """Codes of 300 correlated records."""
    rng = np.random.default_rng(5)
    first = rng.integers(0, 2, 300)
    return np.stack([np.where(rng.random(300) < 0.8, first, rng.integers(0, 2, 300)) for _ in range(3)], axis=1)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("structure", [PLAIN, TIED], ids=["plain", "tied"])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize(("mechanism", "kind"), list(itertools.product(["laplace", "gaussian"], BUDGETS)))
def test_every_pair_works_or_is_refused(mechanism, kind, neighbours, structure, tmp_path):
    """Served pairs spend at most what was asked, and the release survives a file; others touch no record."""
    budget = BUDGETS[kind]
    arguments = {"neighbours": neighbours, "randomness": dpgm.SeededRandomness(3)}
    if (mechanism, kind) not in SERVED:
        with pytest.raises(dpgm.BudgetError, match=mechanism):
            dpgm.release(Untouchable(), structure, budget, mechanism, **arguments)
        return
    found = dpgm.release(records(structure), structure, budget, mechanism, **arguments)
    assert found.cost <= budget and found.cost.kind == kind and found.unsafe is None
    found.save(tmp_path / "release")
    back = dpgm.load_release(tmp_path / "release")
    assert back.noise == found.noise and (back.tables.values == found.tables.values).all()


@pytest.mark.sampled(5)
@pytest.mark.parametrize("learner", ["eb-map", "naive-mle", {"name": "cgm-em", "e_step": "nlbp"}, "cgm-em"])
@pytest.mark.parametrize("inference", ["junction-tree", "loopy-bp"])
@pytest.mark.parametrize(("mechanism", "kind"), sorted(SERVED))
def test_every_learner_learns_from_every_noise(mechanism, kind, learner, inference):
    """All learners, E-steps and engines serve both noises; with little noise the marginals come out right."""
    codes = np.repeat(records(PLAIN), 30, axis=0)
    budget = BUDGETS[kind] * 100 if kind != "approx" else dpgm.Budget.approx(50, "1e-4")
    terms = {"neighbours": "add-remove", "randomness": dpgm.SeededRandomness(3)}
    fit = dpgm.fit(codes, PLAIN, budget, mechanism, learner, inference, **terms)
    true = np.bincount(codes[:, 0], minlength=2) / len(codes)
    assert fit.model.marginal("a") == pytest.approx(true, abs=0.02)


def test_the_health_example_has_a_variant_at_epsilon_delta(tmp_path, capsys):
    """health-gaussian.toml runs on a copy, spends (1, 1e-6) of (10, 1e-5), and keeps the number of rows in sight."""
    folder = shutil.copytree(HEALTH, tmp_path / "health", ignore=shutil.ignore_patterns("out"))
    main(["fit", str(folder / "health-gaussian.toml"), "--json"])
    done = json.loads(capsys.readouterr().out)
    assert done["spent"] == {"epsilon": "1", "delta": "1/1000000"}
    assert done["left"] == {"epsilon": "9", "delta": "9/1000000"}
    assert done["private"] and done["unsafe"] is None and done["converged"]
    assert done["records"]["total"] == pytest.approx(20190, abs=200)  # 10 standard deviations of the estimate


class Untouchable:
    """A source whose first batch is a failed test."""

    def batches(self, domain, columns):
        """Never to be called."""
        raise AssertionError("a record was touched")

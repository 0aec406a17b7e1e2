"""dpgm on models of several releases: fit, learn, query, sample and evaluate say what all of them cost."""

from pathlib import Path

import numpy as np
import pytest
from attrs import evolve

import dpgm_core as dpgm
from app.tests.made import uniform
from dpgm.cli.show import count_noisy_tables
from dpgm_core import Budget

ALL = "Differential privacy with epsilon = 1 under add-remove neighbours;"


@pytest.fixture
def shares(adaptive, registered):
    """A learner that takes 9/10 of its budget, and then 1/10; another that fails after both."""

    class Failing(adaptive):
        def learn(self, curator, inference, *, randomness, progress):
            super().learn(curator, inference, randomness=randomness, progress=progress)
            raise ArithmeticError("not my day")

    registered("shares", adaptive)
    registered("failing", Failing)
    return "shares"


@pytest.fixture
def fitted(spec, shares, facts) -> dict:
    return facts("fit", spec, "--set", f"learner={shares}")


def test_fit_says_what_was_spent(spec, fitted, ran, facts):
    """The JSON, the ledger and the text: epsilon = 1, and every file of a release."""
    assert Budget.parse(fitted["spent"]) == Budget.pure(1)
    assert Budget.parse(fitted["left"]) == Budget.pure("1.5")
    assert fitted["guarantee"].startswith(ALL)
    names = ["visits.release.dpgm", "visits.release-2.dpgm"]
    assert [Path(file).name for file in fitted["releases"]] == names and fitted["release"] == fitted["releases"][0]
    costs = [dpgm.load_release(file).cost for file in fitted["releases"]]
    assert costs == [Budget.pure("9/10"), Budget.pure("1/10")]
    history = facts("ledger", "show", spec.parent / "out/visits.ledger")
    assert Budget.sum(Budget.parse(one["cost"]) for one in history["charges"]) == Budget.pure(1)
    out, _ = ran("fit", spec, "--set", "learner=shares")
    assert "spent:   epsilon = 1; left in the ledger: epsilon = 0.5\n" in out
    assert out.count("release: ") == 2 and ALL in out


def test_learn_takes_all_releases(fitted, dpgm_command, facts):
    """In their order; the model costs what the first one did, and the text says that it was paid before."""
    again = facts("learn", *fitted["releases"], "--learner", "shares")
    assert Budget.parse(again["spent"]) == Budget.pure(1)
    assert again["guarantee"] == fitted["guarantee"] and again["releases"] == fitted["releases"]
    assert Path(again["model"]).name == "visits.shares.dpgm"
    assert dpgm.load_model(again["model"]).cost == Budget.pure(1)
    code, out, _ = dpgm_command("learn", *fitted["releases"], "--learner", "shares")
    assert code == 0 and "paid before: epsilon = 1\n" in out and ALL in out


def test_learn_refuses_what_does_not_match(fitted, refused):
    """No file, another order, one of two for a learner of two, one of them twice, a release for the output."""
    first, second = fitted["releases"]
    assert "saved release 1 of 2 was made for epsilon = 0.1" in refused("learn", second, first, "--learner", "shares")
    assert "the saved release was made for epsilon = 0.9" in refused("learn", first, "--learner", "shares")
    assert "one release is given twice" in refused("learn", first, first)
    assert "itself" in refused("learn", first, second, "--learner", "shares", "-o", second)


def test_a_learner_of_one_release_learns_from_all_as_one(tmp_path, fitted, dpgm_command, facts):
    """The default one does: the model has all releases and costs what they do, and its answers have error bars."""
    path = tmp_path / "pooled.dpgm"
    found, model = facts("learn", *fitted["releases"], "-o", path), dpgm.load_model(path)
    assert found["guarantee"] == fitted["guarantee"] and Budget.parse(found["spent"]) == Budget.pure(1)
    assert len(model.releases) == 2 and found["records"]["total"] == model.release.total
    assert model.release.total_variance < min(one.total_variance for one in model.releases)
    assert dpgm_command("query", path, "sex", "--intervals", "0.9", "--replicates", "2", "--seed", "1")[0] == 0
    told = {tuple(row["clique"]): row["total_variation"] for row in facts("compare", path)["tables"]}
    assert told == pytest.approx(dpgm.total_variation(model, model.release.tables))


def test_one_release_of_several_can_be_learned_from(fitted, facts):
    assert Budget.parse(facts("learn", fitted["releases"][1])["spent"]) == Budget.pure("1/10")


def test_records_and_tables_are_told_by_the_best_release(fitted):
    """The number of records is that of the least noisy release; a table is noisy if it is in each of its releases."""
    first, last = (dpgm.load_release(file) for file in fitted["releases"])
    assert first.total_variance < last.total_variance
    assert fitted["records"] == {"total": first.total, "policy": "estimated"}
    drowned = evolve(last, total=1.0)
    assert (count_noisy_tables([first]), count_noisy_tables([drowned])) == ((0, 1), (1, 1))
    assert count_noisy_tables([first, drowned]) == count_noisy_tables([drowned, first]) == (0, 1)


def test_query_sample_and_evaluate_say_what_all_cost(tmp_path, fitted, dpgm_command, refused, facts):
    """All commands state the whole guarantee; distances are to the tables with the least noise."""
    path = fitted["model"]
    document = facts("query", path)
    assert document["cost"] == {"epsilon": "1"} and document["guarantee"] == fitted["guarantee"]
    assert document["releases"] == 2
    assert ALL in dpgm_command("query", path)[1]
    assert facts("query", path, "sex")["private"] is True
    assert facts("sample", path, "-n", 5, "-o", tmp_path / "s.csv")["guarantee"] == fitted["guarantee"]
    asked = ("query", path, "sex", "--intervals", "0.9")
    assert "cannot be bootstrapped: it learned from 2 releases" in refused(*asked, "--replicates", 5)
    assert facts(*asked)["rows"][0]["low"] < facts(*asked)["rows"][0]["high"]
    model = dpgm.load_model(path)
    distances = dpgm.total_variation(model, model.releases[0].tables)
    told = {tuple(row["clique"]): row["total_variation"] for row in facts("compare", path)["tables"]}
    assert told == pytest.approx(distances)


def test_a_failed_learner_says_where_its_releases_are(spec, shares, dpgm_command):
    """Exit 1; the last word works as it is printed, and names the last file too."""
    code, out, err = dpgm_command("fit", spec, "--set", "learner=failing")
    assert (code, out) == (1, "")
    assert "2 releases are paid for and kept" in err and "visits.release-2.dpgm" in err
    hint = next(line for line in err.splitlines() if "with: dpgm learn " in line)
    assert dpgm_command("learn", hint.split("dpgm learn ")[1])[0] == 0


def test_mixed_kinds_need_a_conversion_delta(tmp_path, adaptive, registered, refused, facts):
    class Mixed(adaptive):
        def learn(self, curator, inference, *, randomness, progress):
            curator.release(budget=Budget.pure(1))
            curator.release(budget=Budget.zcdp("1/2"))
            return dpgm.Fit(model=uniform(curator.structure))

    registered("mixed", Mixed)
    structure = dpgm.Structure(dpgm.Domain.from_sizes({"a": 2}), [("a",)])
    files = [tmp_path / "pure.dpgm", tmp_path / "zcdp.dpgm"]
    for file, budget, mechanism in zip(
        files, (Budget.pure(1), Budget.zcdp("1/2")), ("laplace", "gaussian"), strict=True
    ):
        dpgm.release(np.zeros((9, 1), int), structure, budget, mechanism, neighbours="add-remove").save(file)
    assert "state a conversion delta" in refused("learn", *files, "--learner", "mixed")
    assert "conversion_delta" in refused("learn", *files, "--learner", "mixed", "--conversion-delta", "2")
    assert "conversion_delta" in refused("learn", *files, "--learner", "mixed", "--conversion-delta", "small")
    learned = facts("learn", *files, "--learner", "mixed", "--conversion-delta", "1e-6")
    spent = Budget.parse(learned["spent"])
    assert spent.kind == "approx" and str(spent) == "(epsilon, delta) = (~6.22153, 1e-06)"
    assert dpgm.load_model(learned["model"]).cost == spent

"""Figures 1 and 3a: Proposition 4 against draws, the ways along the penalty, what agreement means, bad input."""

import numpy as np
import pytest

pytest.importorskip("joblib")

from dpgm_naive_mle.projection import targets

from benchmarks import fig1, fig3a
from benchmarks.harness.main import main
from benchmarks.harness.runs import Task
from benchmarks.protocol.populations import Population, draw_release, structure_of
from dpgm_core import Tables, learn, make


def test_proposition_4_predicts_the_error():
    """Mean of 40 draws within 8 % on the side of the noise and of sampling; each draw's ratio has a standard deviation
    of about .08, so 8 % is six standard errors and a false alarm has probability below 1e-8."""
    for epsilon, records in ((0.1, 1000), (1.0, 10**7)):
        found = [fig1.noisy_error(epsilon, records, trial, size=5) for trial in range(40)]
        ratio = np.mean([one["mse"] / one["predicted"] for one in found])
        assert ratio == pytest.approx(1, abs=0.08)


def test_the_error_falls_along_both_slopes():
    """Ten times the records: a hundredth of the error where noise rules, a tenth where sampling does."""
    error = {n: fig1.prediction(np.array([0.01]), n, 9, 0.1)[0] for n in (100, 1000, 10**9, 10**10)}
    assert error[100] / error[1000] == pytest.approx(100, rel=0.01)
    assert error[10**9] / error[10**10] == pytest.approx(10, rel=0.01)


def test_the_terms_break_even_where_the_paper_says():
    """2 |C|^2 / (eps^2 mu (1 - mu)) records: 1.64e6 for 9 cliques, eps = .1 and mu = .01 (ALGORITHMS F.2)."""
    mu, records = 0.01, 2 * 81 / (0.01 * 0.0099)
    assert records == pytest.approx(1.64e6, rel=0.01)
    sampling = mu * (1 - mu) / records
    assert fig1.prediction(np.array([mu]), records, 9, 0.1)[0] == pytest.approx(2 * sampling)


def test_chain_counts_are_counts_of_records():
    """Whole numbers that sum to N, agree where tables overlap, and are near their expectation."""
    population = Population.draw(structure_of("chain1", 3, 4), 0)
    counts = Tables(population.structure, fig1.chain_counts(population, 10**6, 1))
    first, second, third = counts.arrays()
    assert counts.values.dtype.kind == "i"
    assert first.sum() == second.sum() == third.sum() == 10**6
    assert np.array_equal(first.sum(axis=0), second.sum(axis=1))
    assert np.array_equal(second.sum(axis=0), third.sum(axis=1))
    # six standard deviations of the widest cell, 27 cells: false alarm below 1e-7; seeded besides
    assert np.abs(counts.values / 10**6 - population.marginals).max() < 6 * 0.5e-3


def test_the_path_is_that_of_the_learner():
    """Warm starts from stronger penalties end where naive MLE ends by itself."""
    population = Population.draw(structure_of("chain1", 3, 4), 0)
    noisy = draw_release(population, 2000, 0.5, 1)
    kls = fig1.path(population, targets(noisy, project=True))
    for number in (4, 8):
        fit = learn(noisy, make("learner", "naive-mle", l2=fig1.LAMBDAS[number]))
        assert kls[number] == pytest.approx(population.kl(fit.model.potentials.values), rel=1e-3)


def test_true_statistics_want_no_penalty_and_noisy_ones_do():
    """Figure 1c in small: the best penalty is a weak one for true tables, a strong one for noisy tables."""
    kls = {method: fig1.work(Task("c N=10000 k=4", 0, method), None)["kl"] for method in ("true", "noisy")}
    assert np.argmin(kls["true"]) < np.argmin(kls["noisy"])
    assert min(kls["true"]) < min(kls["noisy"])
    assert kls["noisy"][0] > 3 * min(kls["noisy"])


def test_projection_brings_tables_nearer_to_the_truth(monkeypatch):
    """In squared error, where the noise makes cells negative; the way along the penalty is left out here."""
    monkeypatch.setattr(fig1, "path", lambda population, target: [])
    found = {method: fig1.work(Task("b N=2000 k=4", 0, method), None) for method in ("projected", "unprojected")}
    assert found["projected"]["mse"] < found["unprojected"]["mse"] <= found["unprojected"]["mse_noisy"]


def test_agreement_of_a_table_with_itself():
    """Correlations of 1 and no distance; cells that are not above 0 are left out of the logarithms alone."""
    true = np.array([0.1, 0.2, 0.3, 0.4])
    same = fig3a.agreement(true, true, 2)
    assert same == pytest.approx({"correlation": 1, "log_correlation": 1, "l1": 0, "positive": 1})
    shifted = fig3a.agreement(true, true - 0.1, 2)
    assert shifted["positive"] == 0.75
    assert shifted["l1"] == pytest.approx(0.2)


@pytest.mark.parametrize("method", ["noisy tables", "naive", "cgm-em"])
def test_more_records_agree_better(method):
    """Thirty times the records at eps = 1: every measure of agreement improves."""
    few, many = (fig3a.work(Task(f"N={n} eps=1.0 k=3", 0, method), None) for n in (1000, 30_000))
    assert many["l1"] < few["l1"]
    assert many["correlation"] > few["correlation"]


@pytest.mark.parametrize("figure", [fig1, fig3a])
def test_bad_input_is_one_line(figure, tmp_path, capsys):
    """A cell that does not exist, a report without runs: exit code 2 and nothing written."""
    store = tmp_path / "store.jsonl"
    for asked in (["--smoke", "--cells", "nonsense"], ["--report"]):
        with pytest.raises(SystemExit) as left:
            main(figure.STUDY, [*asked, "--store", str(store)])
        assert left.value.code == 2
        assert len(capsys.readouterr().err.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_a_run_and_its_report(tmp_path, capsys):
    """Numbers, table and both plots beside the store that was named."""
    store = tmp_path / "store.jsonl"
    main(fig1.STUDY, ["--smoke", "--cells", "a *", "--store", str(store)])
    main(fig1.STUDY, ["--report", "--store", str(store)])
    assert "Proposition 4" in capsys.readouterr().out
    assert {path.suffix for path in tmp_path.glob("[!.]*")} == {".jsonl", ".md", ".png", ".svg"}

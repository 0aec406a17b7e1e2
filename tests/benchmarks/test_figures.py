"""Bernstein et al.: Propositions 3 to 5, the way along the penalty, what agreement means, the study and its claims."""

from argparse import Namespace

import numpy as np
import pytest

pytest.importorskip("joblib")

from dpgm_naive_mle.projection import targets

from benchmarks.harness.main import main
from benchmarks.harness.runs import Task, read
from benchmarks.papers import bernstein, bernstein_pages
from benchmarks.papers import bernstein_runs as runs
from benchmarks.protocol.populations import Population, draw_release, structure_of
from dpgm_core import Tables, learn, make


def test_proposition_4_predicts_the_error():
    """Mean of 40 draws within 8 % on the side of the noise and of sampling; each draw's ratio has a standard deviation
    of about .08, so 8 % is six standard errors and a false alarm has probability below 1e-8."""
    for epsilon, records in ((0.1, 1000), (1.0, 10**7)):
        found = [runs.noisy_error(epsilon, records, trial, size=5) for trial in range(40)]
        ratio = np.mean([one["mse"] / one["predicted"] for one in found])
        assert ratio == pytest.approx(1, abs=0.08)


def test_the_error_falls_along_both_slopes():
    """Ten times the records: a hundredth of the error where noise rules, a tenth where sampling does."""
    error = {n: runs.prediction(np.array([0.01]), n, 9, 0.1)[0] for n in (100, 1000, 10**9, 10**10)}
    assert error[100] / error[1000] == pytest.approx(100, rel=0.01)
    assert error[10**9] / error[10**10] == pytest.approx(10, rel=0.01)


def test_the_terms_break_even_where_the_paper_says():
    """2 |C|^2 / (eps^2 mu (1 - mu)) records: 1.64e6 for 9 cliques, eps = .1 and mu = .01 (ALGORITHMS F.2)."""
    mu, records = 0.01, 2 * 81 / (0.01 * 0.0099)
    assert records == pytest.approx(1.64e6, rel=0.01)
    sampling = mu * (1 - mu) / records
    assert runs.prediction(np.array([mu]), records, 9, 0.1)[0] == pytest.approx(2 * sampling)


def test_chain_counts_are_counts_of_records():
    """Whole numbers that sum to N, agree where tables overlap, and are near their expectation."""
    population = Population.draw(structure_of("chain1", 3, 4), 0)
    counts = Tables(population.structure, runs.chain_counts(population, 10**6, 1))
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
    kls = runs.path(population, targets(noisy, project=True))
    for number in (4, 8):
        fit = learn(noisy, make("learner", "naive-mle", l2=runs.LAMBDAS[number]))
        assert kls[number] == pytest.approx(population.kl(fit.model.potentials.values), rel=1e-3)


def test_true_statistics_want_no_penalty_and_noisy_ones_do():
    """Figure 1c in small: the best penalty is a weak one for true tables, a strong one for noisy tables."""
    kls = {method: runs.work(Task("1c N=10000 k=4", 0, method), None)["kl"] for method in ("true", "noisy")}
    assert np.argmin(kls["true"]) < np.argmin(kls["noisy"])
    assert min(kls["true"]) < min(kls["noisy"])
    assert kls["noisy"][0] > 3 * min(kls["noisy"])


def test_projection_brings_tables_nearer_to_the_truth(monkeypatch):
    """In squared error, where the noise makes cells negative; the way along the penalty is left out here."""
    monkeypatch.setattr(runs, "path", lambda population, target: [])
    found = {method: runs.work(Task("1b N=2000 k=4", 0, method), None) for method in ("projected", "unprojected")}
    assert found["projected"]["mse"] < found["unprojected"]["mse"] <= found["unprojected"]["mse_noisy"]


def test_agreement_of_a_table_with_itself():
    """Correlations of 1 and no distance; cells that are not above 0 are left out of the logarithms alone."""
    true = np.array([0.1, 0.2, 0.3, 0.4])
    same = runs.agreement(true, true, 2)
    assert same == pytest.approx({"correlation": 1, "log_correlation": 1, "l1": 0, "positive": 1})
    shifted = runs.agreement(true, true - 0.1, 2)
    assert shifted["positive"] == 0.75
    assert shifted["l1"] == pytest.approx(0.2)


def test_more_records_agree_better():
    """Thirty times the records at eps = 1: every measure of agreement improves, for the tables and for each learner."""
    few, many = (runs.work(Task(f"3a N={n} eps=1.0 k=3", 0, "learners"), None)["results"] for n in (1000, 30_000))
    for label in ("noisy tables", "naive", "cgm-em"):
        assert many[label]["l1"] < few[label]["l1"] and many[label]["correlation"] > few[label]["correlation"]


def test_learned_marginals_become_as_good_as_without_noise():
    """The other half of Proposition 4: KL over that of the true tables falls to 1 (at 1e7 records within 5 %)."""
    few, many = (runs.learned(0.5, records, 0, 4) for records in (10**4, 10**7))
    assert few["kl"] > 1.5 * few["kl_true"] and many["kl"] == pytest.approx(many["kl_true"], rel=0.05)
    assert few["mse_learned"] < few["mse"]


def test_stirling_becomes_exact():
    """The relative error of N H(q_n) for log h(n) falls below 1e-3 by a million records; h(n) <= exp(N H) always."""
    found = [runs.stirling({"N": str(records), "k": "3"}, 0) for records in (100, 10**6)]
    errors = [one["entropy"] / one["log_h"] - 1 for one in found]
    assert 0 < errors[1] < 1e-3 < errors[0]


def test_sensitivities_are_the_paper_s():
    """Each record moves each table by one; a day's 24 segments by 24, and by 1 once normalised."""
    found = runs.sensitivity({"k": "3"}, 0)
    assert found["least"] == found["most"] == found["cliques"] == 24
    assert found["mobility_plain"] == 24 * found["mobility_cliques"] == 24 * found["mobility_normalised"]


def test_algorithm_1_as_printed_stalls():
    """With a constant step it ends further from the solution than with one that falls."""
    found = runs.algorithm({"N": "20000", "eps": "0.1", "k": "3"}, 0)
    assert found["constant .5"] > 5 * found["multipliers"]


def test_dp_sgd_of_the_study():
    """The best of the grid is never worse than its untuned point."""
    found = runs.work(Task("2 chain3 k=2 N=1000 eps=1", 0, "psgd"), None)["results"]
    assert found["psgd oracle"]["kl"] <= found["psgd untuned"]["kl"]


def line(cell, method, trial=0, **results):
    return {"cell": cell, "trial": trial, "method": method, "results": results, "cpu": 1.0, "by": "test"}


def test_claims_follow_their_lines():
    """CGM-EM against naive MLE: ahead of both, of the tiny penalty alone, of none; without runs nothing is claimed."""
    for naive, status in (
        ((9, 9), "reproduced"),
        ((9, 1), "with a caveat"),
        ((1, 1), "contradicted"),
    ):
        kls = {"cgm-em auto": 2.0, "cgm-em converged": 4.0, "naive tiny": naive[0], "naive auto": naive[1]}
        some = [
            line(
                "2 er k=5 N=10000 eps=0.5", "learners", **{name: {"kl": kl, "seconds": 1.0} for name, kl in kls.items()}
            )
        ]
        (found,) = [one for one in bernstein.claims(some) if one.name == "B11"]
        assert found.status == status and "2.00 times the KL of EM stopped" in found.found.replace("2.00 to ", "")
    every = bernstein.claims([])
    assert {one.status for one in every} == {"not attempted"} and len(every) == len({one.name for one in every})


def test_the_grid_has_every_panel_of_figure_2():
    """48 cells, each with every group of the paper's methods; every cell is read back by its own function."""
    asked = Namespace(extent="full")
    grid = bernstein.cells(asked)
    panels = [cell for cell in grid if cell.startswith("2 ")]
    assert len(panels) == 48
    assert all(bernstein.serves(cell, 0, method) for cell in panels for method in bernstein.METHODS["2"][:3])
    for cell in grid:
        assert any(bernstein.serves(cell, grid[cell] - 1, method) for method in bernstein.METHODS[cell.split()[0]]), (
            cell
        )


def test_bad_input_is_one_line(tmp_path, capsys):
    """A cell that does not exist, a report without runs: exit code 2 and nothing written."""
    store = tmp_path / "store.jsonl"
    for asked in (["--smoke", "--cells", "nonsense"], ["--report"]):
        with pytest.raises(SystemExit) as left:
            main(bernstein.STUDY, [*asked, "--store", str(store)])
        assert left.value.code == 2
        assert len(capsys.readouterr().err.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_a_run_and_its_report(tmp_path, capsys):
    """Numbers, claims and the pictures beside the store that was named; the second start has nothing to do."""
    store = tmp_path / "store.jsonl"
    given = ["--smoke", "--cells", "1a*,2 *,loopy*,3a*", "--only-methods", "tables,learners", "--store", str(store)]
    main(bernstein.STUDY, given)
    capsys.readouterr()
    main(bernstein.STUDY, given)
    said = capsys.readouterr()
    assert "nothing to do" in said.err and "| B11" in said.out
    assert {path.stem for path in tmp_path.glob("*.svg")} == {"fig1", "fig2-k3", "fig2-paper-k3", "fig3a", "loopy"}
    assert bernstein_pages.scored(bernstein_pages.beginning(read(store), "2"))

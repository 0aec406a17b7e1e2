"""CGM-EM: what its path is, where it ends, how accurate it is, and what it says when something went wrong."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from dpgm_cgm_em.learner import CgmEm
from dpgm_cgm_em.start import start_from_margins
from dpgm_cgm_em.weighting import slowness, weight_tables
from scipy.optimize import linprog

import dpgm_core as dpgm
from dpgm_core import Domain, OptionError, SeededRandomness, Structure, Tables
from dpgm_core.learning import expected_absolute
from dpgm_core.sources import as_source
from dpgm_testing import LearnerConformance
from dpgm_testing.learning import chain, dirichlet_model, sample_codes, simulated_release

BIG = 100  # an epsilon that leaves next to no noise: a scale of .03 records


def learn(noisy, inference="junction-tree", **options):
    return dpgm.learn(noisy, dpgm.make("learner", "cgm-em", **options), inference)


@pytest.fixture(scope="module")
def small():
    return simulated_release(dirichlet_model(chain(3, 3), 1), 500, 0.5, 1)


def least_misfit(noisy):
    """min |y - n|_1 over the scaled marginal polytope, by LP over all joint distributions."""
    structure = noisy.structure
    joint = list(itertools.product(*(range(size) for size in structure.domain.shape(structure.domain.names))))
    matrix = np.zeros((structure.cells, len(joint)))
    for number, group in enumerate(structure.groups):
        places = [structure.domain.names.index(name) for name in group[0]]
        for column, record in enumerate(joint):
            cell = np.ravel_multi_index([record[place] for place in places], structure.shapes[number])
            matrix[structure.slices[number].start + cell, column] = 1
    cells, count = matrix.shape
    y = noisy.tables.values.astype(float)
    actual = linprog(
        np.concatenate([np.zeros(count), np.ones(cells)]),
        A_ub=np.block([[matrix, -np.eye(cells)], [-matrix, -np.eye(cells)]]),
        b_ub=np.concatenate([y, -y]),
        A_eq=np.concatenate([np.ones(count), np.zeros(cells)])[None],
        b_eq=[noisy.total],
    )
    return actual.fun


def misfit(fit):
    """|y - N mu(theta)|_1 of a fitted model."""
    return float(np.abs(fit.release.tables.values - fit.release.total * fit.model.marginals().values).sum())


def test_the_path_leads_to_the_best_l1_fit(small):
    """The excess of |y - n|_1 over the LP optimum on the marginal polytope falls to next to 0 as tau grows."""
    best = least_misfit(small)
    excess = [misfit(learn(small, tau=tau, stop="fixed")) - best for tau in (0.5, 2.0, 8.0, 40.0)]
    assert excess[0] > 10
    assert all(later < earlier for earlier, later in itertools.pairwise(excess[:3]))
    assert -1e-9 * best < excess[-1] < 1e-3 * best + 0.05  # the optimum itself, up to rounding


def test_the_objective_never_falls(small):
    """log p(y|n_t), which is the joint objective after the M-step, is monotone along the path."""
    e_step = {"name": "collective-dual", "tolerance": 1e-9}
    for weight in ({}, {"steps": 7}):
        objective = [row["objective"] for row in learn(small, tau=4.0, stop="fixed", e_step=e_step, **weight).trace]
        assert np.all(np.diff(objective) >= -1e-4)


def test_the_m_step_reproduces_the_tables_exactly(small):
    """With theta <- theta + u the model's own tables are those of the last E-step: same misfit, no further call."""
    fit = learn(small, tau=1.0, stop="fixed")
    again = misfit(fit) / sum(
        cells * expected_absolute(noise) for cells, noise in zip(small.structure.sizes, small.noise, strict=True)
    )
    assert fit.trace[-1]["discrepancy"] == pytest.approx(again, rel=1e-9)


def test_tau_bounds_every_potential(small):
    """|theta - start| <= tau from the uniform start, whatever the number of steps."""
    for steps in (1, 3, 40):
        fit = learn(small, tau=0.7, stop="fixed", steps=steps)
        largest = np.abs(fit.model.potentials.values).max()
        assert 0.6 < largest <= 0.7 * (1 + 1e-9)
        assert len(fit.trace) == steps
        assert fit.certificate["tau"] == pytest.approx(0.7)


def test_merged_steps_follow_the_same_path():
    """One step per .1 of tau, the default, has the KL of round-by-round EM within 2 % around the best tau."""
    model = dirichlet_model(chain(5, 4), 2)
    noisy = simulated_release(model, 10_000, 0.1, 2)
    once = noisy.noise[0].dual.bound
    for tau in (0.5, 1.0, 1.5):
        e_step = {"name": "collective-dual", "tolerance": 1e-7, "share": 0.002}
        merged = learn(noisy, tau=tau, stop="fixed", e_step=e_step)
        unmerged = learn(noisy, tau=tau, stop="fixed", steps=round(tau / once), e_step=e_step)
        assert len(unmerged.trace) > 3 * len(merged.trace)
        assert model.kl(merged.model) == pytest.approx(model.kl(unmerged.model), rel=0.02)


def test_it_recovers_the_plain_fit_as_noise_vanishes():
    """Next to no noise: KL to the truth within 2 % of that of the maximum-likelihood fit to the true tables."""
    model = dirichlet_model(chain(4, 3), 3)
    exact = simulated_release(model, 20_000, BIG, 3)
    plain = dpgm.learn(exact, dpgm.make("learner", "naive-mle", l2=1e-9, project=False))
    fit = learn(exact, tau=30.0, stop="fixed", e_step={"name": "collective-dual", "tolerance": 1e-9, "share": 0.01})
    assert plain.model.kl(fit.model) < 1e-6
    assert model.kl(fit.model) == pytest.approx(model.kl(plain.model), rel=0.02)


def test_loopy_bp_on_a_cycle_takes_gradient_m_steps():
    """An approximate engine converges to a model far better than the uniform one, and claims no gap."""
    structure = Structure(Domain.from_sizes(dict.fromkeys("abcd", 3)), [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])
    model = dirichlet_model(structure, 4)
    noisy = simulated_release(model, 5000, 1.0, 4)
    exact, loopy = (learn(noisy, inference=name, tau=1.0, stop="fixed") for name in ("junction-tree", "loopy-bp"))
    assert "largest_gap" in exact.certificate
    assert "largest_gap" not in loopy.certificate
    assert loopy.converged
    assert model.kl(exact.model) < model.kl(loopy.model) < 2 * model.kl(exact.model)
    assert model.kl(loopy.model) < 0.3 * model.kl(dpgm.Model(structure, Tables.zeros(structure)))


@pytest.mark.parametrize("e_step", ["nlbp", "soft-sign", {"name": "nlbp", "damp": "marginals"}])
def test_any_e_step_learns(small, e_step):
    exact = learn(small, tau=1.0, stop="fixed")
    other = learn(small, tau=1.0, stop="fixed", e_step=e_step)
    uniform = dpgm.Model(small.structure, Tables.zeros(small.structure))
    assert exact.model.kl(other.model) < 0.2 * exact.model.kl(uniform)


def test_cliques_may_have_budgets_of_their_own():
    """tau is the capacity of every table, whatever its noise."""

    class Uneven:
        def check(self, structure, inference):
            inference.compile(structure)

        def learn(self, curator, inference, *, randomness, progress):
            first, *others = curator.structure.cliques
            noisy = curator.release(
                budget={first: dpgm.Budget.pure("0.9")} | {o: dpgm.Budget.pure("0.05") for o in others}
            )
            return dpgm.make("learner", "cgm-em", tau=0.9, stop="fixed").learn(
                dpgm.ReplayCurator(noisy), inference, randomness=randomness, progress=progress
            )

    model = dirichlet_model(chain(4, 3), 5)
    fit = dpgm.fit(
        sample_codes(model, 2000, 5),
        model.structure,
        dpgm.Budget.pure(1),
        neighbours="add-remove",
        learner=Uneven(),
        randomness=dpgm.SeededRandomness(5),
    )
    bounds = np.array([noise.dual.bound for noise in fit.release.noise])
    assert bounds.max() > 10 * bounds.min()
    for table in fit.model.potentials.arrays():
        assert 0.9 / 2 < np.abs(table).max() <= 0.9 * (1 + 1e-9)


def uneven(mechanism, ratio, seed, count=100_000):
    """A simulated release of a chain of five, of which every second table has `ratio` times the noise; its truth."""
    model = dirichlet_model(chain(5, 4), seed)
    cliques = model.structure.cliques
    shares = [Fraction(1, 10), Fraction(1, 10 * ratio)]
    if mechanism == "laplace":
        budgets = {clique: dpgm.Budget.pure(shares[place % 2]) for place, clique in enumerate(cliques)}
    else:
        budgets = {clique: dpgm.Budget.zcdp(shares[place % 2] ** 2 / 2) for place, clique in enumerate(cliques)}
    curator = dpgm.LiveCurator(
        as_source(sample_codes(model, count, seed)), model.structure, dpgm.make("mechanism", mechanism),
        terms=dpgm.Terms(neighbours="add-remove", total="public"),
        budget=dpgm.Budget.sum(budgets.values()), randomness=dpgm.SeededRandomness(seed),
    )  # fmt: skip
    return model, curator.release(budget=budgets)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("mechanism", "seed"), [("laplace", 1), ("laplace", 2), ("gaussian", 1)])
def test_tables_with_more_noise_are_not_starved(mechanism, seed):
    """Every second table has ten times the noise: EM, which chooses when to stop, is near the default learner. When all
    tables went by the rounds of the quietest, its KL was 14, 10 and 3 times as large as that."""
    model, noisy = uneven(mechanism, 10, seed)
    assert np.ptp(np.log10(noisy.variances)) == pytest.approx(2, abs=0.1)
    default, plateau, auto = (
        model.kl(dpgm.learn(noisy, {"name": name} | options, randomness=dpgm.SeededRandomness(1)).model)
        for name, options in (("eb-map", {}), ("cgm-em", {"stop": "plateau"}), ("cgm-em", {}))
    )
    assert max(plateau, auto) < 1.5 * default


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_equal_noise_is_left_alone(mechanism):
    """No digit of a fit changes where no table is slower than another."""
    _, noisy = uneven(mechanism, 1, 1, count=100)
    assert weight_tables(noisy) is noisy and slowness(noisy) == [1.0] * 4


def test_tempered_evidence_is_the_weighted_likelihood():
    """Its score is the slope of its log-density, its dual what the weighted density has; nothing else changes."""
    _, noisy = uneven("laplace", 10, 1, count=100)
    tempered, plain = weight_tables(noisy).noise, noisy.noise
    weights = slowness(noisy)
    assert weights == pytest.approx([1, 10, 1, 10], rel=1e-2)
    points = np.arange(-30, 30) + 0.5
    for weight, after, before in zip(weights, tempered, plain, strict=True):
        np.testing.assert_allclose(after.logpdf(points), weight * before.logpdf(points))
        np.testing.assert_allclose(after.score(points), weight * before.score(points))
        assert after.dual.bound == pytest.approx(plain[0].dual.bound)
        assert (after.variance, after.cost, after.event) == (before.variance, before.cost, before.event)
        assert (after.exact, after.unsafe, after.support) == (before.exact, before.unsafe, before.support)
        assert after.log_concave is before.log_concave
        assert np.array_equal(after.draw((9,), dpgm.SeededRandomness(1)), before.draw((9,), dpgm.SeededRandomness(1)))


def test_a_start_from_margins_believes_the_quieter_table():
    """A margin measured with little noise of its own stands against the same margin of a loud pair."""
    structure = Structure(Domain.from_sizes({"a": 3, "b": 5}), [("a", "b"), ("a",)])
    codes = np.repeat([[0, 0], [1, 2], [2, 4]], [600, 300, 100], axis=0)
    curator = dpgm.LiveCurator(
        as_source(codes), structure, dpgm.make("mechanism", "laplace"),
        terms=dpgm.Terms(neighbours="add-remove", total="public"),
        budget=dpgm.Budget.pure("1.01"), randomness=dpgm.SeededRandomness(4),
    )  # fmt: skip
    noisy = curator.release(budget={("a", "b"): dpgm.Budget.pure("0.01"), ("a",): dpgm.Budget.pure(1)})
    margin = dpgm.Model(structure, start_from_margins(noisy)).marginal("a")
    assert np.abs(margin - [0.6, 0.3, 0.1]).max() < 0.01


def test_tied_groups_and_estimated_totals_fit_together():
    """A stationary chain under an estimated N: tables sum to m_g N_hat, and learning beats the uniform model."""
    domain = Domain.from_sizes({f"x{place}": 3 for place in range(5)})
    structure = Structure(domain, [("x0",)], tied=[[(f"x{place}", f"x{place + 1}") for place in range(4)]])
    model = dirichlet_model(structure, 6)
    noisy = simulated_release(model, 5000, 1.0, 6, total="estimated")
    assert noisy.total != 5000
    fit = learn(noisy)
    assert fit.converged
    assert (noisy.total * fit.model.marginals()).sums() == pytest.approx(noisy.totals)
    assert model.kl(fit.model) < 0.2 * model.kl(dpgm.Model(structure, Tables.zeros(structure)))


def test_a_prior_shrinks_the_potentials(small):
    """An L2 prior in the M-step keeps potentials smaller, at the cost of gradient steps."""
    plain, shrunk = learn(small, tau=2.0, stop="fixed"), learn(small, tau=2.0, stop="fixed", prior=0.05)
    assert np.linalg.norm(shrunk.model.potentials.values) < 0.5 * np.linalg.norm(plain.model.potentials.values)
    assert shrunk.converged


def test_starting_from_the_margins_helps_at_small_tau():
    """Independence with the noisy margins is nearer to the truth than the uniform model is."""
    domain = Domain.from_sizes(dict.fromkeys("abc", 4))
    structure = Structure(domain, [("a", "b"), ("b", "c")])
    skewed = np.log(np.outer([0.7, 0.2, 0.05, 0.05], [0.6, 0.2, 0.1, 0.1])).reshape(-1)
    model = dpgm.Model(structure, Tables(structure, np.tile(skewed, 2)))
    noisy = simulated_release(model, 5000, 1.0, 7)
    uniform, margins = (learn(noisy, tau=0.1, stop="fixed", start=start) for start in ("uniform", "margins"))
    assert model.kl(margins.model) < 0.2 * model.kl(uniform.model)


def test_margins_of_tied_tables_are_refused():
    """They cannot be told apart; the message says what would do."""
    domain = Domain.from_sizes(dict.fromkeys("abc", 2))
    structure = Structure(domain, [("a",)], tied=[[("a", "b"), ("b", "c")]])
    noisy = simulated_release(dirichlet_model(structure, 8), 100, 1.0, 8)
    with pytest.raises(OptionError, match="start = 'uniform'"):
        learn(noisy, start="margins")


@pytest.mark.landing
def test_it_stops_on_the_plateau():
    """The rule ends before tau is used up, within 25 % of the best KL on the path, in noise and in signal."""
    for count, epsilon, seed in ((3000, 0.2, 9), (30_000, 0.5, 10), (300_000, 1.0, 11)):
        model = dirichlet_model(chain(6, 5), seed)
        noisy = simulated_release(model, count, epsilon, seed)
        fit = learn(noisy, stop="plateau")
        assert fit.converged
        assert fit.certificate["tau"] < 9
        assert fit.notes == []
        best = min(model.kl(learn(noisy, tau=tau, stop="fixed").model) for tau in np.arange(0.2, 5, 0.4))
        assert model.kl(fit.model) < 1.25 * best


def test_the_discrepancy_rule_waits_for_its_share():
    """It ends with the first step at or below the asked share of the expected noise."""
    noisy = simulated_release(dirichlet_model(chain(6, 5), 12), 30_000, 0.5, 12)
    for share in (1.0, 0.7):
        shares = [row["discrepancy"] for row in learn(noisy, stop="discrepancy", discrepancy=share).trace]
        assert shares[-1] <= share
        assert min(shares[:-1]) > share


def test_running_into_the_zeros_is_said():
    """With stop = "fixed" and far too much tau the fit warns that it is past the plateau; at the best point it does
    not. A rule that is never met is said too."""
    model = dirichlet_model(chain(6, 5), 13)
    noisy = simulated_release(model, 3000, 0.2, 13)
    far, near = (learn(noisy, tau=tau, stop="fixed") for tau in (12.0, 0.8))
    assert model.kl(far.model) > 1.5 * model.kl(near.model)
    assert any("past the plateau" in note and "lower tau" in note for note in far.notes)
    assert near.notes == []
    assert any(
        "used up before the discrepancy rule" in note for note in learn(noisy, tau=0.2, stop="discrepancy").notes
    )


def test_an_unconverged_run_says_so_everywhere(small, tmp_path):
    """E-steps cut short: the Fit, its notes, and the model file read back."""
    fit = learn(small, e_step={"name": "collective-dual", "max_calls": 1}, stop="fixed", tau=0.5)
    assert not fit.converged
    assert fit.certificate["unconverged_steps"] == len(fit.trace)
    assert any("did not converge" in note for note in fit.notes)
    fit.model.save(tmp_path / "m.dpgm")
    read = dpgm.load_model(tmp_path / "m.dpgm")
    assert not read.converged
    assert read.provenance["learner"]["options"]["e_step"]["max_calls"] == 1


def test_required_convergence_ends_the_run(small):
    """NotConverged from the E-step reaches the caller."""
    with pytest.raises(dpgm.NotConverged, match="collective-dual stopped after 1 inference calls"):
        learn(small, e_step={"name": "collective-dual", "max_calls": 1, "require_convergence": True})


@pytest.mark.parametrize(
    "options",
    [{"tau": 0.0}, {"tau": math.inf}, {"steps": 0}, {"prior": -1.0}, {"discrepancy": math.nan}, {"stop": "never"}],
)
def test_senseless_options_are_refused(options):
    with pytest.raises(OptionError, match=next(iter(options))):
        dpgm.make("learner", "cgm-em", **options)


def test_the_trace_tells_the_path(small):
    """One row per proximal step: tau, objective, gap, discrepancy, inference calls; their sum is certified."""
    fit = learn(small, tau=1.0, stop="fixed")
    assert [row["tau"] for row in fit.trace] == pytest.approx(np.arange(1, 11) / 10)
    assert {"tau", "objective", "gap", "discrepancy", "inference_calls"} == set(fit.trace[0])
    assert fit.certificate["inference_calls"] == sum(row["inference_calls"] for row in fit.trace)
    assert fit.certificate["largest_gap"] == max(row["gap"] for row in fit.trace)


@pytest.mark.landing
@pytest.mark.parametrize("graph", ["chain3", "er"])
def test_accuracy_on_the_papers_protocol(graph):
    """T = 10, k = 5, N in {1e4, 1e5}, eps in {.5, 1}, one draw (ten and more: benchmarks/selftuning.py): the geometric
    mean of KL is at most 1.2 times that of naive MLE with the best of three penalties, chosen by the truth, and at most
    .7 of the uniform model's."""
    domain = Domain.from_sizes({f"x{place}": 5 for place in range(10)})
    structure = chain(10, 5, 3) if graph == "chain3" else Structure.erdos_renyi(domain, 0.35, 3)
    logs = []
    for count, epsilon in itertools.product((10_000, 100_000), (0.5, 1.0)):
        model = dirichlet_model(structure, 0)
        noisy = simulated_release(model, count, epsilon, 0)
        kl_em = model.kl(learn(noisy).model)
        naive = [
            dpgm.learn(noisy, dpgm.make("learner", "naive-mle", l2=l2, tolerance=1e-4)).model
            for l2 in (1e-3, 1e-4, 1e-5)
        ]
        kl_naive = min(model.kl(one) for one in naive)
        kl_uniform = model.kl(dpgm.Model(structure, Tables.zeros(structure)))
        logs.append([math.log(kl_em / kl_naive), math.log(kl_em / kl_uniform)])
    over_naive, over_uniform = np.exp(np.mean(logs, axis=0))
    assert over_naive <= 1.2
    assert over_uniform <= 0.7


@pytest.fixture
def saved(small, tmp_path):
    small.save(tmp_path / "small.release.dpgm")
    return tmp_path / "small.release.dpgm"


@pytest.mark.parametrize(("calls", "converged"), [(1, False), (2000, True)])
def test_the_command_line_says_whether_it_converged(saved, tmp_path, capsys, calls, converged):
    """dpgm learn and dpgm query show the flag, in JSON and in words."""
    from dpgm.cli import main

    options = [f"learner.e_step={{name = 'collective-dual', max_calls = {calls}}}", "learner.tau=0.5"]
    settings = [word for option in options for word in ("--set", option)]
    model = tmp_path / "m.dpgm"
    main(["learn", str(saved), "--learner", "cgm-em", "-o", str(model), *settings, "--json"])
    assert json.loads(capsys.readouterr().out)["converged"] is converged
    main(["query", str(model)])
    assert ("WARNING: the learner did not converge" in capsys.readouterr().out) is not converged


class TestCgmEm(LearnerConformance):
    """Every check, default options."""

    component = CgmEm


@pytest.mark.landing
class TestCgmEmNlbp(LearnerConformance):
    """The papers' fixed point as E-step."""

    component = CgmEm(e_step="nlbp")


@pytest.mark.landing
class TestCgmEmSoftSign(LearnerConformance):
    """The posterior-mean E-step."""

    component = CgmEm(e_step="soft-sign")


STRUCTURE = chain(6, 4, 2)


def drawn(count, epsilon, seed):
    model = dirichlet_model(STRUCTURE, seed)
    return model, simulated_release(model, count, dpgm.Budget.approx(epsilon, 1 / count), seed, "gaussian")


def learned(noisy, **options):
    return dpgm.learn(noisy, dpgm.make("learner", "cgm-em", **options), randomness=SeededRandomness(1))


@pytest.mark.landing
@pytest.mark.parametrize(("count", "epsilon"), [(10_000, 0.5), (1_000_000, 0.5)])
def test_it_converges_near_the_best_of_its_path(count, epsilon):
    """From noise to signal all steps converge in 3000 calls altogether, and KL is within 15 % of the least on the path
    and 10 % of naive maximum likelihood's."""
    model, noisy = drawn(count, epsilon, 1)
    fit = learned(noisy)
    assert fit.converged
    assert fit.notes == []
    assert fit.certificate["inference_calls"] < 3000
    kl = model.kl(fit.model)
    assert kl < 1.15 * min(model.kl(learned(noisy, tau=tau).model) for tau in (0.4, 0.7, 1.0, 1.4, 2.0))
    assert kl < 1.1 * model.kl(dpgm.learn(noisy, "naive-mle", randomness=SeededRandomness(1)).model)


@pytest.mark.landing
def test_the_plateau_rule_works_too():
    """Within 15 % of the best at N = 1e6, after fewer than 400 calls."""
    model, noisy = drawn(1_000_000, 0.5, 2)
    fit = learned(noisy, stop="plateau")
    assert fit.certificate["inference_calls"] < 400
    assert 0.4 < fit.tuning["tau"] < 2
    assert model.kl(fit.model) < 1.15 * min(
        model.kl(learned(noisy, tau=tau).model) for tau in (0.4, 0.7, 1.0, 1.4, 2.0)
    )

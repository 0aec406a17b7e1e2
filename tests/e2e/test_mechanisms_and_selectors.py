"""Every installed mechanism with every selector: the release's cost is verified on reading, or nothing is charged."""

import itertools

import attrs
import numpy as np
import pytest
from attrs import frozen

import dpgm_core as dpgm
from dpgm_core import Budget, BudgetError, Domain, DpgmError, OptionError
from dpgm_core.components.registry import default_registry
from dpgm_core.pipeline.run import Run
from dpgm_core.privacy.ledger import Ledger
from dpgm_core.privacy.tabulated import TabulatedNoise, calibrate_tabulated
from dpgm_core.releases.release_file import load_release
from dpgm_core.releases.saving import session_size
from dpgm_testing.unusual import Power, TwoWidths
from tests.fixtures import Unread, offered, seeded

DOMAIN = Domain.from_sizes(dict.fromkeys("abc", 2))
CODES = np.random.default_rng(1).integers(0, 2, (2000, 3)).cumsum(axis=1) % 2
BUDGETS = {"pure": Budget.pure(2), "zcdp": Budget.zcdp("1/10"), "approx": Budget.approx(2, "1e-6")}
TERMS = dpgm.Terms(neighbours="add-remove")
OFFERED = {"power": Power, "two-widths": TwoWidths}


def names(kind):
    return sorted(one.component.name for one in dpgm.Registry.discover() if one.component.kind == kind)


def ledger_in(folder, budget):
    return Ledger.create(folder / "x.ledger", name="x", budget=budget, neighbours="add-remove", unit="persons")


@pytest.fixture(autouse=True)
def under_names():
    """Mechanisms of third parties under names, as plugins would offer them."""
    with offered(OFFERED):
        yield


PAIRS = [*itertools.product([*names("mechanism"), *OFFERED], names("selector"))]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("kind", BUDGETS)
@pytest.mark.parametrize(("mechanism", "selector"), PAIRS)
def test_a_pair_fits_and_is_verified_or_is_refused_before_the_charge(tmp_path, mechanism, selector, kind):
    """The sentence of docs/mixing.md."""
    budget, path = BUDGETS[kind], tmp_path / "x.release.dpgm"
    book = ledger_in(tmp_path, budget)
    try:
        more = {"workload": DOMAIN, "ledger": book, "save_release": path}
        fit = dpgm.fit(CODES, selector, budget, mechanism, **seeded(1), **more)
    except DpgmError as error:
        assert not isinstance(error, dpgm.LearningFailed) and "\n" not in str(error)
        assert not book.history() and not path.exists()
        return
    read = load_release(path)
    assert read.cost == fit.release.cost <= budget and read.session is not None
    measured = [one for one in read.steps if isinstance(one, dpgm.NoisyTables)]
    assert {calibration.component for one in measured for calibration in one.measurement.calibrations} == {mechanism}
    assert np.array_equal(read.tables.values, fit.release.tables.values)


def test_the_pairs_are_not_all_refused():
    """mst takes laplace and power under every budget, gaussian where the session spends rho, two-widths never."""
    takes = {"laplace": set(BUDGETS), "power": set(BUDGETS), "gaussian": {"zcdp", "approx"}, "two-widths": set()}
    for (name, kinds), kind in itertools.product(takes.items(), BUDGETS):
        run = Run(Unread(), "mst", BUDGETS[kind], name, workload=DOMAIN, terms=TERMS)
        if kind in kinds:
            note = run.plan_selection(1000).notes
            assert any(f"noise of mechanism {name!r}" in one for one in note)
        else:
            with pytest.raises(BudgetError) as caught:
                run.plan_selection()
            assert "\n" not in str(caught.value)


def test_a_mechanism_that_does_not_compose_is_named_before_the_charge():
    """Of pure noise under (epsilon, delta), and of Gaussian noise under a pure budget; of textbook noise always."""
    run = Run(Unread(), "mst", BUDGETS["approx"], "two-widths", workload=DOMAIN, terms=TERMS)
    with pytest.raises(
        BudgetError,
        match=r"^mechanism 'two-widths' cannot serve rho, which a session under \(epsilon, delta\) or zCDP spends; "
        r"give it a tabulated distribution, or use a pure budget "
        r"\(it said: this noise takes a positive pure budget.*\)$",
    ):
        run.plan_selection()
    with pytest.raises(BudgetError, match="mechanism 'gaussian' cannot serve pure epsilon"):
        attrs.evolve(run, budget=BUDGETS["pure"], mechanism="gaussian").plan_selection()
    textbook = {"name": "laplace", "exact": False, "allow_unsafe": True}
    with pytest.raises(BudgetError, match=r"not private to the letter .* takes exact noise only"):
        attrs.evolve(run, mechanism=textbook).plan_selection()


def test_a_named_mechanism_is_never_replaced():
    """'laplace' under rho with a selector is Laplace noise, not the Gaussian noise that a session has by default."""
    kinds = []
    for mechanism in ("laplace", None):
        noisy, _ = dpgm.select(
            CODES, "mst", BUDGETS["zcdp"], DOMAIN, mechanism=mechanism, terms=TERMS, randomness=dpgm.SeededRandomness(1)
        )
        kinds.append({one.event.kind for step in noisy.steps if hasattr(step, "noise") for one in step.noise})
    assert kinds == [{"discrete-laplace"}, {"discrete-gaussian"}]


@pytest.mark.parametrize("total", ["estimated", 2000])
def test_a_plan_has_the_noise_of_contrasts_under_a_mechanism(total):
    """Laplace noise of three contrasts, and of N where it is estimated, under rho: its L1 counts, not its L2."""
    terms = dpgm.Terms(neighbours="add-remove", total=total)
    run = Run(Unread(), "mrf-select", BUDGETS["zcdp"], "laplace", workload=DOMAIN, terms=terms)
    planned = run.plan_selection(2000)
    count = 4 if total == "estimated" else 3
    moved = dpgm.Sensitivity(l0=count, l1=count, l2_squared=count, linf=1)
    noise = dpgm.make("mechanism", "laplace").noise(moved, planned.shares["every attribute alone"])
    assert planned.contrasts and planned.deviation == pytest.approx(np.sqrt(noise.variance / 2), rel=2e-2)


@frozen(kw_only=True)
class LiesNoise(TabulatedNoise):
    """Claims a tenth of the loss, and does not check itself."""

    def __attrs_post_init__(self):
        pass


@frozen(kw_only=True)
class Lies:
    """Costs a tenth of what core computes, with an honest distribution and core's class, or a class of its own."""

    own_randomness = None
    own_class: bool = False

    def noise(self, sensitivity, budget):
        good = calibrate_tabulated(lambda z, scale: -z / scale, sensitivity, budget * 10)
        made = LiesNoise if self.own_class else TabulatedNoise
        return made(distribution=good.distribution, sensitivity=sensitivity, cost=budget)


@pytest.mark.parametrize("own_class", [False, True])
@pytest.mark.parametrize("target", ["mst", dpgm.Structure(DOMAIN, [("a", "b")])])
def test_a_loss_stated_below_what_core_computes_is_one_line_before_the_charge(tmp_path, target, own_class):
    """With a selector and with named tables."""
    book = ledger_in(tmp_path, BUDGETS["pure"])
    more = {"workload": DOMAIN} if target == "mst" else {}
    words = "drawn by core" if own_class else "claims to cost .* but costs"
    with pytest.raises(BudgetError, match=words) as caught:
        dpgm.fit(
            CODES, target, BUDGETS["pure"], Lies(own_class=own_class), neighbours="add-remove", ledger=book, **more
        )
    assert "\n" not in str(caught.value) and not book.history()


def test_a_learner_that_needs_log_concave_noise_refuses_before_the_charge(tmp_path):
    """Staircase noise, which bends."""

    @frozen(kw_only=True)
    class Stairs:
        own_randomness = None

        def noise(self, sensitivity, budget):
            return calibrate_tabulated(lambda z, scale: -np.floor((z + 2) / 5) * 5 / scale, sensitivity, budget)

    book = ledger_in(tmp_path, BUDGETS["pure"])
    with pytest.raises(OptionError, match="not log-concave"):
        dpgm.fit(
            CODES, "mst", BUDGETS["pure"], Stairs(), "cgm-em", neighbours="add-remove", ledger=book, workload=DOMAIN
        )
    assert not book.history()


def test_a_reader_without_the_plugin_verifies_a_tabulated_session(tmp_path):
    """The distribution is in the file; steps whose distribution has less noise are refused in one line."""
    path = tmp_path / "x.release.dpgm"
    dpgm.fit(CODES, "mst", BUDGETS["approx"], "power", workload=DOMAIN, save_release=path, **seeded(1))
    default_registry.cache_clear()
    with pytest.raises(dpgm.PluginError):
        dpgm.make("mechanism", "power")
    read = load_release(path)
    noise = Power().noise(read.measurement.calibrations[0].sensitivity, BUDGETS["approx"].zcdp_within())
    workload = dpgm.Workload.default(DOMAIN)
    assert session_size(workload, noise) > max(path.stat().st_size, session_size(workload))
    steps = [one for one in read.steps if isinstance(one, dpgm.NoisyTables)]
    assert all(type(noise) is TabulatedNoise for one in steps for noise in one.noise)
    assert Budget.sum(one.cost for one in read.steps) <= BUDGETS["approx"].zcdp_within()

"""Products measured once and fitted exactly: what is found, under which terms, and what is refused before a charge."""

import itertools

import numpy as np
import pytest
from dpgm_mrf.polynomials import degrees, local, transform
from dpgm_mrf.walsh import MrfWalsh
from scipy.optimize import minimize

import dpgm_core as dpgm
from dpgm_testing.curators import TrappedRecords

ENGINE = dpgm.make("inference", "junction-tree")
ADD = dpgm.Terms(neighbours="add-remove", total=20_000)


def domain(p):
    return dpgm.Domain.from_sizes({f"x{place}": 2 for place in range(p)})


def records(coefficients, count, seed=1):
    weights = np.exp(transform(coefficients))
    states = np.random.default_rng(seed).choice(len(weights), count, p=weights / weights.sum())
    return states[:, None] >> np.arange(len(weights).bit_length() - 1) & 1


def polynomial(p, **monomials):
    """Coefficients by the digits of their attributes, such as m012=0.4."""
    actual = np.zeros(1 << p)
    for name, value in monomials.items():
        actual[sum(1 << int(place) for place in name[1:])] = value
    return actual


def read_off(model, p):
    """The polynomial of a model's potentials, (2^p,), without its constant."""
    names, actual = model.structure.domain.names, np.zeros(1 << p)
    for clique, table in model.potentials.items():
        actual[local(clique, names)] += transform(np.asarray(table).reshape(-1)) / table.size
    actual[0] = 0
    return actual


TRUTH = polynomial(5, m012=0.4, m23=-0.5, m34=0.4, m1=0.2)
CODES = records(TRUTH, 20_000)
TRIPLES = dpgm.Structure.complete(domain(5), 3)


def fitted(codes=CODES, structure=TRIPLES, budget=None, learner="mrf-walsh", mechanism="gaussian", terms=ADD, seed=3):
    budget = dpgm.Budget.zcdp("0.1") if budget is None else budget
    return dpgm.fit(codes, structure, budget, mechanism, learner, terms=terms, randomness=dpgm.SeededRandomness(seed))


# --- what is found ---------------------------------------------------------------------------------------------------


def test_interactions_are_learned():
    """20,000 records at rho = .1: noise of 25 products has standard deviation 11, records 1/141; so each is within
    .06 (five standard errors at a correlation of products of .5)."""
    fit = fitted()
    assert fit.converged and fit.model.structure == TRIPLES
    assert read_off(fit.model, 5) == pytest.approx(TRUTH, abs=0.06)
    assert {len(clique) for clique in fit.release.structure.cliques} == {1, 2, 3} and fit.release.measurement.contrasts


def test_the_least_interaction_makes_the_structure():
    """The largest products above least / 2, attributes of none alone, and the smaller products inside them kept."""
    fit = fitted(learner=MrfWalsh(least=0.4))
    assert fit.model.structure.cliques == (("x0", "x1", "x2"), ("x2", "x3"), ("x3", "x4"))
    actual = read_off(fit.model, 5)
    assert actual == pytest.approx(TRUTH, abs=0.06)
    assert actual[0b00011] != 0 and actual[0b10001] == 0
    alone = fitted(learner=MrfWalsh(least=3.0)).model
    assert alone.structure.cliques == tuple((name,) for name in domain(5).names)


def test_the_fit_is_the_optimum():
    """p = 4: log Z - x . y + (v + 1/N) x^2 / 2 written out over 16 states and minimised by BFGS, from the release."""
    structure = dpgm.Structure(domain(4), [("x0", "x1", "x3"), ("x3", "x2", "x1"), ("x0",)])
    fit = fitted(records(polynomial(4, m01=0.5, m013=-0.3), 500), structure, terms=dpgm.Terms(neighbours="add-remove"))
    release, signs, means, variances, own = fit.release, [], [], [], []
    for clique, variance in zip(release.structure.cliques, release.variances, strict=True):
        if not clique:
            continue
        sign = np.array([(-1) ** sum(cell) for cell in itertools.product((0, 1), repeat=len(clique))])
        means.append(float(sign @ np.asarray(release.tables[clique]).reshape(-1)) / release.total)
        variances.append(variance * 2 ** len(clique) / release.total**2 + 1 / release.total)
        places = [int(name[1:]) for name in clique]
        own.append(sum(1 << place for place in places))
        signs.append([(-1) ** sum(state >> place & 1 for place in places) for state in range(16)])
    signs, means, variances = np.array(signs).T, np.array(means), np.array(variances)
    assert len(own) == 11 and np.abs(means).max() < 1 and release.total != 500  # the number of records is measured

    def objective(x):
        return np.log(np.exp(signs @ x).sum()) - x @ means + variances @ x**2 / 2

    best = minimize(objective, np.zeros(11), method="BFGS", options={"gtol": 1e-9}).x
    assert read_off(fit.model, 4)[own] == pytest.approx(best, abs=1e-4)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_no_product_is_larger_than_the_order(order):
    structure = dpgm.Structure(domain(4), [("x0", "x1", "x2", "x3")])
    fit = fitted(CODES[:, :4], structure, learner=MrfWalsh(order=order))
    assert max(map(len, fit.release.structure.cliques)) == order
    actual = read_off(fit.model, 4)
    assert not actual[degrees(16) > order].round(12).any() and actual[degrees(16) == order].all()
    assert fit.model.structure == structure


# --- terms, noise and saved releases ---------------------------------------------------------------------------------

TERMS = {
    "declared": ADD,
    "public": dpgm.Terms(neighbours="replace-one", total="public"),
    "estimated": dpgm.Terms(neighbours="add-remove"),
    "two rows": dpgm.Terms(neighbours="add-remove", total=20_000, person="x4", rows_per_person=2),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("known", ["declared", "public", "estimated"])
@pytest.mark.parametrize(
    ("mechanism", "budget"), [("gaussian", dpgm.Budget.zcdp("0.5")), ("laplace", dpgm.Budget.pure(2))]
)
def test_every_number_of_records_and_noise_serves(known, mechanism, budget):
    """Laplace noise of 25 sums at epsilon = 2 has standard deviation 18, twice that under replace-one: within .1 of the
    truth, the same model from the saved release, and another seed another model."""
    fit = fitted(budget=budget, mechanism=mechanism, terms=TERMS[known])
    assert read_off(fit.model, 5) == pytest.approx(TRUTH, abs=0.1)
    assert fit.release.total_policy == known
    again = dpgm.learn(fit.release, "mrf-walsh")
    assert again.model.structure == TRIPLES
    assert again.model.potentials.values.tolist() == fit.model.potentials.values.tolist()
    assert fitted(budget=budget, mechanism=mechanism, terms=TERMS[known]).model.potentials.values.tolist() == (
        fit.model.potentials.values.tolist()
    )
    other = fitted(budget=budget, mechanism=mechanism, terms=TERMS[known], seed=4)
    assert other.model.potentials.values.tolist() != fit.model.potentials.values.tolist()


def test_a_saved_release_of_cells_serves_too():
    """As another learner measured it, and two of them as one."""
    releases = [
        dpgm.release(
            CODES, TRIPLES, dpgm.Budget.zcdp("0.5"), "gaussian", terms=ADD, randomness=dpgm.SeededRandomness(s)
        )
        for s in (1, 2)
    ]
    for saved in (releases[0], releases):
        assert read_off(dpgm.learn(saved, "mrf-walsh").model, 5) == pytest.approx(TRUTH, abs=0.1)
    before = dpgm.make("learner", "mrf-walsh").fitter(ENGINE)(releases[0], TRIPLES, None)
    assert before.model.structure == TRIPLES


def test_error_bars_come_from_refits():
    """The bootstrap's spread of a product's coefficient is that of fits to other seeds, to a factor 2 (20 replicates:
    a false alarm has probability below 1e-4)."""
    codes, structure = CODES[:2000, :3], dpgm.Structure(domain(3), [("x0", "x1", "x2")])
    terms = dpgm.Terms(neighbours="add-remove", total=2000)
    fit = fitted(codes, structure, terms=terms, learner=MrfWalsh(least=0.4))
    assert fit.model.structure == structure
    model = dpgm.bootstrap(fit.model, 20, randomness=dpgm.SeededRandomness(5))
    spread = np.std([read_off(one, 3)[7] for one in model.replicates])
    seeds = range(10, 30)
    whole = [fitted(records(read_off(fit.model, 3), 2000, s), structure, terms=terms, seed=s).model for s in seeds]
    assert 0.5 < spread / np.std([read_off(one, 3)[7] for one in whole]) < 2


def test_a_plan_says_what_a_fit_measures():
    """Every product up to the order, with the noise that is drawn."""
    plan = dpgm.plan(TRIPLES, dpgm.Budget.zcdp("0.1"), "gaussian", terms=ADD, learner="mrf-walsh")
    release = fitted().release
    assert {one.clique for one in plan.tables} == set(release.structure.cliques)
    assert [one.noise**2 for one in plan.tables] == pytest.approx([one.variance for one in release.noise])


def test_tables_are_measured_where_contrasts_have_more_noise():
    """Pairs with Laplace noise: tables, as a plan has it; contrasts are refused, with the option that serves."""
    chain = dpgm.Structure.chain(domain(4))
    truth = polynomial(4, m01=0.4, m12=-0.3, m2=0.2)
    pure = {"structure": chain, "budget": dpgm.Budget.pure(1), "mechanism": "laplace"}
    fit = fitted(records(truth, 20_000), **pure)
    assert fit.release.structure.cliques == chain.cliques and not fit.release.contrasts
    assert read_off(fit.model, 4) == pytest.approx(truth, abs=0.06)
    plan = dpgm.plan(chain, pure["budget"], "laplace", terms=ADD, learner="mrf-walsh")
    assert [(one.clique, one.cells) for one in plan.tables] == [(clique, 4) for clique in chain.cliques]
    with pytest.raises(dpgm.BudgetError, match="split = 'even'"):
        fitted(CODES[:, :4], **pure, learner={"name": "mrf-walsh", "split": "contrasts"})
    assert fitted(CODES[:, :4], **pure, learner=MrfWalsh(split="even")).release.structure.cliques == chain.cliques
    nothing = dpgm.Structure(domain(2), [()])
    assert fitted(CODES[:, :2], nothing).model.potentials.values.tolist() == [0]


# --- what is refused -------------------------------------------------------------------------------------------------

WIDE = dpgm.Domain.from_sizes({"a": 2, "b": 3, "c": 1, "d": 2})
REFUSED = {
    "labels": (
        MrfWalsh(),
        dpgm.Structure(WIDE, [("a", "b"), ("c", "d")]),
        dpgm.StructureError,
        r"'b' \(3\), 'c' \(1\)",
    ),
    "tied": (
        MrfWalsh(),
        dpgm.Structure(domain(4), [], tied=[(("x0", "x1"), ("x2", "x3"))]),
        dpgm.StructureError,
        "untie them",
    ),
    "size": (MrfWalsh(), dpgm.Structure.chain(domain(17)), dpgm.TooLarge, r"2\^17 states.*at most 16.*mrf-select"),
    "order": (MrfWalsh(order=5), dpgm.Structure.chain(domain(4)), dpgm.OptionError, "order to at most 4"),
    "width": (MrfWalsh(method="paper"), dpgm.Structure.chain(domain(4)), dpgm.OptionError, "needs width"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_it_cannot_learn_is_refused_before_the_charge(case):
    """One line each, by check, by what it foresees, and by learn with no record read and nothing spent."""
    learner, structure, error, said = REFUSED[case]
    curator = dpgm.LiveCurator(
        TrappedRecords(np.zeros((10, len(structure.domain)), int)),
        structure,
        dpgm.make("mechanism", "gaussian"),
        terms=ADD,
        budget=dpgm.Budget.zcdp(1),
    )
    asks = (
        lambda: learner.check(structure, ENGINE),
        lambda: learner.planned_tables(structure),
        lambda: learner.learn(curator, ENGINE, randomness=dpgm.SeededRandomness(1), progress=dpgm.silent),
        lambda: dpgm.plan(structure, dpgm.Budget.zcdp(1), "gaussian", terms=ADD, learner=learner),
    )
    for ask in asks:
        with pytest.raises(error, match=said) as caught:
            ask()
        assert "\n" not in str(caught.value)
    assert curator.remaining == curator.budget and not curator.released


@pytest.mark.parametrize("name", ["order", "least", "width"])
@pytest.mark.parametrize("value", [0, -1, True, float("nan"), float("inf"), "3", 0.0])
def test_numbers_that_are_none_are_refused(name, value):
    with pytest.raises(dpgm.OptionError, match=name):
        MrfWalsh(**{name: value})


def test_other_nonsense_is_refused():
    for options in ({"order": 2.5}, {"order": None}, {"method": "fem"}, {"method": None}):
        with pytest.raises(dpgm.OptionError, match=next(iter(options))):
            MrfWalsh(**options)


def test_fewer_attributes_than_the_default_order_are_no_error():
    """A pair, and an attribute beside one of three labels that is in no clique."""
    both = dpgm.Domain.from_sizes({"x0": 2, "x1": 2, "other": 3})
    codes = np.column_stack([CODES[:, 2:4], CODES[:, 0]])
    fit = fitted(codes, dpgm.Structure(both, [("x0", "x1")]))
    assert fit.model.potentials["x0", "x1"][0, 0] == pytest.approx(-0.5, abs=0.2)

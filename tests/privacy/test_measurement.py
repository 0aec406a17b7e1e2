"""A measurement: what it costs, what it draws, and that a plan, a curator and a file speak of the same one."""

import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm_core import Budget, BudgetError, Domain, SeededRandomness, Structure, StructureError, Tables, Terms, make
from dpgm_core.privacy.contrasts import monomials, products
from dpgm_core.privacy.measurement import measure, noisy_contrasts

CHAIN = Structure.chain(Domain.from_sizes({"a": 2, "b": 3, "c": 2}))
TERMS = Terms(neighbours="add-remove")
LAPLACE = make("mechanism", "laplace")


def test_one_budget_is_one_noise_for_all_tables():
    one = measure(LAPLACE, CHAIN, TERMS, Budget.pure("1/2"))
    assert len(one.calibrations) == 1 and one.of_group == (0, 0)
    assert one.calibrations[0].sensitivity == TERMS.sensitivity(CHAIN)
    assert one.cost == one.budget == Budget.pure("1/2")


def test_budgets_per_table_add_up_and_belong_to_their_tables():
    budgets = {("b", "c"): Budget.pure("1/5"), ("a", "b"): Budget.pure("4/5")}
    own = measure(LAPLACE, CHAIN, TERMS, budgets)
    assert own.cost == Budget.pure(1)
    for clique, budget in budgets.items():
        calibration = own.calibrations[own.of_group[CHAIN.find(clique)[0]]]
        assert calibration.budget == budget and calibration.sensitivity.l1 == 1
    assert own.variances[0] < own.variances[1]


def test_a_draw_adds_each_tables_own_noise():
    """Over 400 draws the variances are those stated, to 20 % (relative error sqrt(5 / 2400); false alarm 1e-3)."""
    measurement = measure(LAPLACE, CHAIN, TERMS, {("a", "b"): Budget.pure(2), ("b", "c"): Budget.pure("1/4")})
    randomness, counts = SeededRandomness(1), Tables(CHAIN, np.arange(12))
    drawn = [(measurement.draw(counts, randomness) - counts).values for _ in range(400)]
    for at, variance in zip(CHAIN.slices, measurement.variances, strict=True):
        cells = np.array([one[at] for one in drawn], float)
        assert cells.size == 2400
        assert np.mean(cells**2) == pytest.approx(variance, rel=0.2)


def test_table_by_table_is_the_same_noise():
    """Same cost per table, same variances; with one table even the same draw."""
    shared = measure(LAPLACE, CHAIN, TERMS, Budget.pure(1))
    single = shared.table_by_table()
    assert single.noise == shared.noise and single.of_group == (0, 1)
    one = Structure(CHAIN.domain, [("a", "b")])
    whole = measure(LAPLACE, one, TERMS, Budget.pure(1))
    zeros = Tables(one, np.zeros(6, np.int64))
    drawn = [each.draw(zeros, SeededRandomness(3)).values.tolist() for each in (whole, whole.table_by_table())]
    assert drawn[0] == drawn[1]


BINARY = Domain.from_sizes(dict.fromkeys("abcd", 2))
PAIRS = Structure(BINARY, [("a", "b"), ("c", "d")])
GAUSSIAN = make("mechanism", "gaussian")
WEIGHTED = Terms(neighbours="add-remove", contributions=dpgm.Contributions(per="clique"))
FLAT = Structure(Domain.from_sizes({"a": 2, "b": 3}), [("a", "b")])


@pytest.mark.parametrize("name", ["gaussian", "laplace"])
def test_contrasts_have_one_noise_each_of_the_variance_stated(name):
    """200 draws over known counts: whole numbers around the true sums, uncorrelated, of the variance they state.

    The relative error of a variance is sqrt(5 / 200) = 16 % for Laplace, of their mean 5.6 %, a correlation's 7 %; the
    8 variances are held to 65 %, their mean to 23 %, 28 correlations to .3 and 8 means to 4 standard errors: by a
    normal law a false alarm in 1 of 500 runs.
    """
    structure = Structure(BINARY, [("a", "b", "c")])
    mechanism, terms = make("mechanism", name), Terms(neighbours="replace-one")
    budget = Budget.zcdp(1) if name == "gaussian" else Budget.pure(1)
    every = noisy_contrasts(mechanism, monomials(structure, empty=True), terms, budget)
    counts = Tables(every.structure, np.arange(every.structure.cells))
    randomness, true = SeededRandomness(11), products(counts)
    drawn = np.array([products(every.draw(counts, randomness)) - true for _ in range(200)])
    assert np.array_equal(drawn, np.rint(drawn))
    spreads = drawn.var(axis=0)
    assert spreads == pytest.approx(every.sum_variances, rel=0.65) and spreads.mean() == pytest.approx(
        every.sum_variances[0], rel=0.23
    )
    assert np.abs(drawn.mean(axis=0)).max() < 4 * np.sqrt(every.sum_variances[0] / 200)
    assert np.abs(np.corrcoef(drawn.T) - np.eye(8)).max() < 0.3
    assert every.variances == pytest.approx(every.sum_variances / every.structure.sizes)


def test_split_contrasts_measures_every_set_inside_a_clique_once():
    """With N where it is estimated; calibrated to the sums, at the whole budget."""
    for total, count in (("estimated", 7), ("public", 6), (70, 6)):
        terms = Terms(neighbours="add-remove", total=total)
        found = measure(GAUSSIAN, PAIRS, terms, Budget.zcdp(1), "contrasts")
        assert found.contrasts and found.cost == Budget.zcdp(1) and len(found.structure.groups) == count
        assert found.calibrations[0].sensitivity.l2_squared == count
        assert ((), ("a",))[total != "estimated"] == found.structure.cliques[0]


@pytest.mark.parametrize(
    ("mechanism", "budget", "neighbours", "cliques", "total", "ratio"),
    [
        (GAUSSIAN, Budget.zcdp("0.01"), "add-remove", ["ab", "cd"], "estimated", 7 / 8),
        (GAUSSIAN, Budget.zcdp("0.01"), "add-remove", ["ab", "cd"], "public", 6 / 8),
        (GAUSSIAN, Budget.zcdp("0.01"), "add-remove", ["ab", "bc", "cd", "ad", "ac", "bd"], "public", 10 / 24),
        (GAUSSIAN, Budget.zcdp("0.01"), "replace-one", ["ab", "cd"], "estimated", 1),
        (GAUSSIAN, Budget.zcdp("0.01"), "replace-one", ["abcd"], "estimated", 1),
        (GAUSSIAN, Budget.approx(1, "1e-6"), "add-remove", ["ab", "bc", "cd"], "estimated", 8 / 12),
        (LAPLACE, Budget.pure("0.05"), "add-remove", ["ab", "bc", "cd", "ad", "ac", "bd"], "public", 100 / (4 * 36)),
        (GAUSSIAN, Budget.zcdp("0.01"), "add-remove", ["ab", "c"], "estimated", 5 / 4),  # of c
        (LAPLACE, Budget.pure("0.05"), "add-remove", ["ab", "cd"], "public", 36 / (4 * 4)),
        (LAPLACE, Budget.pure("0.05"), "replace-one", ["ab", "cd"], "public", 64 / (4 * 16)),
    ],
)  # fmt: skip
def test_contrasts_are_measured_only_where_no_clique_is_told_worse(
    mechanism, budget, neighbours, cliques, total, ratio
):
    """The ratio of variances to that of tables, by hand: L2^2 (or L1^2) of the sums over 2^k that of the tables."""
    structure, terms = Structure(BINARY, map(tuple, cliques)), Terms(neighbours=neighbours, total=total)
    if ratio <= 1:
        sums = measure(mechanism, structure, terms, budget, "contrasts")
        cells = measure(mechanism, structure, terms, budget)
        size = 2 ** len(cliques[0])
        assert sums.sum_variances[-1] / (size * cells.variances[0]) == pytest.approx(ratio, rel=2e-3)
        assert measure(mechanism, structure, terms, budget, "sharper") == sums
    else:
        assert measure(mechanism, structure, terms, budget, "sharper") == measure(mechanism, structure, terms, budget)
        with pytest.raises(BudgetError, match=rf"{ratio:.3g}\d* times the noise variance that tables.*'even'"):
            measure(mechanism, structure, terms, budget, "contrasts")


def test_contrasts_of_nothing_are_the_number_of_records():
    """Only the empty clique, by its contrast."""
    found = measure(GAUSSIAN, Structure(BINARY, [()]), Terms(neighbours="add-remove"), Budget.zcdp(1), "contrasts")
    assert found.contrasts and found.structure.cliques == ((),)


@pytest.mark.parametrize(
    ("structure", "terms", "budget", "words"),
    [
        (FLAT, TERMS, Budget.zcdp(1), "attributes of two labels, but 'b' has 3"),
        (Structure(BINARY, [], tied=[[("a", "b"), ("c", "d")]]), TERMS, Budget.zcdp(1), "a x b is tied to c x d"),
        (PAIRS, WEIGHTED, Budget.zcdp(1), "each row as 1"),
        (PAIRS, TERMS, {("a", "b"): Budget.zcdp(1), ("c", "d"): Budget.zcdp(1)}, "a budget for each clique was given"),
    ],
    ids=["labels", "tied", "contributions", "budgets"],
)  # fmt: skip
def test_contrasts_are_refused_where_there_are_none(structure, terms, budget, words):
    """In one line, before anything is read; and what is to be sharper has tables, or says what is wrong of them."""
    with pytest.raises((StructureError, BudgetError), match=words):
        measure(GAUSSIAN, structure, terms, budget, "contrasts")
    assert measure(GAUSSIAN, structure, terms, budget, "sharper") == measure(GAUSSIAN, structure, terms, budget)
    with pytest.raises(BudgetError, match="must be positive"):
        measure(GAUSSIAN, structure, terms, Budget.zero("zcdp"), "sharper")

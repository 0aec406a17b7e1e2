"""Budgets are exact, conversions round against us, sensitivities match a brute-force count, entries refuse nonsense."""

import itertools
import math
from decimal import Context, Decimal
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpgm_core.domain import Domain
from dpgm_core.errors import BudgetError
from dpgm_core.privacy.amounts import amount, decimal_text, sqrt_floor
from dpgm_core.privacy.budget import Budget, PrivacyEvent, zcdp_epsilon
from dpgm_core.privacy.sensitivity import Neighbours, Sensitivity
from dpgm_core.structure import Structure

fractions = st.fractions(min_value=Fraction(1, 10**12), max_value=10**12)
WIDE = Context(prec=400)

NOT_AMOUNTS = [math.nan, math.inf, -math.inf, -1, -0.5, 0, 0.0, -0.0, True, False, None, b"1", [1], 1j]
NOT_TEXTS = [
    "",
    "nan",
    "inf",
    "Infinity",
    "-1",
    "0",
    "0.0",
    "1/0",
    "1 / 3",
    "1_000",
    "0x1",
    "1.2.3",
    ".",
    "1e9999",
    "\uff11",
]


# --- amounts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [*NOT_AMOUNTS, *NOT_TEXTS, Decimal("NaN"), Decimal("Infinity"), Decimal("1e999")])
def test_amount_refuses_what_is_not_a_positive_number(value):
    """NaN, infinities, negatives, zero, bools and anything but number and decimal text are refused."""
    with pytest.raises(BudgetError, match="epsilon must be a positive number"):
        amount("epsilon", value)


@pytest.mark.parametrize(
    ("value", "exact"),
    [
        (0.1, Fraction(1, 10)),
        ("0.1", Fraction(1, 10)),
        (Decimal("0.1"), Fraction(1, 10)),
        ("1e-6", Fraction(1, 10**6)),
        ("1/3", Fraction(1, 3)),
        (3, Fraction(3)),
        (5e-324, Fraction(5, 10**324)),
        (1.7976931348623157e308, Fraction("1.7976931348623157e308")),
    ],
)
def test_amount_is_the_decimal_that_was_written(value, exact):
    """A float means the decimal it prints as, and texts and decimals are taken exactly."""
    assert amount("epsilon", value) == exact


def test_amount_allows_zero_only_when_asked():
    """Zero passes with zero=True, and negatives still do not."""
    assert amount("rate", 0, zero=True) == 0
    with pytest.raises(BudgetError, match="0 or a positive"):
        amount("rate", -1, zero=True)


@given(fractions)
def test_ten_tenths_are_one(value):
    """Sums are exact: ten tenths of any amount equal it."""
    tenth = Budget.pure(value) * Fraction(1, 10)
    total = Budget.zero("pure")
    for _ in range(10):
        total += tenth
    assert total == Budget.pure(value)
    assert (Budget.pure(value) - total).is_zero


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(1, 10), "0.1"),
        (Fraction(1, 3), "~0.333333"),
        (Fraction(1234567), "~1.23457e+06"),
        (Fraction(0), "0"),
        (Fraction(10**400), "1e+400"),
        (Fraction(1, 10**400), "1e-400"),
        (Fraction(1, 3 * 10**400), "~3.33333e-401"),
    ],
)
def test_decimal_text_marks_what_it_rounds(value, text):
    """Exact decimals print as such, rounded ones carry a tilde, beyond the range of doubles too."""
    assert decimal_text(value) == text


# --- budgets ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", NOT_AMOUNTS)
@pytest.mark.parametrize("make", [Budget.pure, Budget.zcdp, lambda bad: Budget.approx(bad, 1e-6)])
def test_budgets_refuse_what_is_not_a_positive_number(make, value):
    """Every constructor checks its amounts."""
    with pytest.raises(BudgetError):
        make(value)


@pytest.mark.parametrize("delta", [*NOT_AMOUNTS, 1, 1.5, "2"])
def test_delta_must_be_a_probability_strictly_between_zero_and_one(delta):
    """delta = 0 and delta >= 1 are refused, in approx and in the conversion."""
    with pytest.raises(BudgetError, match="delta"):
        Budget.approx(1, delta)
    with pytest.raises(BudgetError, match="delta"):
        Budget.zcdp(1).to_approx(delta)


@pytest.mark.parametrize(
    "parts",
    [
        {"kind": "pure", "epsilon": 1.0},
        {"kind": "pure", "epsilon": Fraction(-1)},
        {"kind": "pure", "epsilon": Fraction(1), "delta": Fraction(1, 2)},
        {"kind": "pure", "rho": Fraction(1)},
        {"kind": "zcdp", "epsilon": Fraction(1)},
        {"kind": "approx", "rho": Fraction(1)},
        {"kind": "renyi"},
    ],
)
def test_a_budget_has_only_the_parts_of_its_kind(parts):
    """The raw constructor refuses floats, negatives and parts of another kind, which addition would then ignore."""
    with pytest.raises(BudgetError):
        Budget(**parts)


def test_budgets_of_different_kinds_do_not_mix():
    """Adding, comparing and subtracting need one kind; subtracting never goes below zero."""
    pure, zcdp = Budget.pure(1), Budget.zcdp(1)
    for operation in (lambda: pure + zcdp, lambda: pure <= zcdp, lambda: pure - zcdp):
        with pytest.raises(BudgetError, match="different kinds"):
            operation()
    with pytest.raises(BudgetError, match="cannot take"):
        pure - Budget.pure("1.0000000000000000000000001")
    with pytest.raises(TypeError):
        pure + 1
    for factor in (0, -1, True, math.nan):
        with pytest.raises(BudgetError):
            pure * factor


def test_comparison_is_part_by_part():
    """More delta is not made up for by less epsilon."""
    assert not Budget.approx(1, "1e-5") <= Budget.approx(2, "1e-6")
    assert Budget.approx(1, "1e-6") <= Budget.approx(1, "1e-6")


@given(fractions, fractions, st.sampled_from(["pure", "zcdp", "approx"]))
def test_to_dict_and_parse_are_inverse(first, second, kind):
    """A budget survives the round trip through plain texts exactly."""
    budget = {
        "pure": lambda: Budget.pure(first),
        "zcdp": lambda: Budget.zcdp(first),
        "approx": lambda: Budget.approx(first, second / (second + 1)),
    }[kind]()
    assert Budget.parse(budget.to_dict()) == budget


@pytest.mark.parametrize("plain", [{}, {"epsilon": 1, "rho": 1}, {"delta": 1e-6}, {"eps": 1}, 1, None, "1", [1]])
def test_parse_refuses_other_shapes(plain):
    """Anything but the three documented shapes is refused."""
    with pytest.raises(BudgetError):
        Budget.parse(plain)


# --- conversions ------------------------------------------------------------------------------------------------


@given(st.fractions(min_value=Fraction(1, 10**400), max_value=10**400))
@example(Fraction(1, 3))
@example(Fraction(2))
@example(Fraction(2**127 - 1, 2**89 - 1))
@example(Fraction(1, 10**400))
def test_sqrt_floor_is_below_and_close(value):
    """The root's square never exceeds the value, and stays within 2^-62 of it, relatively."""
    root = sqrt_floor(value)
    assert root**2 <= value < (root * (1 + Fraction(1, 2**62))) ** 2


@given(fractions)
def test_pure_to_zcdp_and_back_is_exact(epsilon):
    """sqrt(2 * eps^2 / 2) is eps again, with no loss."""
    assert Budget.pure(epsilon).to_zcdp() == Budget.zcdp(epsilon**2 / 2)
    assert Budget.pure(epsilon).to_zcdp().to_pure() == Budget.pure(epsilon)


@given(fractions)
def test_spending_rho_purely_never_costs_more_than_rho(rho):
    """sqrt(2 rho) is rounded down: its cost in zCDP is at most rho."""
    assert Budget.zcdp(rho).to_pure().to_zcdp() <= Budget.zcdp(rho)


def exact_epsilon(rho, delta):
    """rho + 2 sqrt(rho ln(1/delta)) with 400 digits."""
    log = WIDE.ln(WIDE.divide(delta.denominator, delta.numerator))
    root = WIDE.sqrt(WIDE.multiply(WIDE.divide(rho.numerator, rho.denominator), log))
    return rho + 2 * Fraction(root)


@given(
    st.fractions(min_value=Fraction(1, 10**60), max_value=10**60).filter(bool),
    st.fractions(min_value=Fraction(1, 10**80), max_value=1 - Fraction(1, 10**80)).filter(lambda d: 0 < d < 1),
)
@example(Fraction(1, 2), Fraction(1, 10**6))
@example(Fraction(10**60), Fraction(1, 3))
@example(Fraction(1), 1 - Fraction(1, 10**80))
@example(Fraction(1, 10**60), Fraction(1, 10**300))
def test_zcdp_epsilon_is_rounded_up(rho, delta):
    """Never below the exact value, and within 1e-40 plus 1e-50 of it, relatively (delta not within 1e-20 of 1)."""
    exact, given_out = exact_epsilon(rho, delta), zcdp_epsilon(rho, delta)
    assert exact <= given_out
    if 1 - delta > Fraction(1, 10**20):
        assert given_out <= exact * (1 + Fraction(1, 10**48)) + Fraction(1, 10**40)


def test_zcdp_epsilon_of_nothing_is_nothing():
    """rho = 0 costs no epsilon."""
    assert zcdp_epsilon(Fraction(0), Fraction(1, 10**6)) == 0


def test_conversions_that_do_not_exist_are_refused():
    """(epsilon, delta) implies no zCDP, no pure epsilon and no other delta."""
    budget = Budget.approx(1, 1e-6)
    for convert in (budget.to_zcdp, budget.to_pure, lambda: budget.to_approx(1e-5)):
        with pytest.raises(BudgetError):
            convert()
    assert Budget.pure(1).to_approx(1e-6) == Budget.approx(1, 1e-6)


# --- neighbours, sensitivity, events ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "add_remove", "ADD-REMOVE", None, 1, True, b"add-remove"])
def test_the_relation_has_no_default_and_no_other_spelling(name):
    """Only the two names and the enum itself are relations."""
    with pytest.raises(BudgetError, match="add-remove, replace-one"):
        Neighbours.of(name)
    assert Neighbours.of(Neighbours.of("replace-one")) is Neighbours.REPLACE_ONE


def tables_of(structure, groups, rows):
    """Counts of a few rows, by hand: one dict per group of tied cliques."""
    names = structure.domain.names
    counts = []
    for group in groups:
        table = {}
        for row in rows:
            for clique in group:
                cell = tuple(row[names.index(name)] for name in clique)
                table[cell] = table.get(cell, 0) + 1
        counts.append(table)
    return counts


def norms(first, second):
    """(L0, L1, L2 squared, Linf) of the difference of two lists of tables."""
    moves = [abs(a.get(c, 0) - b.get(c, 0)) for a, b in zip(first, second, strict=True) for c in a.keys() | b.keys()]
    moves = [move for move in moves if move]
    return len(moves), sum(moves), sum(move**2 for move in moves), max(moves, default=0)


CASES = [
    ({"a": 2, "b": 2}, [("a", "b")], []),
    ({"a": 2, "b": 3}, [("a",), ("b",)], []),
    ({"a": 2, "b": 2, "c": 2}, [("a", "b"), ("b", "c")], []),
    ({"a": 1, "b": 2}, [("a",), ("b",)], []),
    ({"a": 2, "b": 2, "c": 2}, [], [[("a", "b"), ("b", "c")]]),
    ({"a": 2, "b": 2, "c": 2}, [("a",)], [[("a", "b"), ("b", "c")]]),
    ({"a": 1, "b": 1}, [], [[("a",), ("b",)]]),
]


@pytest.mark.parametrize(("sizes", "cliques", "tied"), CASES)
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("most_rows", [1, 2])
def test_sensitivity_is_the_worst_case_over_all_persons(sizes, cliques, tied, relation, most_rows):
    """Over every person of up to r rows, each declared norm is never exceeded, and L1, L2, Linf are attained.

    L1 and L2 under replace-one with r > 1 and one-cell tables are stated bounds: there only "never exceeded" holds.
    """
    structure = Structure(Domain.from_sizes(sizes), cliques, tied=tied)
    groups = [*([clique] for clique in cliques), *tied]
    declared = Sensitivity.of(structure, relation, rows_per_person=most_rows)
    records = list(itertools.product(*(range(size) for size in sizes.values())))
    persons = [
        tables_of(structure, groups, rows)
        for count in range(1, most_rows + 1)
        for rows in itertools.combinations_with_replacement(records, count)
    ]
    others = persons if relation == "replace-one" else [[{} for _ in groups]]
    worst = [max(column) for column in zip(*(norms(a, b) for a in persons for b in others), strict=True)]
    stated = [declared.l0, declared.l1, declared.l2_squared, declared.linf]
    assert all(seen <= limit for seen, limit in zip(worst, stated, strict=True)), (worst, stated)
    if min(structure.sizes) > 1 or most_rows == 1 or relation == "add-remove":
        assert worst[1:] == stated[1:]


@pytest.mark.parametrize("field", ["l0", "l1", "l2_squared", "linf"])
@pytest.mark.parametrize("value", [-1, 1.0, True, math.nan, math.inf, "1", None])
def test_a_sensitivity_holds_whole_numbers(field, value):
    """A norm that is not a whole number of at least 0 never reaches a mechanism."""
    with pytest.raises(BudgetError, match=f"sensitivity {field}"):
        Sensitivity(**{"l0": 1, "l1": 1, "l2_squared": 1, "linf": 1, field: value})


@pytest.mark.parametrize("rows", [0, -1, 1.0, True, "2"])
def test_rows_per_person_is_a_positive_whole_number(rows):
    """Zero, negatives, floats, bools and texts are refused."""
    structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    with pytest.raises(BudgetError, match="rows_per_person"):
        Sensitivity.of(structure, "add-remove", rows_per_person=rows)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, "1", True, None])
def test_events_are_finite_and_of_known_kind(value):
    """An accountant never meets NaN, infinities, other types or an unknown kind."""
    with pytest.raises(BudgetError):
        PrivacyEvent(kind="discrete-laplace", scale=value, sensitivity=1.0)
    with pytest.raises(BudgetError):
        PrivacyEvent(kind="discrete-laplace", scale=1.0, sensitivity=value)
    with pytest.raises(BudgetError, match="no privacy event"):
        PrivacyEvent(kind="poisson", scale=1.0, sensitivity=1.0)

"""Arrays of 2^p numbers as polynomials and distributions, against what they stand for, monomial by monomial."""

import itertools

import numpy as np
import pytest
from dpgm_mrf.polynomials import degrees, local, maximal, monomials_of, potentials, strongest, transform

import dpgm_core as dpgm

NAMES = ("a", "b", "c", "d")
DOMAIN = dpgm.Domain.from_sizes(dict.fromkeys(NAMES, 2))


def signs(count):
    """(-1)^(common bits of row and column), bit by bit."""
    return np.array([[(-1) ** bin(one & other).count("1") for other in range(count)] for one in range(count)])


@pytest.mark.parametrize("p", [0, 1, 5])
def test_the_transform_is_a_product_with_all_signs(p):
    """Whole numbers exactly, up to 2^50; and twice is 2^p times what went in; the argument stays as it was."""
    values = np.random.default_rng(p).integers(-(2**50), 2**50, 2**p)
    monomials = values.copy()
    assert transform(values).tolist() == (signs(2**p) @ values).tolist()
    assert transform(transform(values)).tolist() == (2**p * values).tolist()
    assert (values == monomials).all() and transform(values).dtype == np.int64


def test_parities_of_records_are_sums_of_products():
    """The transform of a histogram of states against products of +1 and -1 codes, record by record."""
    codes = np.random.default_rng(1).integers(0, 2, (500, 4))
    histogram = np.bincount(codes @ (1 << np.arange(4)), minlength=16)
    spun = 1 - 2 * codes
    for monomial, actual in enumerate(transform(histogram)):
        inside = [place for place in range(4) if monomial >> place & 1]
        assert actual == np.prod(spun[:, inside], axis=1).sum() and len(inside) == degrees(16)[monomial]


def test_monomials_are_those_inside_cliques():
    """Of 1 to `order` attributes, whatever the order of names in a clique."""
    structure = dpgm.Structure(DOMAIN, [("c", "a", "b"), ("d",), ()])
    expected = {1 << place for place in range(4)} | {0b011, 0b101, 0b110}
    assert set(monomials_of(structure, NAMES, 2)) == expected
    assert set(monomials_of(structure, NAMES, 3)) == expected | {0b111}


def test_the_largest_monomials():
    """None lies in another; against all subsets by brute force."""
    rng = np.random.default_rng(2)
    for _ in range(50):
        monomials = set(rng.integers(1, 32, 6).tolist())
        expected = {one for one in monomials if not any(one != other and one & other == one for other in monomials)}
        actual = maximal(np.array(sorted(monomials)), 32)
        assert set(actual) == expected and actual == sorted(actual, key=lambda one: (-one.bit_count(), one))


def test_potentials_are_the_polynomial():
    """At every record the tables add up to the polynomial, but for its constant; shared monomials count once."""
    structure = dpgm.Structure(DOMAIN, [("c", "a"), ("a", "b", "c"), ("d", "b"), ("d",), ()])
    coefficients = np.random.default_rng(3).normal(size=16)
    inside = np.zeros(16)
    inside[monomials_of(structure, NAMES, 4)] = 1
    tables = potentials(structure, NAMES, coefficients)
    for codes in itertools.product(range(2), repeat=4):
        state = sum(code << place for place, code in enumerate(codes))
        code_of = dict(zip(NAMES, codes, strict=True))
        summed = sum(table[tuple(code_of[name] for name in clique)] for clique, table in tables.items())
        assert summed == pytest.approx(float(signs(16)[state] @ (coefficients * inside)), abs=1e-12)
    assert local(("d", "b"), NAMES).tolist() == [0, 2, 8, 10]


def test_the_strongest_structure():
    """Above the threshold and inside the cliques; attributes in no strong product stand alone, also with a weak one."""
    structure = dpgm.Structure(DOMAIN, [("a", "b", "c"), ("d", "c")])
    coefficients = np.zeros(16)
    coefficients[[0b0111, 0b0011, 0b1000, 0b1100, 0b1001]] = [0.2, -0.3, 0.1, 0.25, 9.0]  # the last in no clique
    actual = [strongest(structure, NAMES, coefficients, above).cliques for above in (0.19, 0.22, 0.27, 1.0)]
    assert actual[0] == (("a", "b", "c"), ("c", "d"))
    assert actual[1] == (("a", "b"), ("c", "d"))
    assert actual[2] == (("a", "b"), ("c",), ("d",))
    assert actual[3] == (("a",), ("b",), ("c",), ("d",))

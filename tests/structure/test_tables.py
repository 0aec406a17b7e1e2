"""Tables: one vector space over cliques, seen as named arrays."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgm_core.domain.domain import Domain
from dpgm_core.errors import StructureError
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables
from dpgm_testing.oracles import log_joint

DOMAIN = Domain.from_sizes({"a": 2, "b": 3, "c": 2})
STRUCTURE = Structure(DOMAIN, [("a", "b"), ("c", "b")], tied=[[("a",), ("c",)]])
vectors = st.lists(st.integers(-1000, 1000), min_size=14, max_size=14).map(
    lambda values: Tables(STRUCTURE, np.array(values, dtype=float))
)


@given(vectors, vectors, st.integers(-5, 5))
def test_the_algebra_is_that_of_the_buffer(one, other, factor):
    """Sums, multiples, dot products and norms agree with numpy on the buffer."""
    assert np.array_equal((one + other).values, one.values + other.values)
    assert np.array_equal((one - factor * other).values, one.values - factor * other.values)
    assert np.array_equal((-one / 2).values, one.values / -2)
    assert one.dot(other) == float(one.values @ other.values)
    assert one.norm() == pytest.approx(np.sqrt(one.dot(one)))
    assert one.norm(1) == np.abs(one.values).sum()
    assert one.sums().tolist() == [part.sum() for part in one.arrays()]


@pytest.mark.parametrize("made", [lambda one: one + one, lambda one: one - one, lambda one: -one, Tables.zeros_like])
@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_what_is_made_without_checks_would_pass_them(made, dtype):
    """Results are read-only, contiguous, of one of both types and the right length, as the constructor has them."""
    tables = made(Tables(STRUCTURE, np.arange(14, dtype=dtype)))
    checked = Tables(STRUCTURE, tables.values)
    assert checked.values.dtype == tables.values.dtype and tables.values.flags.c_contiguous
    assert not tables.values.flags.writeable and tables.structure is STRUCTURE
    assert np.array_equal(pickle.loads(pickle.dumps(tables)).values, checked.values)


@pytest.mark.parametrize(("given_as", "dtype"), [("<i4", "i8"), (">i8", "f8"), (">f8", "f8"), ("?", "f8")])
def test_other_number_types_become_one_of_both(given_as, dtype):
    """In the machine's order of bytes."""
    tables = Tables(STRUCTURE, np.ones(14, dtype=given_as))
    assert tables.values.dtype.isnative and tables.values.dtype == np.dtype(dtype)
    assert (tables.values == 1).all()


def test_named_views_follow_the_names():
    """Axes come in the order asked for; any clique of a tied group names its table; views share the buffer."""
    tables = Tables(STRUCTURE, np.arange(14))
    assert tables.values.dtype == np.int64
    assert tables["a", "b"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert np.array_equal(tables["b", "a"], tables["a", "b"].T)
    assert np.array_equal(tables["b", "c"], tables["c", "b"].T)
    assert tables["a"].tolist() == tables["c"].tolist() == [12, 13]
    assert np.shares_memory(tables["b", "a"], tables.values)
    with pytest.raises(ValueError, match="read-only"):
        tables["a", "b"][0, 0] = 1
    with pytest.raises(StructureError):
        tables["a", "c"]


def test_from_arrays_takes_any_order_and_any_member():
    """Arrays follow their key; the result is integer only if all of them are."""
    arrays = {("b", "a"): np.arange(6).reshape(3, 2), ("c", "b"): np.ones((2, 3), np.uint8), ("c",): [7, 8]}
    tables = Tables.from_arrays(STRUCTURE, arrays)
    assert tables.values.dtype == np.int64
    assert tables["a", "b"].tolist() == [[0, 2, 4], [1, 3, 5]]
    assert tables["a"].tolist() == [7, 8]
    assert Tables.from_arrays(STRUCTURE, arrays | {("c",): [0.5, 1]}).values.dtype == np.float64


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({("c",): None}, "hold numbers"),
        ({("c",): ["x", "y"]}, "hold numbers"),
        ({("c",): [1, 2, 3]}, r"shape \(2,\), got \(3,\)"),
        ({("a",): [1, 2]}, "given twice"),
        ({("b",): [1, 2, 3]}, "no clique"),
    ],
)
def test_wrong_arrays_are_refused(change, words):
    """Each refusal names the table and what it should be."""
    arrays = {("a", "b"): np.zeros((2, 3)), ("c", "b"): np.zeros((2, 3)), ("c",): np.zeros(2)}
    with pytest.raises(StructureError, match=words):
        Tables.from_arrays(STRUCTURE, arrays | change)
    del arrays[("c",)]
    with pytest.raises(StructureError, match=r"no table for \('a',\)"):
        Tables.from_arrays(STRUCTURE, arrays)


@pytest.mark.parametrize("values", [np.zeros(13), np.zeros((14, 1)), np.array(["x"] * 14), np.zeros(14, complex)])
def test_wrong_buffers_are_refused(values):
    """Wrong lengths and things that are no numbers."""
    with pytest.raises(StructureError):
        Tables(STRUCTURE, values)


def test_only_like_goes_with_like():
    """Other structures raise StructureError, other types TypeError; equal structures that are not the same do."""
    one = Tables.zeros(STRUCTURE)
    same = Tables.zeros(copy.copy(Structure(DOMAIN, STRUCTURE.cliques[:2], tied=STRUCTURE.groups[2:])))
    assert (one + same).dot(one) == 0
    with pytest.raises(StructureError):
        one + Tables.zeros(Structure(DOMAIN, [("a",)]))
    for wrong in (lambda: one + 1, lambda: one + one.values, lambda: one.values + one):
        with pytest.raises(TypeError):
            wrong()


def test_the_repr_hides_every_value():
    """They may be true counts."""
    tables = Tables(STRUCTURE, np.full(14, 421337))
    assert "421337" not in repr(tables) + str(tables) + f"{tables}"
    again = pickle.loads(pickle.dumps(tables))
    assert np.array_equal(again.values, tables.values)


def test_embedding_keeps_the_distribution():
    """Potentials over a larger structure add up to the same log-weight of every record."""
    rng = np.random.default_rng(0)
    tables = Tables(STRUCTURE, rng.normal(size=14))
    into = Structure(DOMAIN, [("c", "b", "a")])
    whole = tables.embed(into)["a", "b", "c"]
    by_hand = tables["a", "b"][:, :, None] + tables["b", "c"][None] + (tables["a"][:, None, None] + tables["c"])
    assert np.allclose(whole, by_hand)
    with pytest.raises(StructureError, match="contains"):
        tables.embed(Structure(DOMAIN, [("a", "b")]))
    with pytest.raises(StructureError, match="tied"):
        Tables.zeros(Structure(DOMAIN, [("a",)])).embed(STRUCTURE)


FOUR = Domain.from_sizes({"a": 2, "b": 2, "c": 2, "d": 3})
TIED = Structure(FOUR, [("d",), ("c",)], tied=[[("a", "b"), ("b", "c"), ("c", "a")]])
WIDER = {
    "itself": TIED,
    "untied": TIED.untied(),
    "more cliques": Structure(FOUR, [*TIED.cliques, ("a", "d"), ("b",)]),
    "other orders": Structure(FOUR, [("b", "a"), ("c", "b"), ("a", "c"), ("d",), ("c",)]),
    "larger cliques": Structure(FOUR, [("c", "d"), ("c", "b", "a")]),
    "one clique": Structure(FOUR, [("d", "c", "b", "a")]),
}


@pytest.mark.parametrize("into", WIDER.values(), ids=WIDER)
def test_every_record_keeps_its_log_weight(into):
    """Whatever contains the cliques: also where a tied group's table goes to each member, and into itself."""
    tables = Tables(TIED, np.random.default_rng(1).normal(size=TIED.cells))
    embedded = tables.embed(into)
    assert embedded.structure == into
    assert np.allclose(log_joint(embedded), log_joint(tables), rtol=0, atol=1e-12)


def test_what_is_impossible_stays_so():
    """A log-weight of -inf is nobody's NaN."""
    values = np.zeros(TIED.cells)
    values[0] = -np.inf
    tables = Tables(TIED, values)
    for into in WIDER.values():
        assert np.array_equal(log_joint(tables.embed(into)), log_joint(tables))


def test_repeats_and_sums():
    """repeat spreads one number per group over its cells; four cells of 2^62 sum to 2^64, as int64 they summed to 0."""
    assert Tables.zeros(STRUCTURE).repeat([1, 2, 3]).tolist() == [1.0] * 6 + [2.0] * 6 + [3.0] * 2
    structure = Structure(Domain.from_sizes({"a": 4}), [("a",)])
    assert Tables(structure, np.full(4, 2**62)).sums().tolist() == [2.0**64]

"""Questions: names, labels and evidence are checked, and an answer says what it rests on."""

from datetime import date

import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm_core import Budget, Domain, DomainError, Structure, StructureError
from dpgm_core.models.model import Model
from dpgm_core.models.queries import (
    Basis,
    encode_evidence,
    quote_names,
    read_evidence,
    refuse_unmeasured,
)
from tests.fixtures import seeded
from tests.models.enumerated import uniform_model

LABELLED = Domain.from_dict(
    {"sex": {"labels": ["F", "M"], "unknown": "F"}, "town": {"labels": ["A", "B"], "unknown": "A"}}
)


def test_an_attribute_that_is_not_there_cannot_be_given():
    """What else is wrong with names, labels and lists is asked of a model in test_model.py."""
    with pytest.raises(StructureError, match="lacks"):
        read_evidence(TYPED, {"agee": 1})


def test_what_a_constraint_leaves_no_record_for_is_refused_by_its_name():
    """Of all that is given, or of one label; what is left possible is read."""
    domain = Domain.from_dict(
        {
            "attributes": {"county": {"labels": ["a1", "b1"]}, "state": {"labels": ["a", "b"]}},
            "constraints": {"inside": {"columns": ["county", "state"], "map": {"a1": "a", "b1": "b"}}},
        }
    )
    assert encode_evidence(domain, {"county": "a1", "state": "a"}) == {"county": 0, "state": 0}
    with pytest.raises(DomainError, match="given, county=a1, state=b, is impossible: constraint 'inside'"):
        encode_evidence(domain, {"state": "b", "county": "a1"})


TYPED = Domain.from_dict(
    {
        "age": {"type": "integer", "min": 0, "max": 94, "bins": 5},
        "seen": {"type": "date", "min": "2020-01-01", "max": "2020-12-31", "bins": "month"},
        "sex": ["F", "M"],
    }
)


def test_values_keep_their_place_and_find_their_bin():
    """A text that is no label, a float, a date; labels and codes are no values."""
    found = read_evidence(TYPED, {"age": "37", "seen": date(2020, 2, 29), "sex": "M"})
    assert found.places == {"age": 37.0, "seen": 18321.0}
    assert found.codes["sex"] == 1 and found.codes["seen"] == 1
    low, high = TYPED["age"].edges[found.codes["age"]], TYPED["age"].edges[found.codes["age"] + 1]
    assert low <= 37 < high
    assert found.bins(TYPED)["seen"] == "2020-02"
    assert read_evidence(TYPED, {"age": 1}).codes == {"age": 1} and read_evidence(TYPED, {"age": 1}).places == {}
    assert read_evidence(TYPED, {"seen": "2020-02"}).places == {}
    assert read_evidence(TYPED, None).stamp(TYPED) == {}
    assert read_evidence(TYPED, {"sex": "F"}).stamp(TYPED) == {"given": {"sex": "F"}}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"age": "137"}, "outside of its bins"),
        ({"age": "old"}, "no label 'old'"),
        ({"age": "37.5"}, "no label '37.5'"),
        ({"age": float("nan")}, "needed"),
        ({"age": float("inf")}, "needed|outside"),
        ({"age": True}, "needed"),
        ({"age": None}, "needed"),
        ({"seen": "2021-01-01"}, "outside of its bins"),
        ({"sex": 1.0}, "needed"),
    ],
)
def test_what_is_no_value_is_refused(given, message):
    """By attribute, with what would do."""
    with pytest.raises(DomainError, match=message):
        read_evidence(TYPED, given)


@pytest.mark.parametrize(("order", "fits"), [("<=", True), ("<", False)])
def test_values_of_one_bin_in_the_wrong_order_are_refused(order, fits):
    """Of two columns and along a chain; records would be sampled with them as they are."""
    column = {"type": "integer", "min": 0, "max": 60, "bins": 2}
    domain = Domain.from_dict(
        {
            "attributes": {"a": column, "b": column, "c": column},
            "constraints": {
                "ab": {"columns": ["a", "b"], "order": order},
                "bc": {"columns": ["b", "c"], "order": "<="},
            },
        }
    )
    assert read_evidence(domain, {"a": "24", "b": "25", "c": "26"}).places == {"a": 24.0, "b": 25.0, "c": 26.0}
    for last in ("b", "c"):
        with pytest.raises(DomainError, match=f"given of 'a' and '{last}' are impossible: constraint '(ab|bc)' rules"):
            read_evidence(domain, {"a": "25", last: "24"})
        if fits:
            assert read_evidence(domain, {"a": "25", last: "25"}).places["a"] == 25
        else:
            with pytest.raises(DomainError, match="are impossible"):
                read_evidence(domain, {"a": "25", last: "25"})


# --- what an answer rests on: released tables, the structure alone, or nothing ----------------------------------------


DOMAIN = Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 2, "one": 1})
RECORDS = np.column_stack([np.arange(60) % size for size in (2, 3, 2, 2, 1)])


def released(*cliques, tied=(), seed=0):
    return dpgm.release(RECORDS, Structure(DOMAIN, cliques, tied=tied), Budget.pure(1), **seeded(seed))


def model_of(structure: Structure, *releases) -> Model:
    return uniform_model(structure, releases=releases)


@pytest.mark.parametrize(("standing", "asked"), [("measured", "a ab ba ac abc d cd"), ("by structure", "ad abcd bd")])
def test_inside_one_released_clique_is_measured(standing, asked):
    """Any part of a clique in any order, nested ones too; attributes of two cliques are joined by the structure."""
    structure = Structure(DOMAIN, [("c", "b", "a"), ("a", "b"), ("d", "c")])
    model = model_of(structure, released(*structure))
    for names in asked.split():
        assert Basis(DOMAIN, [structure]).standing(names) == standing == model.standing(tuple(names)), names


def test_what_is_measured_is_the_union_of_the_releases():
    """Not the model's own structure, which may be wider; two releases do not make one table of their attributes."""
    wide = Structure(DOMAIN, [("a", "b", "c"), ("c", "d")])
    model = model_of(wide, released(("a", "b")), released(("b", "c"), seed=1))
    assert model.unmeasured == ("d",)
    for standing, asked in (("measured", "ab cb"), ("by structure", "ac abc"), ("not measured", "cd d")):
        assert {model.standing(tuple(names)) for names in asked.split()} == {standing}


def test_what_is_given_counts():
    """p(a | b) needs the table of both; p(a | c) the structure; p(a | d) knows nothing of d."""
    model = model_of(Structure(DOMAIN, [("a", "b"), ("b", "c")]), released(("a", "b"), ("b", "c")))
    assert model.standing("a", given={"b": 0}) == "measured"
    assert model.standing("a", given={"c": "1"}) == "by structure"
    assert model.standing(["a", "b"], given={"c": "1"}) == "by structure"
    assert model.standing("a", given={"d": 0}) == "not measured"
    for wrong in (lambda: model.standing("x"), lambda: model.standing("a", {"x": 0}), lambda: model.standing([])):
        with pytest.raises(StructureError):
            wrong()


def test_tied_cliques_are_told_by_what_ties_them():
    """Their table is their sum, so each of them is by structure, unless it was measured alone, too."""
    tied = [[("a", "c"), ("c", "d")]]
    structure = Structure(DOMAIN, [("b",)], tied=tied)
    alone = model_of(structure, released(("b",), tied=tied))
    assert alone.standing("b") == "measured"
    assert alone.standing(("a", "c")) == alone.standing("a") == "by structure"
    both = model_of(structure, released(("b",), tied=tied), released(("a",), seed=1))
    assert (both.standing("a"), both.standing(["a", "c"]), both.unmeasured) == ("measured", "by structure", ())


def test_what_needs_no_table_is_by_definition():
    """Without a release nothing is unknown; an attribute with one label is never unmeasured."""
    model = model_of(Structure(DOMAIN, [("a", "b")]))
    assert model.unmeasured == ()
    assert {model.standing(name) for name in "abcd"} == {"by definition"}
    assert model.marginal("d").tolist() == pytest.approx([0.5, 0.5])
    model = model_of(Structure(DOMAIN, [("a", "b")]), released(("a", "b")))
    assert model.unmeasured == ("c", "d")
    assert (model.standing("one"), model.standing(["a", "one"])) == ("by definition", "measured")
    assert model.standing(["c", "one"]) == "not measured"


def test_refusals_name_what_is_unknown():
    """By name, once each, with what would do; what was measured passes."""
    refuse_unmeasured(["a", "b", "one"], ("c", "d"))
    with pytest.raises(StructureError, match=r"measured 'd', 'c', so .* --unmeasured uniform"):
        refuse_unmeasured(["a", "d", "c", "d"], ("c", "d"))
    assert quote_names([str(number) for number in range(6)]).endswith("'4', ... 6 in all")


def test_intervals_say_their_standing():
    """Beside level and bounds; of any other function of a model nobody knows it."""
    structure = Structure(DOMAIN, [("a", "b"), ("b", "c")])
    model = model_of(structure, released(("a", "b"), ("b", "c")))
    model = model.with_replicates(np.zeros((2, structure.cells)))
    assert model.intervals("a").standing == "measured"
    assert model.intervals("a", given={"c": 0}).standing == "by structure"
    assert model.interval_of(lambda one: one.marginal("a")).standing is None

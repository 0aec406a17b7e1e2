"""What an answer rests on: released tables, the structure alone, or nothing."""

import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm_core import Budget, Domain, SeededRandomness, Structure, Tables
from dpgm_core.errors import StructureError
from dpgm_core.models.model import Model
from dpgm_core.models.queries import Basis, quote_names, refuse_unmeasured

DOMAIN = Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 2, "one": 1})
RECORDS = np.column_stack([np.arange(60) % size for size in (2, 3, 2, 2, 1)])


def released(*cliques, tied=(), seed=0):
    return dpgm.release(
        RECORDS,
        Structure(DOMAIN, cliques, tied=tied),
        Budget.pure(1),
        neighbours="add-remove",
        randomness=SeededRandomness(seed),
    )


def model_of(structure: Structure, *releases) -> Model:
    return Model(structure, Tables.zeros(structure), releases=releases)


@pytest.mark.parametrize(
    ("names", "standing"),
    [
        ("a", "measured"),
        ("ab", "measured"),
        ("ba", "measured"),
        ("ac", "measured"),
        ("abc", "measured"),
        ("ad", "by structure"),
        ("abcd", "by structure"),
        ("d", "measured"),
        ("cd", "measured"),
        ("bd", "by structure"),
    ],
)
def test_inside_one_released_clique_is_measured(names, standing):
    """Any part of a clique in any order, nested ones too; attributes of two cliques are joined by the structure."""
    structure = Structure(DOMAIN, [("c", "b", "a"), ("a", "b"), ("d", "c")])
    assert Basis(DOMAIN, [structure]).standing(names) == standing
    assert model_of(structure, released(*structure)).standing(tuple(names)) == standing


def test_what_is_measured_is_the_union_of_the_releases():
    """Not the model's own structure, which may be wider; two releases do not make one table of their attributes."""
    wide = Structure(DOMAIN, [("a", "b", "c"), ("c", "d")])
    model = model_of(wide, released(("a", "b")), released(("b", "c"), seed=1))
    assert model.unmeasured == ("d",)
    assert [model.standing(tuple(names)) for names in ("ab", "cb", "ac", "abc", "cd", "d")] == [
        "measured",
        "measured",
        "by structure",
        "by structure",
        "not measured",
        "not measured",
    ]


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
    assert [model_of(structure, released(("b",), tied=tied)).standing(n) for n in ("b", ("a", "c"), "a")] == [
        "measured",
        "by structure",
        "by structure",
    ]
    both = model_of(structure, released(("b",), tied=tied), released(("a",), seed=1))
    assert (both.standing("a"), both.standing(["a", "c"]), both.unmeasured) == ("measured", "by structure", ())


def test_a_model_without_a_release_is_what_it_says():
    """Nothing was measured, and nothing is unknown: an attribute in no clique is uniform because it says so."""
    model = model_of(Structure(DOMAIN, [("a", "b")]))
    assert model.unmeasured == ()
    assert {model.standing(name) for name in "abcd"} == {"by definition"}
    assert model.marginal("d").tolist() == pytest.approx([0.5, 0.5])


def test_one_label_needs_no_table():
    """An attribute with one label has it for sure: it is never unmeasured, and takes nothing from what was."""
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

"""Constraints: by labels, by order, against all pairs of values, and in domain files."""

import itertools

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgm_core.domain import Listed, Mapped, Ordered
from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.bins import PrivateLabels
from dpgm_core.domain.constraints import read_constraint
from dpgm_core.domain.domain import Domain
from dpgm_core.domain.values import Values
from dpgm_core.errors import DomainError

SEX = Attribute.of_labels("sex", ["F", "M"], unknown="missing")
BIRTHS = Attribute.of_labels("births", ["0", "1", "2"], unknown="missing")
TOWN = Attribute.of_labels("town", ["Ulm", "Bonn", "Kiel"], unknown="other")
LAND = Attribute.of_labels("land", ["BW", "NRW", "SH"], unknown="missing")
WHERE = (("Ulm", "BW"), ("Bonn", "NRW"), ("Kiel", "SH"))


def test_listed_combinations_are_impossible_or_all_there_are():
    """A star is any label; missing values are meant only where it says so."""
    rule = Listed(name="x", columns=("sex", "births"), combinations=(("M", "1"), ("missing", "*")))
    assert rule.impossible((SEX, BIRTHS)).astype(int).tolist() == [[0, 0, 0, 0], [0, 1, 0, 0], [1, 1, 1, 1]]
    rule = Listed(name="x", columns=("sex", "births"), combinations=(("M", "0"), ("F", "*")), possible=True)
    assert (~rule.impossible((SEX, BIRTHS))).astype(int).tolist() == [[1, 1, 1, 1], [1, 0, 0, 0], [0, 0, 0, 0]]


def test_a_map_leaves_each_fine_label_its_coarse_one():
    """A label that the map leaves out falls on the coarse column's label of missing values, or has any with a star."""
    rule = Mapped(name="where", columns=("town", "land"), to=WHERE)
    assert (~rule.impossible((TOWN, LAND))).astype(int).tolist() == np.eye(4, dtype=int).tolist()
    free = Mapped(name="where", columns=("town", "land"), to=(*WHERE, ("other", "*")))
    assert (~free.impossible((TOWN, LAND)))[3].all()


def test_a_label_that_is_mapped_nowhere_is_refused_where_missing_values_are_a_real_answer():
    """Else it would fall on an answer that nobody gave."""
    real = Attribute.of_labels("land", ["BW", "NRW", "SH"], unknown="BW")
    with pytest.raises(DomainError, match=r"says no land for town 'other', and missing values of land count as 'BW'"):
        Mapped(name="where", columns=("town", "land"), to=WHERE).check((TOWN, real))


@pytest.mark.parametrize("rule", [
    Listed(name="x", columns=("town", "land"), combinations=(("Uml", "BW"),)),
    Mapped(name="x", columns=("town", "land"), to=(("Uml", "BW"),)),
])  # fmt: skip
def test_a_label_that_is_none_is_refused_by_name(rule):
    with pytest.raises(DomainError, match=r"constraint 'x': town has no label 'Uml'.*'Ulm'"):
        rule.check((TOWN, LAND))


def test_what_labels_found_later_do_not_hold_is_part_of_the_rest():
    """Nothing is impossible before they are found; then the unknown label may be whatever of them is missing."""
    open_ = Attribute(name="town", labels=("label 1", "other"), unknown=1, null=1, private=PrivateLabels(keep=1))
    found = Attribute.of_labels("town", ["Ulm"], unknown="other")
    mapped = Mapped(name="where", columns=("town", "land"), to=WHERE)
    mapped.check((open_, LAND))
    assert not mapped.impossible((open_, LAND)).any()
    over = mapped.over((found, LAND))
    assert over.to == (("Ulm", "BW"), ("other", "NRW"), ("other", "SH"))
    assert (~over.impossible((found, LAND))).astype(int).tolist() == [[1, 0, 0, 0], [0, 1, 1, 0]]
    gone = Listed(name="x", columns=("town", "land"), combinations=(("Kiel", "BW"), ("Ulm", "SH")))
    assert gone.over((found, LAND)).combinations == (("Ulm", "SH"),)
    only = Listed(name="x", columns=("town", "land"), combinations=(("Kiel", "SH"), ("Ulm", "BW")), possible=True)
    assert only.over((found, LAND)).combinations == (("other", "SH"), ("Ulm", "BW"))


def test_the_missing_label_of_private_bins_may_be_named_and_their_bins_may_not():
    """No bin can be called so: a child has no income, whatever the bins of incomes turn out to be."""
    income = {"type": "integer", "min": 0, "max": 99, "bins": {"private": 4}, "missing": "N", "null_values": ["N"]}
    plain = {
        "attributes": {"age": {"labels": ["child", "adult"], "unknown": "child"}, "income": income},
        "constraints": {
            "children": {"columns": ["age", "income"], "possible": [["child", "N"], ["adult", "*"]]},
            "adults": {"columns": ["age", "income"], "impossible": [["adult", "N"]]},
        },
    }
    domain = Domain.from_dict(plain)
    assert domain.impossible(("age", "income")) is None or not domain.impossible(("age", "income")).any()
    bins = {"type": "integer", "bins": [0, 10, 99], "missing": "N", "null_values": ["N"]}
    found = domain.with_attributes({"income": Attribute.from_dict("income", bins)})
    assert found.impossible(("age", "income")).tolist() == [[True, True, False], [False, False, True]]
    rule = {"columns": ["age", "income"], "impossible": [["child", "50-99"]]}
    with pytest.raises(DomainError, match="names '50-99', a bin of income, whose bins are found privately"):
        Domain.from_dict(plain | {"constraints": {"children": rule}})


def test_a_table_that_no_memory_holds_is_refused():
    """By its number of combinations, before it is made."""
    wide = tuple(Attribute.of_size(name, 1000) for name in "abc")
    with pytest.raises(DomainError, match=r"constraint 'x' is about 1,000,000,000 combinations"):
        Listed(name="x", columns=("a", "b", "c"), combinations=(("0", "0", "0"),)).impossible(wide)


def binned(name, edges, kind="integer"):
    return evolve(Attribute.of_bins(name, edges, unknown="missing"), values=Values(kind=kind))


edges = st.lists(st.integers(0, 12), min_size=2, max_size=5, unique=True).map(sorted)


@given(edges, edges, st.booleans())
@settings(max_examples=60)
def test_a_pair_of_bins_is_impossible_only_if_no_pair_of_whole_values_fits(first, second, strict):
    """Every pair of whole numbers is tried; missing values pass."""
    pair = binned("s", first), binned("e", second)
    fits = np.zeros((pair[0].size, pair[1].size), dtype=bool)
    fits[-1], fits[:, -1] = True, True
    for low, high in itertools.product(range(13), repeat=2):
        if low < high or (low == high and not strict):
            fits[pair[0].code(str(low)), pair[1].code(str(high))] = True
    found = Ordered(name="x", columns=("s", "e"), strict=strict).impossible(pair)
    assert (~found).tolist() == fits.tolist()


def test_other_numbers_fit_between_whole_ones():
    """[1, 2) and [1, 2) hold two of which one is above the other, if they need not be whole; a closed end counts."""
    pair = binned("s", [1, 2, 3], "number"), binned("e", [0, 1, 2], "number")
    assert Ordered(name="x", columns=("s", "e")).impossible(pair).astype(int).tolist() == [
        [1, 0, 0],
        [1, 0, 0],  # [2, 3] and [1, 2]: 2 and 2
        [0, 0, 0],
    ]
    assert Ordered(name="x", columns=("s", "e"), strict=True).impossible(pair).astype(int).tolist() == [
        [1, 0, 0],
        [1, 1, 0],
        [0, 0, 0],
    ]


def test_labels_are_compared_by_number_or_by_place():
    numbers = Attribute.of_labels("s", ["10", "9"], unknown="missing"), Attribute.of_size("e", 11)
    found = Ordered(name="x", columns=("s", "e")).impossible(numbers)
    assert found.sum(axis=1).tolist() == [10, 9, 0]
    words = tuple(Attribute.of_labels(name, ["low", "mid", "high"], unknown="missing") for name in "se")
    assert Ordered(name="x", columns=("s", "e"), strict=True).impossible(words).astype(int).tolist() == [
        [1, 0, 0, 0],
        [1, 1, 0, 0],
        [1, 1, 1, 0],
        [0, 0, 0, 0],
    ]


@pytest.mark.parametrize(("one", "other", "said"), [
    (binned("s", [0, 1]), Attribute.of_labels("e", ["no", "yes"], unknown="no"), "whose labels are none"),
    (binned("s", [0, 1]), binned("e", [0, 1], "date"), "compares numbers, s, with date, e"),
    (
        Attribute.of_labels("s", ["a", "b"], unknown="?"), Attribute.of_labels("e", ["b", "a"], unknown="?"),
        "by the places of their labels, which differ",
    ),
])  # fmt: skip
def test_columns_that_cannot_be_compared_are_refused(one, other, said):
    with pytest.raises(DomainError, match=said):
        Ordered(name="x", columns=("s", "e")).check((one, other))


FILE = """
[attributes.town]
labels = ["Ulm", "Bonn"]
unknown = "missing"
[attributes.land]
labels = ["BW", "NRW"]
unknown = "missing"
[constraints.where]
columns = ["town", "land"]
map = "towns.csv"
[constraints.never]
columns = ["land", "town"]
impossible = [["NRW", "missing"]]
"""


def test_a_domain_file_names_a_map_beside_it(tmp_path):
    """Two of its columns, whatever else it has; written out it needs the file no more."""
    (tmp_path / "domain.toml").write_text(FILE)
    (tmp_path / "towns.csv").write_text("\ufeffland,people,town\nBW,126000,Ulm\nNRW,330000,Bonn\n")
    domain = Domain.load(tmp_path / "domain.toml")
    assert domain.constraints == (
        Mapped(name="where", columns=("town", "land"), to=(("Ulm", "BW"), ("Bonn", "NRW"))),
        Listed(name="never", columns=("land", "town"), combinations=(("NRW", "missing"),)),
    )
    assert Domain.from_dict(domain.to_dict()) == domain


@pytest.mark.parametrize(("text", "said"), [
    ("town,land\nUlm,BW\nUlm,NRW\n", "has 'Ulm' twice, with different land"),
    ("town\nUlm\n", "must name the columns town and land"),
    ("town,land\nUlm\n", "row 2 of the map 'towns.csv' has 1 fields, not 2"),
    (None, "cannot read the map 'towns.csv'"),
])  # fmt: skip
def test_a_map_that_is_none_is_refused(tmp_path, text, said):
    """In one line that names the constraint and the file."""
    (tmp_path / "domain.toml").write_text(FILE)
    if text is not None:
        (tmp_path / "towns.csv").write_text(text)
    with pytest.raises(DomainError, match=said):
        Domain.load(tmp_path / "domain.toml")


@pytest.mark.parametrize(("plain", "said"), [
    ({"columns": ["a", "b"]}, "needs one of impossible, possible, map, order; it has none of them"),
    ({"columns": ["a", "b"], "order": "<", "map": {}}, "it has map and order"),
    ({"columns": ["a", "b"], "order": ">"}, 'order must be "<=" or "<"'),
    ({"columns": ["a", "a"], "order": "<"}, "names the column 'a' twice"),
    ({"columns": ["a", "b", "c"], "order": "<"}, "order is about two columns, got 3"),
    ({"columns": "ab", "order": "<"}, "needs columns"),
    ({"columns": ["a", "b"], "impossible": [["x"]]}, "for each of 2 columns, got"),
    ({"columns": ["a", "b"], "impossible": []}, "must be a list of combinations"),
    ({"columns": ["a", "b"], "impossible": [["x", True]]}, "labels are texts in quotes, or codes, got True"),
    ({"columns": ["a", "b"], "map": {}}, "the map is empty"),
    ({"columns": ["a", "b"], "map": 3}, "map must be a table"),
    ({"columns": ["a", "b"], "imposible": []}, "no setting 'imposible'.*'impossible'"),
    ("x", "must be a table"),
])  # fmt: skip
def test_a_table_that_states_nothing_is_refused(plain, said):
    with pytest.raises(DomainError, match=rf"constraint 'rule'.*{said}"):
        read_constraint("rule", plain)

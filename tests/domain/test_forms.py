"""Constraints by labels, over attributes as they are declared and as they are found."""

import numpy as np
import pytest

from dpgm_core.domain import Listed, Mapped
from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.bins import PrivateLabels
from dpgm_core.errors import DomainError

SEX = Attribute.of_labels("sex", ["F", "M"], unknown="missing")
BIRTHS = Attribute.of_labels("births", ["0", "1", "2"], unknown="missing")
TOWN = Attribute.of_labels("town", ["Ulm", "Bonn", "Kiel"], unknown="other")
LAND = Attribute.of_labels("land", ["BW", "NRW", "SH"], unknown="missing")
WHERE = (("Ulm", "BW"), ("Bonn", "NRW"), ("Kiel", "SH"))


def test_listed_combinations_are_impossible_and_a_star_is_any_label():
    """Exactly the cells that a combination fits, missing values among them only where it says so."""
    rule = Listed(name="x", columns=("sex", "births"), combinations=(("M", "1"), ("missing", "*")))
    assert rule.impossible((SEX, BIRTHS)).astype(int).tolist() == [[0, 0, 0, 0], [0, 1, 0, 0], [1, 1, 1, 1]]


def test_possible_combinations_are_all_there_are():
    """Every cell that no combination fits is ruled out."""
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
    """With the one that may have been meant."""
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


def test_a_table_that_no_memory_holds_is_refused():
    """By its number of combinations, before it is made."""
    wide = tuple(Attribute.of_size(name, 1000) for name in "abc")
    with pytest.raises(DomainError, match=r"constraint 'x' is about 1,000,000,000 combinations"):
        Listed(name="x", columns=("a", "b", "c"), combinations=(("0", "0", "0"),)).impossible(wide)

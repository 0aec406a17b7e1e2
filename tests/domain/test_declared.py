"""What is to be found privately."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.bins import PrivateBins, PrivateLabels, exact_share
from dpgm_core.errors import DomainError

AGE = {"type": "integer", "min": 0, "max": 94, "bins": {"private": 16, "share": 0.05}}


def test_shares_are_exact():
    """As they are written, not as floats hold them."""
    assert exact_share(0.1) == Fraction(1, 10) and exact_share("1/3") == Fraction(1, 3)


@pytest.mark.parametrize(
    "wrong", [0, 1, -0.1, 1.5, True, None, "x", "1/0", float("nan"), float("inf"), "1e-9999999999", []]
)
def test_what_is_no_share_is_refused(wrong):
    """Above 0, below 1, and nothing that takes for ever to compute."""
    with pytest.raises(DomainError, match="share must be above 0 and below 1"):
        exact_share(wrong)


@pytest.mark.parametrize("wrong", [0, -1, True, 2.0, "3", None])
def test_counts_are_whole_numbers(wrong):
    """Of bins and of labels."""
    with pytest.raises(DomainError, match="whole number of at least 1"):
        PrivateBins(count=wrong, low=0.0, high=9.0, cells=10)
    with pytest.raises(DomainError, match="whole number of at least 1"):
        PrivateLabels(keep=wrong)


def test_more_bins_than_cells_are_refused():
    """A cell is not cut; a count is rounded down to a power of two."""
    with pytest.raises(DomainError, match="11 private bins are more than the 10 cells"):
        PrivateBins(count=11, low=0.0, high=9.0, cells=10)
    assert PrivateBins(count=10, low=0.0, high=9.0, cells=10).count == 8
    with pytest.raises(DomainError, match="above the largest possible"):
        PrivateLabels(keep=10**6)


def test_private_bins_are_placeholders_until_they_are_found():
    """As many bins as there will be at most, a grid of single years, and then bins that are named as public ones."""
    age = Attribute.from_dict("age", AGE)
    assert isinstance(age.private, PrivateBins) and (age.private.cells, age.private.share) == (95, Fraction(1, 20))
    assert age.size == 17 and age.labels[-1] == "missing"
    grid = age.grid()
    assert grid.labels == (*map(str, range(95)), "missing") and grid.private is None
    assert [grid.code(text) for text in ("0", "94", "95", "", "x")] == [0, 94, 95, 95, 95]
    found = age.binned([0, 1, 40, grid.edges[-1]])
    assert found.labels == ("0", "1-39", "40-94", "missing") and found.private is None
    public = Attribute.from_dict("age", {"type": "integer", "bins": [0, 1, 40, 94.5]})
    assert found == public == Attribute.from_dict("age", found.to_dict())
    for attribute in (found, Attribute.of_size("a", 2)):
        with pytest.raises(DomainError, match="no bins that are found privately"):
            attribute.grid()
        with pytest.raises(DomainError, match="no bins that are found privately"):
            attribute.binned([0, 1])


def test_null_and_unknown_keep_their_labels_when_bins_are_found():
    """Two labels of their own stand after the cells and after the bins, whatever their number."""
    age = Attribute.from_dict("age", AGE | {"unknown": "?", "missing": "not asked", "cap": True})
    for one in (age, age.grid(), age.binned([0, 50, 94])):
        assert one.labels[-2:] == ("?", "not asked")
        assert [one.labels[one.code(text)] for text in ("x", None)] == ["?", "not asked"]
    assert age.binned([0, 50, 94]).code("120") == 1


@pytest.mark.parametrize(
    "own", [{"missing": "0"}, {"missing": "0-5"}, {"unknown": "40-94"}, {"unknown": "?", "missing": "94"}]
)
def test_missing_values_that_could_fall_on_a_found_bin_are_refused_when_the_domain_is_read(own):
    """A cell's name, a placeholder's, or one that a found bin might have: no session has to open to say so."""
    with pytest.raises(DomainError, match="attribute 'age': its bins are found from known values, so unknown and"):
        Attribute.from_dict("age", AGE | own)


def test_private_labels_are_placeholders_until_they_are_found():
    """Those found, then other, then missing; what cannot be told from these, or from one another, is left out."""
    job = Attribute.from_dict(
        "job", {"labels": {"private": True, "keep": 3}, "case": False, "null_values": ["", "n/a"]}
    )
    assert job.labels == ("label 1", "label 2", "label 3", "other", "missing") and job.private == PrivateLabels(keep=3)
    found = job.with_labels(["Cook", "cook", "Other", "pilot", "N/A", "missing"])
    assert found.labels == ("Cook", "pilot", "other", "missing") and found.private is None
    assert [found.labels[found.code(text)] for text in ("COOK", "diver", None, "N/A")] == [
        "Cook",
        "other",
        "missing",
        "missing",
    ]
    assert Attribute.from_dict("job", found.to_dict()) == found
    assert job.with_labels([]).labels == ("other", "missing")
    with pytest.raises(DomainError, match="no labels that are found privately"):
        found.with_labels([])

"""What is given of records."""

from datetime import date

import pytest

from dpgm_core import Domain, DomainError, StructureError
from dpgm_core.models.queries import read_evidence

DOMAIN = Domain.from_dict(
    {
        "age": {"type": "integer", "min": 0, "max": 94, "bins": 5},
        "seen": {"type": "date", "min": "2020-01-01", "max": "2020-12-31", "bins": "month"},
        "sex": ["F", "M"],
    }
)


def test_values_keep_their_place_and_find_their_bin():
    """A text that is no label, a float, a date; labels and codes are no values."""
    found = read_evidence(DOMAIN, {"age": "37", "seen": date(2020, 2, 29), "sex": "M"})
    assert found.places == {"age": 37.0, "seen": 18321.0}
    assert found.codes["sex"] == 1 and found.codes["seen"] == 1
    low, high = DOMAIN["age"].edges[found.codes["age"]], DOMAIN["age"].edges[found.codes["age"] + 1]
    assert low <= 37 < high
    assert found.bins(DOMAIN)["seen"] == "2020-02"
    assert read_evidence(DOMAIN, {"age": 1}).codes == {"age": 1} and read_evidence(DOMAIN, {"age": 1}).places == {}
    assert read_evidence(DOMAIN, {"seen": "2020-02"}).places == {}
    assert read_evidence(DOMAIN, None).stamp(DOMAIN) == {}
    assert read_evidence(DOMAIN, {"sex": "F"}).stamp(DOMAIN) == {"given": {"sex": "F"}}


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
        read_evidence(DOMAIN, given)


def test_unknown_attributes_are_refused():
    """As in every question."""
    with pytest.raises(StructureError, match="lacks"):
        read_evidence(DOMAIN, {"agee": 1})


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

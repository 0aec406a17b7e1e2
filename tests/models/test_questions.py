"""Questions: names and labels are checked, and what is wrong is said in words."""

import pytest

from dpgm_core import Domain
from dpgm_core.errors import DomainError, StructureError
from dpgm_core.models.queries import check_queries, encode_evidence, read_names

DOMAIN = Domain.from_dict(
    {"sex": {"labels": ["F", "M"], "unknown": "F"}, "town": {"labels": ["A", "B"], "unknown": "A"}}
)


def test_questions_are_read():
    """One name or several; labels or codes."""
    assert read_names(DOMAIN, "sex", {}) == ("sex",)
    assert read_names(DOMAIN, ["town", "sex"], {}) == ("town", "sex")
    assert encode_evidence(DOMAIN, {"sex": "M", "town": 0}) == {"sex": 1, "town": 0}
    assert check_queries(["sex"]) == ["sex"]


@pytest.mark.parametrize(
    ("asked", "given", "words"),
    [
        (5, {}, "names of attributes, got int"),
        ([], {}, "at least one"),
        ("sexe", {}, "no attribute 'sexe'; did you mean 'sex'"),
        (["sex", "sex"], {}, "names an attribute twice"),
        ("sex", {"sex": "F"}, "both asked for and given"),
    ],
)
def test_wrong_names_are_refused(asked, given, words):
    """Each says what was asked and what is wrong."""
    with pytest.raises(StructureError, match=words):
        read_names(DOMAIN, asked, given)


def test_wrong_labels_and_lists_are_refused():
    """An attribute or a label that is not there; one name where a list is expected."""
    with pytest.raises(StructureError, match="'x', which the model lacks"):
        encode_evidence(DOMAIN, {"x": 0})
    with pytest.raises(DomainError, match="no label 'X'"):
        encode_evidence(DOMAIN, {"sex": "X"})
    for wrong in ("sex", 5, None):
        with pytest.raises(StructureError, match="takes a list of cliques"):
            check_queries(wrong)


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

"""Constraints in domain files: forms, files, and what is refused by name."""

import pytest

from dpgm_core.domain import Listed, Mapped
from dpgm_core.domain.constraints import read_constraint
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DomainError

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
    """By name, in one line."""
    with pytest.raises(DomainError, match=rf"constraint 'rule'.*{said}"):
        read_constraint("rule", plain)

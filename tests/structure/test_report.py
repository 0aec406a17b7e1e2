"""What a structure says of itself."""

import pytest

from dpgm_core.domain.domain import Domain
from dpgm_core.structure.structure import Structure

NAMES = ("a", "b", "c", "d")
DOMAIN = Domain.from_sizes({"a": 2, "b": 2, "c": 3, "d": 2})


def test_duplicates_merge_and_nested_cliques_stay():
    """Cliques equal up to order are one table, the first one's; contained ones are kept and reported."""
    structure = Structure(DOMAIN, [("a", "b"), ("b", "a"), ("a",), ("c", "d")])
    assert structure.cliques == (("a", "b"), ("a",), ("c", "d"))
    report = structure.describe()
    assert (report.duplicates, report.nested, report.components) == ((("b", "a"),), (("a",),), 2)
    assert "merged duplicates: (b, a)" in str(report)


@pytest.mark.landing
def test_a_hopeless_structure_is_priced_not_attempted():
    """400 attributes, all pairs: exact integer sizes, at once."""
    domain = Domain.from_sizes({f"x{i}": 10 for i in range(400)})
    report = Structure.complete(domain).describe()
    assert report.treewidth == 399
    assert report.peak_cells == 10**400

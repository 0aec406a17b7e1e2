"""Structures over constrained domains are what their names say."""

from dpgm_testing.cases import constrained_structures


def test_each_lies_to_the_constraints_as_its_name_says():
    """All inside of cliques; some across; none held; a column that is only told; beside a tied group."""
    found = constrained_structures()
    assert found["inside"].constrained is found["inside"] and not found["inside"].derived
    assert len(found["across"].constrained.cliques) == len(found["across"].cliques) + 3
    assert [one.column for one in found["beside"].derived] == ["b"]
    assert found["derived"].impossible is None and max(found["tied"].multiplicities) == 2

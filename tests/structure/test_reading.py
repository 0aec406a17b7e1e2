"""Tables of a [structure]: what they name, and what is refused."""

import pytest

from dpgm_core.domain.domain import Domain
from dpgm_core.errors import StructureError
from dpgm_core.structure.structure import Structure

NAMES = ("a", "b", "c", "d")
DOMAIN = Domain.from_sizes({"a": 2, "b": 2, "c": 3, "d": 2})


@pytest.mark.parametrize(
    ("plain", "words"),
    [
        ({"clique": [["a"]]}, "did you mean 'cliques'"),
        ({"graph": "chian"}, "did you mean 'chain'"),
        ({"graph": "chain", "ordr": 2}, "did you mean 'order'"),
        ({"graph": "grid", "rows": 2}, "needs columns"),
        ({"graph": "grid", "rows": 3, "columns": 2}, "needs 6 attributes, got 4"),
        ({"graph": "erdos-renyi", "p": 0.5}, "needs seed"),
        ({"graph": "complete", "order": 5}, "got 4"),
        ({"cliques": "ab"}, "list of lists"),
        ({"cliques": [["a", 1]]}, "list of attribute names"),
        ({"parent": {"b": ["a"]}}, "did you mean 'parents'"),
        ({"parents": {"b": ["a"], "order": 2}}, "parents are given to 'order', which is no attribute; known: a, b"),
        ({"parents": {"b": ["a"]}, "order": 2}, "no setting 'order'"),
        ({"parents": {"a": ["c"], "c": ["b"], "b": ["a"]}}, "their own ancestors: a -> b -> c -> a;"),
        ({"parents": [["b", "a"]]}, "parents must be a table"),
    ],
)
def test_wrong_tables_are_refused(plain, words):
    """Wrong keys of a spec's [structure], with what would do."""
    with pytest.raises(StructureError, match=words):
        Structure.from_dict(DOMAIN, plain)


def test_parents_add_the_families_of_all_attributes():
    """Child first, roots too, in the domain's order; then what else is said, equal cliques merged."""
    plain = {"parents": {"c": ["b", "a"], "d": []}}
    assert Structure.from_dict(DOMAIN, plain).cliques == (("a",), ("b",), ("c", "b", "a"), ("d",))
    more = Structure.from_dict(DOMAIN, {**plain, "cliques": [["a", "d"], ["b"]]})
    assert more.cliques == (("a",), ("b",), ("c", "b", "a"), ("d",), ("a", "d"))
    both = Structure.from_dict(DOMAIN, {"graph": "chain", **plain})
    assert both.cliques == (("a",), ("b",), ("c", "b", "a"), ("d",), ("a", "b"), ("b", "c"), ("c", "d"))
    assert Structure.from_dict(DOMAIN, {"parents": {}}).cliques == tuple((name,) for name in NAMES)


def test_singletons_alone_are_the_model_of_independent_attributes():
    """The only key of a structure."""
    domain = Domain.from_sizes({"a": 2, "b": 3})
    assert Structure.from_dict(domain, {"singletons": True}).cliques == (("a",), ("b",))
    with pytest.raises(StructureError, match="at least one clique"):
        Structure.from_dict(domain, {"singletons": False})
    for wrong in (1, "true", None):
        with pytest.raises(StructureError, match="singletons must be true or false"):
            Structure.from_dict(domain, {"cliques": [["a"]], "singletons": wrong})

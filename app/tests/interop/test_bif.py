"""The BIF reader, on files written here and on the published networks where they are at hand."""

import numpy as np
import pytest

from app.tests.interop.small import shared_file
from dpgm.interop.bif import parse_bif, read_bif, read_network
from dpgm_core.errors import DataError

NETWORKS = {
    "alarm": 752, "asia": 36, "cancer": 20, "child": 344, "earthquake": 20, "hailfinder": 3741, "insurance": 1419,
    "sachs": 267, "survey": 37,
}  # fmt: skip

TWO = """
network unknown { property "by hand" ; }
// a comment with { brackets
variable Age { type discrete [ 3 ] { <5, 5-12, 12+ }; property "x = 1" ; }
variable "X ray" { type discrete [ 2 ] { Asy/Patch, 'no' }; }
/* tables */
probability ( Age ) { table 0.2, 3e-1, 0.5; }
probability ( "X ray" | Age ) {
  (5-12) 0.25, 0.75;
  (<5) 1, 0;
  default 0.5 0.5;
}
"""


def test_tables_land_on_their_cells():
    """Rows are keyed by the parents' labels in any order; odd labels, comments, quotes and defaults are read."""
    structure, potentials = parse_bif(TWO)
    assert structure.domain["Age"].labels == ("<5", "5-12", "12+")
    assert structure.domain["X ray"].labels == ("Asy/Patch", "'no'")
    assert structure.cliques == (("Age",), ("X ray", "Age"))
    np.testing.assert_allclose(np.exp(potentials["Age"]), [0.2, 0.3, 0.5])
    np.testing.assert_allclose(np.exp(potentials["X ray", "Age"]), [[1, 0.25, 0.5], [0, 0.75, 0.5]])
    assert np.isneginf(potentials["X ray", "Age"][1, 0])


def test_two_parents_keep_their_order():
    """The i-th label of a row belongs to the i-th parent named after the bar."""
    text = """
    variable a { type discrete [2] {u, v}; } variable b { type discrete [2] {u, v}; }
    variable c { type discrete [2] {u, v}; }
    probability (a) { table .5, .5; } probability (b) { table .5, .5; }
    probability (c | b, a) { (u, v) .1, .9; (v, u) .2, .8; (u, u) .3, .7; (v, v) .4, .6; }
    """
    _, potentials = parse_bif(text)
    np.testing.assert_allclose(np.exp(potentials["c", "b", "a"][0]), [[0.3, 0.1], [0.2, 0.4]])


def test_the_numbers_are_the_files_own(tmp_path):
    """`read_network`: axes child, then parents in the file's order, nothing renormalised, variables in their order."""
    path = tmp_path / "two.bif"
    path.write_text(TWO.replace("0.25, 0.75", "0.25, 0.7512345678901234"))
    dag, cpds = read_network(path)
    assert dag.parents == {"Age": (), "X ray": ("Age",)} and list(cpds) == ["Age", "X ray"]
    assert cpds["X ray"].tolist() == [[1.0, 0.25, 0.5], [0.0, 0.7512345678901234, 0.5]]
    assert dag.structure() == read_bif(path)[0]
    path.write_text(TWO.replace("0.25, 0.75", "0.25"))
    with pytest.raises(DataError, match=r"two\.bif: a row of 'X ray' needs 2"):
        read_network(path)
    with pytest.raises(DataError, match=r"none\.bif"):
        read_bif(tmp_path / "none.bif")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("network", "netwerk", "netwerk"),
        ("0.25, 0.75;", "0.25, 0.65;", "sums to 0.9"),
        ("0.25, 0.75;", "0.25;", "needs 2 probabilities, got 1"),
        ("0.25, 0.75;", "1.25, -0.25;", "a probability is expected, got '-0.25'"),
        ("0.25, 0.75;", "0.25, nan;", "a probability is expected"),
        ("(<5) 1", "(5-12) 1", "two rows"),
        ("(<5) 1", "(<6) 1", "has no label '<6'"),
        ("(<5) 1", "(<5, <5) 1", "names 2 parent states"),
        ("default 0.5 0.5;", "", "lacks 1 rows"),
        ("[ 3 ]", "[ 4 ]", "has 3 labels"),
        ("| Age )", "| Sex )", "'Sex', which is not a variable"),
        ('( "X ray" | Age )', "( Age )", "'X ray' has no table|two tables|names 1 parent"),
        ("probability ( Age ) { table 0.2, 3e-1, 0.5; }", "", "'Age' has no table"),
        ("  default 0.5 0.5;\n}", "", "ends where"),
    ],
)
def test_malformed_networks_are_refused_by_name(old, new, message, tmp_path):
    """Each defect is a DataError that names the file and what is wrong."""
    assert old in TWO
    path = tmp_path / "broken.bif"
    path.write_text(TWO.replace(old, new))
    with pytest.raises(DataError, match=f"broken.bif.*({message})"):
        read_bif(path)


def network(parents):
    """Binary variables in the order given, each uniform whatever its parents (child -> parents) are."""
    text = "".join(f"variable {name} {{ type discrete [2] {{u, v}}; }}\n" for name in parents)
    for child, above in parents.items():
        head = f"{child} | {', '.join(above)}" if above else child
        text += f"probability ( {head} ) {{ {'default' if above else 'table'} .5, .5; }}\n"
    return text


@pytest.mark.parametrize(
    ("parents", "cycle"),
    [
        ({"a": ["a"]}, "a -> a"),
        ({"a": ["b"], "b": ["a"]}, "a -> b -> a"),
        ({"a": ["c"], "b": ["a"], "c": ["b"]}, "a -> b -> c -> a"),
        # a two-cycle with more parents has no two tables over the same attributes
        ({"r": [], "a": ["b", "r"], "b": ["a"]}, "a -> b -> a"),
        # neither what leads to the cycle (r) nor what hangs from it (s, t) is part of it
        ({"t": ["s"], "s": ["d", "r"], "r": [], "a": ["d"], "b": ["r", "a"], "c": ["b"], "d": ["c"]},
         "a -> b -> c -> d -> a"),
        # a chord makes two cycles; the shorter way round is as good as the longer, and the diamond e is none
        ({"a": ["d"], "e": ["a"], "b": ["a"], "d": ["e", "b"]}, "a -> (e|b) -> d -> a"),
    ],
)  # fmt: skip
def test_a_cycle_of_parents_is_refused_and_spelled_out(parents, cycle, tmp_path):
    """A directed cycle is no Bayesian network; the error names the file and the variables from parent to child."""
    path = tmp_path / "round.bif"
    path.write_text(network(parents))
    with pytest.raises(DataError, match=rf"^\S*round\.bif: .*: {cycle}; "):
        read_bif(path)


def test_a_diamond_is_no_cycle():
    """Two ways from one variable to another are fine, in whatever order the tables stand."""
    parents = {"d": ["b", "c"], "c": ["a"], "b": ["a"], "a": []}
    structure, _ = parse_bif(network(parents))
    assert structure.cliques == (("d", "b", "c"), ("c", "a"), ("b", "a"), ("a",))


@pytest.mark.landing
def test_a_long_cycle_is_found_without_recursion():
    """20,000 variables in a circle are refused on one short line; the same in a chain are read."""
    names = [f"v{number}" for number in range(20_000)]
    chain = {name: [before] if before else [] for before, name in zip([None, *names], names, strict=False)}
    assert len(parse_bif(network(chain))[0].cliques) == len(names)
    with pytest.raises(DataError, match=r"v0 -> v1 -> .* -> v19999 -> v0; ") as refusal:
        parse_bif(network(chain | {"v0": [names[-1]]}))
    assert len(str(refusal.value)) < 400


def test_a_hostile_file_allocates_nothing():
    """2^41 cells of forty binary parents, and gigabytes of tables each of which is below the limit."""
    names = [f"v{i}" for i in range(41)]
    text = "".join(f"variable {name} {{ type discrete [2] {{a, b}}; }}\n" for name in names)
    with pytest.raises(DataError, match="2,199,023,255,552 cells"):
        parse_bif(text + f"probability ( v0 | {', '.join(names[1:])} ) {{ default 0.5, 0.5; }}")
    names = [f"x{i}" for i in range(20)]
    text = "".join(f"variable {name} {{ type discrete [2] {{a, b}}; }}\n" for name in names)
    parents = ", ".join(names[:17])
    for child in names[17:]:
        text += f"probability ( {child} | {parents} ) {{ default 0.5, 0.5; }}\n"
    text += "".join(f"probability ( {name} ) {{ table 0.5, 0.5; }}\n" for name in names[:17])
    structure, _ = parse_bif(text)
    assert structure.cells == 3 * 2**18 + 34
    third = text.replace("variable x0 ", "variable y { type discrete [2] {a, b}; }\nvariable x0 ", 1)
    third += f"probability ( y | {parents} ) {{ default 0.5, 0.5; }}\n"
    with pytest.raises(DataError, match="has 262,144 cells; a file of this size may have"):
        parse_bif(third)


@pytest.mark.parametrize("name", NETWORKS)
def test_published_networks_are_distributions(name):
    """Every network is read whole, and every row of every table sums to 1 up to its printed digits."""
    path = shared_file(f"{name}.bif")
    structure, potentials = read_bif(path)
    assert structure.cells == NETWORKS[name] and len(structure.cliques) == len(structure.domain)
    for table in potentials.arrays():
        np.testing.assert_allclose(np.exp(table).sum(axis=0), 1.0, atol=2e-2)

"""Networks written as BIF: what is read back is what was written, to the bit, and what cannot be is refused by name."""

import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.tests.interop.small import shared_file
from app.tests.made import domain_of
from dpgm.interop import bif as bif_out
from dpgm.interop.bif import read_bif, read_network, write_bif
from dpgm_core._util.files import check_writable
from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DataError, ModelFileError, StructureError
from dpgm_core.structure.dag import Dag

NETWORKS = ["alarm", "asia", "cancer", "child", "earthquake", "hailfinder", "insurance", "sachs", "survey"]

#: Legal words that a careless reader or writer would take for something else.
AWKWARD = [
    "Asy/Patch", "<5", "table", "default", "property", "type", "discrete", "probability", "variable", "network", "12+",
    "'no'", "0.5", "1e-3", "nan", "/", "*", "*/", "-", "=", "$", "\\", "é", "\ufeff", "\x00", "\x1b", "x.y", "a:b",
]  # fmt: skip
words = st.sampled_from(AWKWARD) | st.text(st.characters(codec="utf-8"), min_size=1, max_size=4).filter(
    lambda word: re.fullmatch(r'[^\s{}()\[\],;|"]+', word) and "//" not in word and "/*" not in word
)
#: Weights of rows: from nothing to everything.
weights = st.sampled_from([0.0, 5e-324, 1e-310, 1e-300, 1e-17, 0.1, 1 / 3, 1.0]) | st.floats(0, 1)


@st.composite
def networks(draw):
    """A graph of up to 6 variables of 1 to 4 labels, and tables with zeros, denormals and rows of any rounding."""
    names = draw(st.lists(words, min_size=1, max_size=6, unique=True))
    labels = [draw(st.lists(words, min_size=1, max_size=4, unique=True)) for _ in names]
    domain = Domain(Attribute.of_labels(a, b, unknown=b[0]) for a, b in zip(names, labels, strict=True))
    order = draw(st.permutations(names))
    parents = {
        name: draw(st.lists(st.sampled_from(order[:at]), max_size=3, unique=True)) if at else []
        for at, name in enumerate(order)
    }
    dag = Dag(domain, parents)
    cpds = {}
    for family in dag.families:
        shape = domain.shape(family)
        rows = []
        for _ in range(int(np.prod(shape[1:]))):
            row = np.array(draw(st.lists(weights, min_size=shape[0], max_size=shape[0])))
            row[draw(st.integers(0, shape[0] - 1))] += 1 - min(row.sum(), 1)
            rows.append(row / max(row.sum(), 1))
        cpds[family[0]] = np.moveaxis(np.array(rows).reshape(*shape[1:], shape[0]), -1, 0)
    return dag, cpds


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(networks(), words)
def test_what_is_read_is_what_was_written(tmp_path, network, name):
    """Graph, labels, parents' order and every bit of the numbers; the potentials are their logarithms, to the bit."""
    dag, cpds = network
    write_bif(tmp_path / "x.bif", dag, cpds, name=name, properties={"told": 'any; {text} // at "all" /* '})
    found, tables = read_network(tmp_path / "x.bif")
    assert found == dag and list(tables) == list(dag.domain.names)
    structure, potentials = read_bif(tmp_path / "x.bif")
    assert structure == dag.structure()
    for family in dag.families:
        table = np.ascontiguousarray(cpds[family[0]])
        assert tables[family[0]].tobytes() == table.tobytes()
        with np.errstate(divide="ignore"):
            assert potentials[family].tobytes() == np.log(table).tobytes()


@pytest.mark.landing
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=80)
@given(st.lists(st.text('{}()[],;|"/*ab \t\n\x85\u2003', max_size=4), min_size=3, max_size=3, unique=True))
def test_any_words_are_refused_or_come_back(tmp_path, texts):
    """As names and labels, next to each other, and in a property: nothing of them is taken for the file's own signs."""
    name, first, second = texts
    if not name:
        return
    size = Attribute.of_size("z", 1)
    dag = Dag(Domain([Attribute.of_labels(name, [first, second], unknown=first), size]), {"z": [name]})
    cpds = {name: np.array([0.25, 0.75]), "z": np.ones((1, 2))}
    try:
        write_bif(tmp_path / "x.bif", dag, cpds, properties={"said": "".join(texts)})
    except DataError as error:
        assert "\n" not in str(error)
        name = "fine"
        dag, cpds = Dag(Domain([Attribute.of_size(name, 2), size]), {"z": [name]}), cpds | {name: cpds[texts[0]]}
        del cpds[texts[0]]
        write_bif(tmp_path / "x.bif", dag, cpds, properties={"said": "".join(texts)})
    found, tables = read_network(tmp_path / "x.bif")
    assert found == dag and tables[name].tolist() == [0.25, 0.75]


@pytest.mark.parametrize("name", NETWORKS)
def test_published_networks_survive(name, tmp_path):
    """Read, written and read again: the same network to the bit; written again: the same file."""
    path = shared_file(f"{name}.bif")
    dag, cpds = read_network(path)
    write_bif(tmp_path / "one.bif", dag, cpds)
    again, tables = read_network(tmp_path / "one.bif")
    assert again == dag
    assert all(tables[name].tobytes() == cpds[name].tobytes() for name in cpds) and set(tables) == set(cpds)
    write_bif(tmp_path / "two.bif", again, tables)
    assert (tmp_path / "two.bif").read_bytes() == (tmp_path / "one.bif").read_bytes()


DAG = Dag(domain_of(a="n y", b="n y", c="u v w"), {"c": ["b", "a"]})
OF_C = np.arange(12.0).reshape(3, 2, 2)
CPDS = {"a": np.array([0.1, 0.9]), "b": np.array([1.0, 0.0]), "c": OF_C / OF_C.sum(axis=0)}


def test_the_file_is_what_others_read(tmp_path):
    """The format to the letter: blocks, rows keyed by the parents' labels in their order, the shortest digits."""
    cpds = CPDS | {"c": np.stack([np.full((2, 2), 0.25), np.full((2, 2), 1e-300), np.full((2, 2), 0.75)])}
    write_bif(tmp_path / "x.bif", DAG, cpds, name="trial", properties={"guarantee": 'epsilon = 1;\n"so"'})
    written = """network trial {
  property guarantee "epsilon = 1, 'so'";
}
variable a {
  type discrete [ 2 ] { n, y };
}
variable b {
  type discrete [ 2 ] { n, y };
}
variable c {
  type discrete [ 3 ] { u, v, w };
}
probability ( a ) {
  table 0.1, 0.9;
}
probability ( b ) {
  table 1.0, 0.0;
}
probability ( c | b, a ) {
  (n, n) 0.25, 1e-300, 0.75;
  (n, y) 0.25, 1e-300, 0.75;
  (y, n) 0.25, 1e-300, 0.75;
  (y, y) 0.25, 1e-300, 0.75;
}
"""
    assert (tmp_path / "x.bif").read_text() == written


@pytest.mark.parametrize(
    "word",
    ["", " ", "a b", "a\tb", "a\u00a0b", "a\x1cb", '"a"', "a'\"", "{", "a}", "(", "a)", "[", "a]", "a,b", "a;", "a|b",
     "//", "http://x", "/*", "a/*b"],
)  # fmt: skip
def test_words_that_cannot_be_read_back_are_refused_by_name(word, tmp_path):
    """A label, a variable's name, the network's or a property's key: one line that quotes it, and no file."""
    path = tmp_path / "x.bif"
    told = re.escape(repr(word)) + " cannot stand in a BIF file"
    one = np.array([1.0, 0.0])
    label = Dag(Domain([Attribute.of_labels("a", [word, "fine"], unknown="fine")]), {})
    with pytest.raises(DataError, match=rf"x\.bif: the label of 'a', {told}"):
        write_bif(path, label, {"a": one})
    if word:
        named = Dag(Domain([Attribute.of_labels(word, ["n", "y"], unknown="n")]), {})
        with pytest.raises(DataError, match=rf"the variable {told}"):
            write_bif(path, named, {word: one})
    with pytest.raises(DataError, match=rf"the network's name {told}"):
        write_bif(path, DAG, CPDS, name=word)
    with pytest.raises(DataError, match=rf"a property's key {told}"):
        write_bif(path, DAG, CPDS, properties={word: "x"})
    assert not path.exists()


def test_no_text_of_a_property_is_taken_for_syntax(tmp_path):
    """Signs of the format are replaced, lines joined, and surrogates spelled out, or refused in a name."""
    with pytest.raises(DataError, match="network's name"):
        write_bif(tmp_path / "x.bif", DAG, CPDS, name="a\ud800")
    write_bif(tmp_path / "x.bif", DAG, CPDS, properties={"k": "a\ud800\x1b"})
    assert r'property k "a\ud800\x1b";' in (tmp_path / "x.bif").read_text()
    text = 'see "http://x/*y*/" ///\n{a; b}\t[c|d]'
    write_bif(tmp_path / "x.bif", DAG, CPDS, properties={"k": text, "empty": ""})
    lines = (tmp_path / "x.bif").read_text().splitlines()
    assert lines[1:3] == ["""  property k "see 'http:/ /x/ *y*/' / / / (a, b) [c|d]";""", '  property empty "";']


@pytest.mark.parametrize(
    ("cpds", "message"),
    [
        ({"a": CPDS["a"], "b": CPDS["b"]}, "'c' must hold numbers of shape .3, 2, 2., axes c x b x a; got nothing"),
        (CPDS | {"d": CPDS["a"]}, "'d', which is not a variable"),
        (CPDS | {"a": np.array([0.5, 0.25, 0.25])}, r"shape \(2,\).*got float64 of shape \(3,\)"),
        (CPDS | {"a": np.array(["0", "1"])}, "must hold numbers"),
        (CPDS | {"a": np.array([np.nan, 1.0])}, "negative, NaN or infinite"),
        (CPDS | {"a": np.array([-0.5, 1.5])}, "negative, NaN or infinite"),
        (CPDS | {"a": np.array([0.5, 0.4])}, "'a' sums to 0.9, not to 1"),
        (CPDS | {"c": np.moveaxis(CPDS["c"], 0, -1)}, "shape"),
    ],
)
def test_tables_of_no_network_are_refused(cpds, message, tmp_path):
    with pytest.raises(StructureError, match=rf"x\.bif: .*{message}"):
        write_bif(tmp_path / "x.bif", DAG, cpds)
    assert not (tmp_path / "x.bif").exists()


def test_whole_numbers_and_small_floats_are_written_as_doubles(tmp_path):
    """A table of ones and zeros, or of float32, is read back as the doubles that equal it."""
    dag = Dag(Domain.from_sizes({"a": 2, "b": 2}), {})
    tables = {"a": np.array([1, 0]), "b": np.array([0.1, 0.9], np.float32)}
    write_bif(tmp_path / "x.bif", dag, tables)
    found = read_network(tmp_path / "x.bif")[1]
    assert found["a"].tolist() == [1, 0] and found["b"].tolist() == tables["b"].astype(float).tolist()


def test_only_a_network_is_replaced(tmp_path, monkeypatch):
    """An older network is; any other file stays, and one that is too large for the reader is not written."""
    for name in ("one", "n" * 400):
        write_bif(tmp_path / "x.bif", DAG, CPDS, name=name)
    assert read_network(tmp_path / "x.bif")[0] == DAG
    for other in ("another's", "network traffic, {by hour}", "MARKOV 1"):
        (tmp_path / "y.bif").write_text(other)
        with pytest.raises(ModelFileError, match="only a BIF network is replaced there"):
            write_bif(tmp_path / "y.bif", DAG, CPDS)
        assert (tmp_path / "y.bif").read_text() == other
    with pytest.raises(ModelFileError, match="exists and is a BIF network"):
        check_writable(tmp_path / "x.bif", "a UAI model")
    monkeypatch.setattr(bif_out, "MAX_BYTES", 300)
    with pytest.raises(DataError, match=r"z\.bif: the network takes \d+ bytes; at most 300 are read back"):
        write_bif(tmp_path / "z.bif", DAG, CPDS)
    assert not (tmp_path / "z.bif").exists()

"""Models as UAI files: round trips, sidecars, networks child last, what is refused and what is replaced."""

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.tests.interop.small import SMALL, shared_file
from dpgm.interop import uai as uai_out
from dpgm.interop.bif import bif_domain, bif_structure, read_network
from dpgm.interop.uai import names_path, parse_uai, read_uai, write_uai
from dpgm.interop.uai_tasks import (
    apply_evidence,
    format_mar,
    format_mpe,
    format_pr,
    infer_uai,
    read_evidence,
    read_mar,
    read_pr,
    variable_marginals,
)
from dpgm_core._util.files import atomic_write
from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DataError, DomainError, InferenceError, ModelFileError, StructureError
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.inference.loopy.bp import LoopyBP
from dpgm_core.structure.dag import Dag
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables


def test_tables_have_the_last_variable_fastest_and_duplicates_multiply():
    """The second factor stands on the first one's variables in the other order: entry (x0=1, x1=2) becomes 6 * 2."""
    model = parse_uai(SMALL)
    assert model.kind == "MARKOV"
    assert model.structure.cliques == (("x1", "x0"), ("x0", "x2"), ())
    np.testing.assert_allclose(np.exp(model.potentials["x1", "x0"]), [[1, 2], [3, 4], [5, 12]])
    assert np.exp(model.potentials["x0", "x2"]).tolist() == [[1, 0], [0, 1]]
    assert model.potentials[()] == pytest.approx(math.log(10))


def rich_structure():
    age = Attribute.of_bins("age, in years", [0, 18, 65, math.inf], unknown="?")
    beds = (Attribute.of_size(name, 2) for name in ("ward é", "bed"))
    domain = Domain([Attribute.of_labels("sex", ["F", "M"], unknown="not stated"), age, *beds])
    tied = [[("sex", "ward é"), ("sex", "bed")], [("ward é",), ("bed",)]]
    return Structure(domain, [("age, in years", "sex"), (), ("bed",)], tied=tied)


@pytest.mark.parametrize("scale", [1e-17, 1.0, 700.0, 1e5])
def test_round_trips_are_exact(scale, tmp_path):
    """Names, labels, bins, tied groups and every bit of the potentials come back, beyond exp's range too."""
    structure = rich_structure()
    values = np.random.default_rng(0).uniform(-scale, scale, structure.cells)
    values[[2, 13]] = -np.inf
    write_uai(tmp_path / "m.uai", structure, Tables(structure, values))
    model = read_uai(tmp_path / "m.uai")
    assert model.structure == structure
    assert model.potentials.values.tobytes() == values.tobytes()


@pytest.mark.parametrize("scale", [1e-17, 1.0, 700.0, 1e5])
def test_the_file_alone_keeps_the_distribution(scale, tmp_path):
    """Without the sidecar log-potentials return up to rounding, with the same support; ties are multiplied out."""
    structure = rich_structure()
    values = np.random.default_rng(1).uniform(-scale, scale, structure.cells)
    values[2] = -np.inf
    potentials = Tables(structure, values)
    write_uai(tmp_path / "m.uai", structure, potentials)
    names_path(tmp_path / "m.uai").unlink()
    plain = read_uai(tmp_path / "m.uai").potentials
    assert np.isneginf(plain["x1", "x0"]).sum() == 1
    np.testing.assert_allclose(plain["x1", "x0"], potentials["age, in years", "sex"], rtol=1e-13, atol=2e-15)
    np.testing.assert_allclose(plain["x0", "x3"], potentials["sex", "bed"], rtol=1e-13, atol=2e-15)
    np.testing.assert_allclose(plain["x3"], potentials["bed"] + potentials.group(4), rtol=1e-13, atol=2e-14)


def test_a_sidecar_of_names_only_renames(tmp_path):
    """A hand-written sidecar with a domain gives names and labels and leaves the tables alone."""
    path = tmp_path / "m.uai"
    path.write_text(SMALL)
    domain = Domain.from_dict(
        {"a": {"labels": ["n", "y"], "unknown": "n"}, "b": {"size": 3, "unknown": 0}, "c": {"size": 2, "unknown": 0}}
    )
    names_path(path).write_text(json.dumps({"domain": domain.to_dict()}))
    model = read_uai(path)
    assert model.structure.cliques == (("b", "a"), ("a", "c"), ()) and model.structure.domain == domain
    assert read_uai(path, names=False).structure.cliques == (("x1", "x0"), ("x0", "x2"), ())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not a file of names"),
        ("[]", "not a file of names"),
        ("{}", "not a file of names"),
        ("[" * 100_000, "not a file of names"),
        ('{"domain": {"a": 2, "b": 2, "c": 2}}', "other sizes"),
        ('{"domain": {"a": 0, "b": 3, "c": 2}}', "size"),
        ('{"domain": {"a": 1, "b": 2, "c": 1}, "log_potentials": [], "sha256": "0"}', "belongs to another model"),
    ],
)
def test_bad_sidecars_are_refused(text, message, tmp_path):
    path = tmp_path / "m.uai"
    path.write_text(SMALL)
    names_path(path).write_text(text)
    with pytest.raises(DataError, match=f"m.uai.names.*{message}"):
        read_uai(path)


def test_a_model_edited_after_writing_is_not_read_with_stale_potentials(tmp_path):
    """The digest binds the exact potentials to the file they were written with."""
    structure = rich_structure()
    write_uai(tmp_path / "m.uai", structure, Tables.zeros(structure))
    (tmp_path / "m.uai").write_text((tmp_path / "m.uai").read_text().replace("1.0", "2.0", 1))
    with pytest.raises(DataError, match="digests differ"):
        read_uai(tmp_path / "m.uai")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must begin with MARKOV or BAYES"),
        ("LIMID 1 2", "must begin with MARKOV or BAYES, got 'LIMID'"),
        ("MARKOV", "ends too soon"),
        ("MARKOV 0 0", "no variables"),
        ("MARKOV 1 two", "all must be numbers, got 'two'"),
        ("MARKOV 1 2 0 1_0", "all must be numbers, got '1_0'"),
        ("MARKOV 1 2.5 0", "whole number"),
        ("MARKOV 1 0 0", "at least 1"),
        ("MARKOV -1 0 0", "at least 0"),
        ("MARKOV nan 0 0", "whole number"),
        ("MARKOV 999999999999 2 2", "only 2 numbers are left"),
        ("MARKOV 2 1000000000 1000000000 0", "2,000,000,000 states"),
        ("MARKOV 2 2 2 999999999 1 0", "only 2 numbers are left"),
        ("MARKOV 2 2 2 1 1 2 2 1 1", "names variable 2, but there are 2"),
        ("MARKOV 2 2 2 1 2 0 0 4 1 1 1 1", "twice"),
        ("MARKOV 1 2 1 1 0 3 1 1 1", "has 3 entries, not 2"),
        ("MARKOV 1 2 1 1 0 2 1", "only 1 numbers are left"),
        ("MARKOV 1 2 1 1 0 2 1 -1", "negative or not finite"),
        ("MARKOV 1 2 1 1 0 2 1 inf", "negative or not finite"),
        ("MARKOV 1 2 1 1 0 2 1 nan", "negative or not finite"),
        ("MARKOV 1 2 1 1 0 2 1 1 1", "1 numbers are left after the last table"),
        ("MARKOV 50" + " 1000" * 50 + " 1 50 " + " ".join(map(str, range(50))) + " 1 1", "has 1 entries, not 1000"),
    ],
)
def test_malformed_and_hostile_models_are_refused(text, message, tmp_path):
    """One DataError naming the file; announced sizes allocate nothing that the file does not back."""
    path = tmp_path / "bad.uai"
    path.write_text(text)
    with pytest.raises(DataError, match=f"bad.uai.*{message}"):
        read_uai(path)


def test_binary_noise_and_labels_that_no_table_backs_are_refused(tmp_path):
    """As a DataError; twenty letters once declared a domain of a million labels."""
    (tmp_path / "bad.uai").write_bytes(b"MARKOV \xff\xfe\x00 2")
    with pytest.raises(DataError, match="all must be numbers"):
        read_uai(tmp_path / "bad.uai")
    with pytest.raises(DataError, match=r"none\.uai"):
        read_uai(tmp_path / "none.uai")
    with pytest.raises(DataError, match="1,000,000 states in all; at most 100,003 fit a file of 3 numbers"):
        parse_uai("MARKOV 1 1000000 0")


ALONE = Structure(Domain.from_sizes({"a": 2}), [("a",)])


def network(seed: int, zeros: float = 0.0):
    """A graph of four attributes in no order of theirs, its tables, and its log-potentials."""
    dag = Dag(Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 1}), {"a": ["c", "b"], "d": ["a"], "b": ["c"]})
    rng = np.random.default_rng(seed)
    cpds = {}
    for family in dag.families:
        shape = dag.domain.shape(family)
        table = rng.random(shape) * (rng.random(shape) >= zeros)
        table[0] += 1e-9
        cpds[family[0]] = table / table.sum(axis=0)
    return dag, cpds, potentials_of(dag, cpds)


def potentials_of(dag, cpds):
    with np.errstate(divide="ignore"):
        return Tables(dag.structure(), np.log(np.concatenate([cpds[f[0]].reshape(-1) for f in dag.families])))


def factors_of(text):
    """A model file read word by word: kind, sizes, and each factor's scope and table."""
    words = iter(text.split())
    kind, count = next(words), int(next(words))
    sizes = [int(next(words)) for _ in range(count)]
    scopes = [[int(next(words)) for _ in range(int(next(words)))] for _ in range(int(next(words)))]
    tables = []
    for scope in scopes:
        shape = [sizes[one] for one in scope]
        tables.append(np.array([float(next(words)) for _ in range(int(next(words)))]).reshape(shape))
    return kind, sizes, list(zip(scopes, tables, strict=True))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)
@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.5]))
def test_a_network_is_written_child_last(tmp_path, seed, zeros):
    """One factor per attribute in the domain's order, whose rows sum to 1; their product is the joint distribution."""
    dag, cpds, potentials = network(seed, zeros)
    write_uai(tmp_path / "n.uai", dag.structure(), potentials, kind="BAYES")
    kind, sizes, factors = factors_of((tmp_path / "n.uai").read_text())
    assert kind == "BAYES" and sizes == [2, 3, 2, 1]
    assert [scope for scope, _ in factors] == [[2, 1, 0], [2, 1], [2], [0, 3]]
    for _, table in factors:
        np.testing.assert_allclose(table.sum(axis=-1), 1, rtol=1e-12)
    for record in itertools.product(*map(range, sizes)):
        of = dict(zip(dag.domain.names, record, strict=True))
        wanted = np.prod([cpds[family[0]][tuple(of[name] for name in family)] for family in dag.families])
        found = np.prod([table[tuple(record[one] for one in scope)] for scope, table in factors])
        assert found == pytest.approx(wanted, rel=1e-12)
    model = read_uai(tmp_path / "n.uai")
    assert (model.kind, model.structure) == ("BAYES", dag.structure())
    assert model.potentials.values.tobytes() == potentials.values.tobytes()


def test_a_network_keeps_its_own_order_of_cliques(tmp_path):
    """Families in another order than the domain's come back in it, from a file that has them in the domain's."""
    domain = Domain.from_sizes({"a": 2, "b": 2})
    structure = Structure(domain, [("b", "a"), ("a",)])
    potentials = Tables(structure, np.log([0.25, 1e-300, 0.75, 1, 0.5, 0.5]))
    write_uai(tmp_path / "n.uai", structure, potentials, kind="BAYES")
    model = read_uai(tmp_path / "n.uai")
    assert model.structure == structure and model.potentials.values.tobytes() == potentials.values.tobytes()
    assert factors_of((tmp_path / "n.uai").read_text())[2][1][1].tolist() == [[0.25, 0.75], [pytest.approx(1e-300), 1]]


@pytest.mark.parametrize(
    ("structure", "values", "message"),
    [
        (Structure.chain(Domain.from_sizes({"a": 2, "b": 2})), np.log([0.5, 0.5, 0.5, 0.5]), "'b' stands first in no"),
        (ALONE, np.log([0.5, 0.4]), "'a' is not a conditional .* differs from 1 by"),
        (ALONE, [800.0, -np.inf], "differs from 1 by inf"),
        (Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a",), ("b",), ("a", "b")]), np.zeros(8), "'a' stands first"),
    ],
)
def test_what_is_no_network_is_not_written_as_one(structure, values, message, tmp_path):
    potentials = Tables(structure, np.array(values))
    with pytest.raises(StructureError, match=rf"n\.uai: .*{message}"):
        write_uai(tmp_path / "n.uai", structure, potentials, kind="BAYES")
    assert not list(tmp_path.iterdir())
    write_uai(tmp_path / "n.uai", structure, potentials)
    assert read_uai(tmp_path / "n.uai").kind == "MARKOV"


def test_a_probability_below_any_double_is_not_written_as_zero(tmp_path):
    """exp(-800) is 0 as a double, which would rule the record out; the least denormal can be written."""
    with pytest.raises(DataError, match=r"n\.uai: a probability of 'a', exp\(-800\), is smaller than any double"):
        write_uai(tmp_path / "n.uai", ALONE, Tables(ALONE, np.array([0.0, -800.0])), kind="BAYES")
    assert not list(tmp_path.iterdir())
    write_uai(tmp_path / "n.uai", ALONE, Tables(ALONE, np.array([0.0, np.log(5e-324)])), kind="BAYES")
    assert (tmp_path / "n.uai").read_text().split()[-2:] == ["1.0", "5e-324"]


@pytest.mark.parametrize("kind", ["bayes", "", "LIMID", None])
def test_unknown_kinds_are_refused(kind, tmp_path):
    with pytest.raises(DataError, match="the kinds are MARKOV and BAYES"):
        write_uai(tmp_path / "n.uai", ALONE, Tables.zeros(ALONE), kind=kind)


@pytest.mark.landing
def test_a_published_network_is_written_back(tmp_path):
    """UAI 2014's pedigree as BAYES: the same scopes, numbers up to rounding, and published PR."""
    path = shared_file("Pedigree_12.uai")
    published = read_uai(path, names=False)
    domain = published.structure.domain
    dag = Dag(domain, {clique[-1]: clique[:-1] for clique in published.structure.cliques})
    cpds = {child: np.exp(np.moveaxis(published.potentials[*above, child], -1, 0)) for child, *above in dag.families}
    write_uai(tmp_path / "p.uai", dag.structure(), potentials_of(dag, cpds), kind="BAYES")
    found, wanted = (
        {tuple(scope): table for scope, table in factors_of(one.read_text())[2]} for one in (tmp_path / "p.uai", path)
    )
    assert set(found) == set(wanted)
    for scope, table in wanted.items():
        np.testing.assert_allclose(found[scope], table, rtol=1e-13)
    answer = infer_uai(tmp_path / "p.uai", f"{path}.evid", "PR", JunctionTree())[0].split()[1]
    assert float(answer) == pytest.approx(read_pr(f"{path}.PR"), abs=1e-3)


def test_a_stamp_travels_in_the_sidecar(tmp_path):
    """Whatever is said of the model stands there as plain values, and reading does not mind."""
    write_uai(tmp_path / "m.uai", ALONE, Tables.zeros(ALONE), stamp={"guarantee": "none", "cost": float("inf")})
    told = json.loads(names_path(tmp_path / "m.uai").read_text())
    assert told["stamp"] == {"guarantee": "none", "cost": "inf"}
    assert read_uai(tmp_path / "m.uai").structure == ALONE
    write_uai(tmp_path / "m.uai", ALONE, Tables.zeros(ALONE))
    assert "stamp" not in json.loads(names_path(tmp_path / "m.uai").read_text())


def test_probabilities_are_written_with_all_their_digits(tmp_path):
    structure = Structure(Domain.from_sizes({"a": 5}), [("a",)])
    values = np.random.default_rng(2).normal(size=5)
    write_uai(tmp_path / "m.uai", structure, Tables(structure, values))
    words = (tmp_path / "m.uai").read_text().split()
    assert [float(word) for word in words[-5:]] == np.exp(values).tolist()


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e9])
def test_what_cannot_be_written_is_refused(bad, tmp_path):
    """NaN, +inf and potentials beyond any number of factors leave no file behind."""
    with pytest.raises(DataError, match=r"m\.uai"):
        write_uai(tmp_path / "m.uai", ALONE, Tables(ALONE, np.array([0.0, bad])))
    assert not (tmp_path / "m.uai").exists()


def test_writing_replaces_older_models_only(tmp_path, monkeypatch):
    """Names are written first, so that no model is without its stamp; another file of either name stops both."""
    for _ in range(2):
        write_uai(tmp_path / "m.uai", ALONE, Tables(ALONE, np.array([0.0, np.random.default_rng().normal()])))
    (tmp_path / "x").write_text("another's")
    with pytest.raises(ModelFileError, match="only a UAI model is replaced there"):
        write_uai(tmp_path / "x", ALONE, Tables.zeros(ALONE))
    assert (tmp_path / "x").read_text() == "another's"
    written = []
    monkeypatch.setattr(uai_out, "atomic_write", lambda path, *_: written.append(Path(path).name))
    write_uai(tmp_path / "m.uai", ALONE, Tables.zeros(ALONE))
    assert written == ["m.uai.names", "m.uai"]
    monkeypatch.setattr(uai_out, "atomic_write", atomic_write)
    (tmp_path / "n.uai").write_text("another's")
    with pytest.raises(ModelFileError, match="only a UAI model"):
        write_uai(tmp_path / "n.uai", ALONE, Tables.zeros(ALONE))
    assert not names_path(tmp_path / "n.uai").exists()


# --- UAI tasks: evidence, results, and the competition's published answers --------------------------------------------

INSTANCES = [
    "CSP_12", "Grids_12", "Pedigree_12", "Promedus_15", "Promedus_24", "Promedus_30", "Promedus_33", "Segmentation_11",
]  # fmt: skip


@pytest.mark.parametrize("engine", [LoopyBP(), JunctionTree()])
def test_results_of_a_small_model(engine, tmp_path):
    """Z = 10 * (1 + 2 + 3 + 4 + 5 + 12); P(x0 = 1) = 18 / 27; evidence x1 = 2 leaves 5 and 12."""
    path, evidence = tmp_path / "m.uai", tmp_path / "m.uai.evid"
    path.write_text(SMALL)
    evidence.write_text("1 1 2\n")
    text, beliefs = infer_uai(path, None, "PR", engine)
    (tmp_path / "m.PR").write_text(text)
    assert read_pr(tmp_path / "m.PR") == pytest.approx(math.log10(270), abs=1e-12)
    assert beliefs.converged
    (tmp_path / "m.MAR").write_text(infer_uai(path, evidence, "MAR", engine)[0])
    expected = [[5 / 17, 12 / 17], [0, 0, 1], [5 / 17, 12 / 17]]
    for found, wanted in zip(read_mar(tmp_path / "m.MAR"), expected, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-15)
    evidence.write_text("2 0 0 2 1")
    with pytest.raises(InferenceError, match="probability 0"):
        infer_uai(path, evidence, "PR", engine)


def test_mpe_goes_through_the_engines_maximize(tmp_path):
    """junction-tree finds the record of the largest weight, 12; loopy-bp, which cannot promise one, says so."""
    path = tmp_path / "m.uai"
    path.write_text(SMALL)
    assert infer_uai(path, None, "MPE", JunctionTree()) == ("MPE\n3 1 2 1\n", None)
    with pytest.raises(InferenceError, match="an engine that maximises"):
        infer_uai(path, None, "MPE", LoopyBP())
    with pytest.raises(DataError, match="PR, MAR and MPE"):
        infer_uai(path, None, "SUM", LoopyBP())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((text, {}) for text in ("0", "", "0\n", "1\n0\n")),
        ("2 3 1 0 0", {3: 1, 0: 0}),
        ("1\n2 3 1 0 0\n", {3: 1, 0: 0}),
        ("1 5 1\n", {5: 1}),
        ("1\n1 5 1", {5: 1}),
        ("2\n3 1 0 0\n", {3: 1, 0: 0}),
        ("2 3 1 3 1", {3: 1}),
    ],
)
def test_both_evidence_formats_are_read(text, expected, tmp_path):
    """`n var state ...`, and the older form with a leading line for the number of samples."""
    (tmp_path / "e").write_text(text)
    assert read_evidence(tmp_path / "e") == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2 1 0", "need 4 numbers"),
        ("1 1 -1", "whole numbers"),
        ("x", "whole numbers"),
        ("2\n1 0 1\n1 0 0\n", "2 evidence samples"),
        ("2 0 1 0 0", "two states"),
    ],
)
def test_bad_evidence_is_refused(text, message, tmp_path):
    (tmp_path / "e.evid").write_text(text)
    with pytest.raises(DataError, match=f"e.evid.*{message}"):
        read_evidence(tmp_path / "e.evid")


def test_evidence_restricts_the_sum_over_records():
    """log Z after evidence is the log of the summed weight of agreeing records, for free attributes too."""
    structure = Structure(Domain.from_sizes({"a": 2, "b": 3, "free": 5}), [("a", "b"), ("b",)])
    potentials = Tables(structure, np.random.default_rng(0).normal(size=9))
    engine = JunctionTree()
    both = np.exp(potentials["a", "b"] + potentials["b"])
    for evidence, weight in [
        ({}, 5 * both.sum()),
        ({"b": 2}, 5 * both[:, 2].sum()),
        ({1: 0, "a": 1}, 5 * both[1, 0]),
        ({"free": 4}, both.sum()),
    ]:
        masked = apply_evidence(potentials, evidence)
        beliefs = engine.compile(masked.structure).infer(masked)
        assert beliefs.log_partition == pytest.approx(math.log(weight), abs=1e-13)
    *others, seen = variable_marginals(beliefs.marginals)[2].tolist()
    assert others == [0, 0, 0, 0] and seen == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("evidence", [{"c": 0}, {2: 0}, {-1: 0}, {"a": 2}, {"a": -1}, {"a": True}])
def test_evidence_that_does_not_fit_is_refused(evidence):
    structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    with pytest.raises(DataError, match="evidence"):
        apply_evidence(Tables.zeros(structure), evidence)


def test_evidence_on_tied_groups_is_refused():
    """One clique of a tied group cannot be masked without the others."""
    structure = Structure(Domain.from_sizes(dict.fromkeys("abc", 2)), [], tied=[[("a", "b"), ("b", "c")]])
    with pytest.raises(DataError, match="tied"):
        apply_evidence(Tables.zeros(structure), {"a": 0})


def test_result_files_keep_every_digit(tmp_path):
    draws = np.random.default_rng(0)
    marginals = [draws.dirichlet(np.ones(k)) for k in (2, 5, 1)]
    (tmp_path / "MAR").write_text(format_mar(marginals))
    for found, wanted in zip(read_mar(tmp_path / "MAR"), marginals, strict=True):
        assert np.array_equal(found, wanted)
    (tmp_path / "PR").write_text(format_pr(math.pi * math.log(10)))
    assert read_pr(tmp_path / "PR") == pytest.approx(math.pi, rel=1e-14)
    assert format_mpe([0, 2, 1]) == "MPE\n3 0 2 1\n"


@pytest.mark.parametrize("text", ["", "PR\n1", "MAR\n", "MAR 1 3 .5 .5", "MAR 2 2 .5 .5", "MAR 1 1.5 1", "MAR a"])
def test_bad_result_files_are_refused(text, tmp_path):
    (tmp_path / "r").write_text(text)
    with pytest.raises(DataError):
        read_mar(tmp_path / "r")


def check_instance(name, engine):
    path = shared_file(f"{name}.uai")
    _, beliefs = infer_uai(path, f"{path}.evid", "MAR", engine)
    assert beliefs.log_partition / math.log(10) == pytest.approx(read_pr(f"{path}.PR"), abs=1e-3)
    for found, published in zip(variable_marginals(beliefs.marginals), read_mar(f"{path}.MAR"), strict=True):
        np.testing.assert_allclose(found, published, rtol=0, atol=1e-5)
        assert (found[published == 0] < 1e-6).all()
    for variable, state in read_evidence(f"{path}.evid").items():
        assert variable_marginals(beliefs.marginals)[variable][state] == pytest.approx(1, rel=1e-12)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", INSTANCES)
def test_published_answers_are_reproduced_exactly(name):
    """UAI 2014: log10 PR to 1e-3 absolute and MAR to 1e-5, evidence and zeros included."""
    check_instance(name, JunctionTree())


@pytest.mark.landing
def test_the_widest_published_instance_is_reproduced():
    check_instance("DBN_11", JunctionTree(max_bytes=8 * 2**30))


@pytest.mark.parametrize("name", ["Promedus_24", "Promedus_33"])
def test_loopy_bp_comes_near_on_sparse_instances(name):
    """On two nearly tree-like diagnosis networks loopy BP converges within 0.01 of the published marginals."""
    path = shared_file(f"{name}.uai")
    _, beliefs = infer_uai(path, f"{path}.evid", "MAR", LoopyBP())
    assert beliefs.converged
    for found, published in zip(variable_marginals(beliefs.marginals), read_mar(f"{path}.MAR"), strict=True):
        np.testing.assert_allclose(found, published, atol=0.01)


# --- What a run takes from a BIF file; app/tests/spec/test_run.py holds what a spec makes of it -----------------------


def wide(path: Path, count: int) -> Path:
    names = [f"v{number}" for number in range(count)]
    text = "".join(f"variable {name} {{ type discrete [2] {{u, v}}; }}\n" for name in names)
    path.write_text(text + "".join(f"probability ( {name} ) {{ table .5, .5; }}\n" for name in names))
    return path


def test_remarks_stay_short(tmp_path):
    path = wide(tmp_path / "w.bif", 100)
    domain, remarks = bif_domain(path)
    assert remarks[1].startswith("100 of 100 attributes") and "v19, and 80 more;" in remarks[1]
    larger = Domain([*domain, *(Domain.from_sizes({f"w{number}": 2 for number in range(21)}))])
    assert "w19, and 1 more;" in bif_structure(path, larger)[1][1]


def test_labels_of_its_own_are_told_by_name(tmp_path):
    """Several of them, where the owner named several that are none of the file's."""
    path = wide(tmp_path / "w.bif", 3)
    domain, remarks = bif_domain(path, {"v0": "?", "v1": "v"})
    assert [one.labels for one in domain] == [("u", "v", "?"), ("u", "v"), ("u", "v", "unknown")]
    assert "2 of 3 attributes" in remarks[1] and "'?' or 'unknown'" in remarks[1] and ": v0, v2;" in remarks[1]
    assert len(bif_domain(path, "u")[1]) == 1
    with pytest.raises(DomainError, match="'v3', which is not a variable"):
        bif_domain(path, {"v3": "u"})
    with pytest.raises(StructureError, match=r"w\.bif has the variable 'v2'"):
        bif_structure(path, domain.subset(["v0", "v1"]))


@pytest.mark.parametrize("name", ["alarm", "asia", "hailfinder"])
def test_published_graphs_are_taken_whole(name):
    """The graph is the file's own over any domain with its variables, more labels or not."""
    path = shared_file(f"{name}.bif")
    domain, _ = bif_domain(path)
    structure, remarks = bif_structure(path, domain)
    assert Dag.of(structure).parents == read_network(path)[0].parents and len(remarks) == 1

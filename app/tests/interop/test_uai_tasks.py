"""UAI tasks: evidence, results, and the competition's published answers."""

import math

import numpy as np
import pytest

from app.tests.interop.small import SMALL, shared_file
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
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DataError, InferenceError
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.inference.loopy.bp import LoopyBP
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

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

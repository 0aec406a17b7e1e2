"""`dpgm export`: networks as BIF, models as UAI, each with its guarantee."""

import json

import numpy as np
import pytest

import dpgm_core as dpgm
from app.tests.made import domain_of
from dpgm.interop import read_network, read_uai
from dpgm_core.releases.session import session_release

DOMAIN = domain_of(sex="F M", age="young old", job="y n none")
DAG = dpgm.Dag(DOMAIN, {"job": ["age", "sex"], "age": ["sex"]})


@pytest.fixture
def network(tmp_path):
    codes = np.array([[0, 0, 0], [1, 1, 1], [1, 1, 2], [0, 1, 0]] * 100)
    fitted = dpgm.fit(codes, DAG.structure(), dpgm.Budget.pure(5), neighbours="add-remove").model
    path = tmp_path / "net.dpgm"
    dpgm.project(fitted, DAG).save(path)
    return path


def test_a_network_is_exported_as_bif(network, dpgm_command):
    """What is read from the file are the model's own conditional probabilities; its guarantee is in it."""
    out = network.with_name("out.bif")
    code, said, err = dpgm_command("export", network, "--bif", out)
    assert (code, err) == (0, "") and said == f"network: {out}\n"
    dag, cpds = read_network(out)
    model = dpgm.load_model(network)
    assert dag.parents == DAG.parents and [one.labels for one in dag.domain] == [one.labels for one in DOMAIN]
    for name, wanted in dpgm.cpds(model, DAG).items():
        np.testing.assert_allclose(cpds[name], wanted, rtol=1e-12)
    head = out.read_text().split("}")[0]
    assert f'property guarantee "{model.guarantee().replace(";", ",")}";' in head and "conditions" not in head
    assert f'property dpgm "{dpgm.__version__}";' in head


@pytest.mark.parametrize("kind", ["markov", "bayes"])
def test_a_model_is_exported_as_uai(network, dpgm_command, kind):
    """Structure and potentials come back to the bit; the sidecar holds the model's stamp."""
    out = network.with_name("OUT.UAI")
    code, said, err = dpgm_command("export", network, "--uai", out, "--kind", kind)
    assert (code, err) == (0, "") and f"{out} ({kind.upper()}), names and guarantee in {out}.names" in said
    model, found = dpgm.load_model(network), read_uai(out)
    assert (found.kind, found.structure) == (kind.upper(), model.structure)
    assert found.potentials.values.tobytes() == model.potentials.values.tobytes()
    told = json.loads(out.with_name("OUT.UAI.names").read_text())["stamp"]
    assert told["guarantee"] == model.guarantee() and told["unmeasured_as"] == "uniform"


def test_both_at_once_in_json(network, dpgm_command, facts):
    """The files, what was written, and the stamp; an older export gives way."""
    bif, uai = network.with_name("o.bif"), network.with_name("o.uai")
    for _ in range(2):
        code, out, err = dpgm_command("export", network, "--bif", bif, "--uai", uai, "--json")
        assert (code, err) == (0, "")
    shown_facts = json.loads(out)
    assert (shown_facts["bif"], shown_facts["uai"], shown_facts["names"]) == (str(bif), str(uai), f"{uai}.names")
    assert (shown_facts["kind"], shown_facts["private"], shown_facts["unmeasured"]) == ("MARKOV", True, [])
    assert shown_facts["guarantee"] == dpgm.load_model(network).guarantee()
    only = facts("export", network, "--bif", bif)
    assert (only["uai"], only["names"], only["kind"]) == (None, None, None)


def test_merged_codes_are_exported_as_they_were(tmp_path, ran):
    """A network over blocks of codes is written over all codes: the same joint, as BIF and as UAI of both kinds."""
    fine = dpgm.Domain.from_sizes({"a": 4, "b": 3})
    merges = {"a": (0, 1, 1, 0)}
    coarse = fine.coarsened(merges)
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, 4, 500), rng.integers(0, 3, 500)], axis=1)
    merged = np.stack([np.array(merges["a"])[codes[:, 0]], codes[:, 1]], axis=1)
    both = (codes, dpgm.Structure(fine, [("a",), ("b",)])), (merged, dpgm.Structure(coarse, [("a", "b")]))
    steps = [dpgm.release(*one, dpgm.Budget.pure(1), neighbours="add-remove") for one in both]
    terms = dpgm.SessionTerms(workload=dpgm.Workload.all(fine, 2), budget=dpgm.Budget.pure(2), merges=merges)
    release = session_release(terms, steps, steps[0].terms, cost=dpgm.Budget.pure(2), private=True, provenance={})
    dag = dpgm.Dag(coarse, {"b": ["a"]})
    tables = {"a": np.array([0.3, 0.7]), "b": np.array([[0.5, 0.1], [0.25, 0.2], [0.25, 0.7]])}
    model = dpgm.Model.from_cpds(dag, tables, releases=[release])
    model.save(tmp_path / "m.dpgm")
    wanted = model.marginal(("a", "b"))
    assert wanted.shape == (4, 3)
    for kind in ("markov", "bayes"):
        uai = tmp_path / f"{kind}.uai"
        ran("export", tmp_path / "m.dpgm", "--bif", tmp_path / "m.bif", "--uai", uai, "--kind", kind)
        found = read_uai(uai)
        joint = dpgm.Model(found.structure, found.potentials).marginal(("a", "b"))
        np.testing.assert_allclose(joint, wanted, rtol=1e-12)
    graph, cpds = read_network(tmp_path / "m.bif")
    assert graph.parents == {"a": (), "b": ("a",)} and graph.domain.shape(("a", "b")) == (4, 3)
    np.testing.assert_allclose(cpds["a"][:, None] * cpds["b"].T, wanted, rtol=1e-12)


def test_what_no_release_measured_is_named(partial, ran):
    """It is in the file as the model has it, uniform; the names file lists it."""
    uai = partial.with_name("p.uai")
    _, err = ran("export", partial, "--uai", uai)
    assert err == "dpgm: in the files as the model has them, as no release measured them: town\n"
    assert json.loads(uai.with_name("p.uai.names").read_text())["stamp"]["unmeasured"] == ["town"]
    found = read_uai(uai)
    np.testing.assert_allclose(dpgm.Model(found.structure, found.potentials).marginal("town"), 0.5)


def test_conditions_and_seeds_travel_with_the_network(tmp_path, dpgm_command):
    """A simulation under a public N: the file says both, so does standard error."""
    codes = np.array([[0, 0, 0], [1, 1, 1]] * 50)
    terms = dpgm.Terms(neighbours="add-remove", total="public")
    seeded = {"terms": terms, "randomness": dpgm.SeededRandomness(1)}
    fitted = dpgm.fit(codes, DAG.structure(), dpgm.Budget.pure(5), **seeded).model
    dpgm.project(fitted, DAG).save(tmp_path / "m.dpgm")
    code, _, err = dpgm_command("export", tmp_path / "m.dpgm", "--bif", tmp_path / "m.bif")
    assert code == 0 and "NOT PRIVATE" in err and "CONDITIONAL ON PUBLIC N" in err
    head = (tmp_path / "m.bif").read_text().split("\n}")[0]
    assert "NOT PRIVATE" in head and "property conditions" in head and "CONDITIONAL ON PUBLIC N" in head


def test_a_model_that_is_no_network_is_refused(model, refused):
    """As BIF and as UAI of kind bayes; the line names the learner that makes one. As markov it can be written."""
    for words in (("--bif", "x.bif"), ("--uai", "x.uai", "--kind", "bayes")):
        line = refused("export", model, words[0], model.with_name(words[1]), *words[2:])
        assert "no Bayesian network" in line and "'bayes-net'" in line
    assert not list(model.parent.glob("x.*"))


def test_what_a_file_cannot_hold_is_refused_by_name(tmp_path, refused, dpgm_command):
    """Labels that BIF cannot hold, probabilities below any double (0 would rule records out), and missing files."""
    dag = dpgm.Dag(domain_of(sex=["F", "not stated"]), {})
    dpgm.Model.from_cpds(dag, {"sex": np.array([0.5, 0.5])}).save(tmp_path / "m.dpgm")
    line = refused("export", tmp_path / "m.dpgm", "--bif", tmp_path / "x.bif", "--uai", tmp_path / "x.uai")
    assert "'not stated' cannot stand in a BIF file" in line
    assert not list(tmp_path.glob("x.*"))
    structure = dpgm.Structure(dpgm.Domain.from_sizes({"a": 2}), [("a",)])
    dpgm.Model(structure, dpgm.Tables(structure, np.array([0.0, -800.0]))).save(tmp_path / "m.dpgm")
    assert "smaller than any double" in refused("export", tmp_path / "m.dpgm", "--bif", tmp_path / "x.bif")
    assert dpgm_command("export", tmp_path / "m.dpgm", "--uai", tmp_path / "x.uai")[0] == 0
    assert "there is no file" in refused("export", tmp_path / "none.dpgm", "--uai", tmp_path / "x.uai")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "nothing to write is named; give --bif OUT.bif, --uai OUT.uai or both"),
        (("--kind", "bayes", "--bif", "x.bif"), "--kind says what --uai writes"),
        (("--bif", "x.uai"), "cannot write x.uai: the name of what --bif writes must end in .bif"),
        (("--uai", "x.bif"), "must end in .uai"),
        (("--bif", "other.bif"), "only a BIF network is replaced there"),
        (("--uai", "other.uai"), "only a UAI model is replaced there"),
        (("--uai", "taken.uai"), "taken.uai.names exists and is another file"),
        (("--bif", "net.dpgm/x.bif"), "net.dpgm is no folder"),
        (("--bif", "x.bif", "--uai", "x.uai", "--kind", "BAYES"), "'BAYES' is not one of"),
    ],
)
def test_wrong_requests_are_refused_before_anything_is_written(network, refused, words, message, monkeypatch):
    monkeypatch.chdir(network.parent)
    for name in ("other.bif", "other.uai", "taken.uai.names"):
        network.with_name(name).write_text("another's")
    before = {path.name: path.read_bytes() for path in network.parent.iterdir()}
    assert message in refused("export", network, *words)
    assert {path.name: path.read_bytes() for path in network.parent.iterdir()} == before

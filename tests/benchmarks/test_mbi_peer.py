"""mbi as a peer: what comes back is its model, exactly; a missing or broken environment is one clear line."""

import itertools
import os
import stat
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.peers import mbi_peer
from benchmarks.peers.mbi_peer import MissingPeer, PeerFailed, mbi_fit, mbi_kls, mbi_models, over, stops_until
from benchmarks.protocol.populations import Population, draw_release, structure_of
from dpgm_core import Domain, Structure, Tables
from dpgm_core.inference.junction_tree.engine import JunctionTree

DOMAIN = Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 2})
# a clique inside another, one whose axes are not in the domain's order, an attribute of its own
AWKWARD = Structure(DOMAIN, [("b",), ("b", "a"), ("b", "c"), ("c", "a"), ("d",)])
needs_mbi = pytest.mark.skipif(mbi_peer.VARIABLE not in os.environ, reason=f"{mbi_peer.VARIABLE} names no environment")


@pytest.fixture
def fresh():
    """No worker from before, none left behind."""
    mbi_peer.worker.cache_clear()
    yield
    mbi_peer.worker.cache_clear()


def fit_something():
    return mbi_models(AWKWARD, np.ones(AWKWARD.cells), np.ones(len(AWKWARD.groups)))


def program(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (None, "DPGM_MBI_PYTHON is not set; set"),
        ("", "cannot be run"),
        (f'exec "{sys.executable}" -S "$@"', "ModuleNotFoundError"),
        ("exit 3", "without a word"),
    ],
    ids=["not named", "not there", "without mbi", "ends at once"],
)
def test_an_environment_that_will_not_do_is_one_line(fresh, monkeypatch, tmp_path, script, words):
    """The line names the variable to set, the interpreter that was tried or the import that failed."""
    monkeypatch.delenv(mbi_peer.VARIABLE, raising=False)
    if script is not None:
        path = tmp_path / "python"
        monkeypatch.setenv(mbi_peer.VARIABLE, program(path, script) if script else str(path))
    with pytest.raises(MissingPeer, match=rf"^mbi was asked for, but [^\n]*{words}[^\n]*$"):
        fit_something()


def test_a_worker_that_keeps_dying_is_one_line(fresh, monkeypatch, tmp_path):
    """It is started twice, then given up."""
    log = tmp_path / "starts"
    script = f'echo started >> "{log}"; echo \'{{"ready": "0"}}\'; read line'
    monkeypatch.setenv(mbi_peer.VARIABLE, program(tmp_path / "python", script))
    with pytest.raises(PeerFailed, match=r"^mbi's worker died twice[^\n]*$"):
        fit_something()
    assert log.read_text().count("started") == 2


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_tables_that_mbi_would_answer_silently_are_refused(value):
    """A NaN gives its uniform model without a word."""
    with pytest.raises(PeerFailed, match="NaN"):
        mbi_models(AWKWARD, np.full(AWKWARD.cells, value), np.ones(len(AWKWARD.groups)))


def test_tied_tables_are_refused():
    """mbi has none."""
    tied = Structure(DOMAIN, [], tied=[[("a",), ("c",)]])
    with pytest.raises(PeerFailed, match="tied"):
        mbi_models(tied, np.ones(tied.cells), np.ones(1))


def test_potentials_are_put_where_they_belong():
    """mbi's cliques in another order, with transposed axes; cliques it has merged get zeros."""
    rng = np.random.default_rng(0)
    ac, ab, bc, d = rng.normal(size=(2, 2)), rng.normal(size=(2, 3)), rng.normal(size=(3, 2)), rng.normal(size=2)
    row = np.concatenate([block.ravel() for block in (ac, ab, bc, d)])
    found = Tables(AWKWARD, over(AWKWARD, np.array(["0,2", "0,1", "1,2", "3"]), row))
    expected = {("b",): np.zeros(3), ("b", "a"): ab.T, ("b", "c"): bc, ("c", "a"): ac.T, ("d",): d}
    for clique, block in expected.items():
        assert np.array_equal(found[clique], block)


def test_stops_start_fine_and_end_at_the_last():
    """Every iteration up to 7, never further than a fifth (rounded) apart, the last included."""
    stops = stops_until(1000)
    assert stops[:7] == (1, 2, 3, 4, 5, 6, 7)
    assert stops[-1] == 1000
    assert all(after <= before * 1.2 + 1 for before, after in itertools.pairwise(stops))


@needs_mbi
def test_the_model_that_comes_back_is_mbis(monkeypatch):
    """Our marginals of the potentials are its marginals, and the path's end is its estimate."""
    noisy = np.random.default_rng(1).normal(100, 20, size=AWKWARD.cells)
    found = mbi_models(AWKWARD, noisy, np.array([1.0, 2, 3, 4, 5]), total=500.0, iterations=100, stops=(1, 7, 100))
    ours = JunctionTree().compile(AWKWARD).infer(Tables(AWKWARD, found.potentials)).marginals.values
    assert np.allclose(ours, found.marginals, atol=1e-12)
    assert not np.allclose(ours, JunctionTree().compile(AWKWARD).infer(Tables.zeros(AWKWARD)).marginals.values)
    assert np.allclose(found.path[-1], found.potentials, atol=1e-10)
    assert not np.allclose(found.path[0], found.path[1])
    assert found.total == 500.0
    other = mbi_models(AWKWARD, noisy, np.array([1.0, 2, 3, 4, 5]), total=500.0, iterations=100, oracle="implicit")
    assert np.allclose(other.potentials, found.potentials, atol=1e-8)


@needs_mbi
def test_the_estimate_minimises_its_loss():
    """On one table that a model can follow, the squared loss ends at the table itself."""
    structure = Structure(DOMAIN, [("a", "b")])
    table = np.array([10.0, 20, 30, 5, 15, 20])
    found = mbi_models(structure, table, np.array([1.0]))
    assert found.total == pytest.approx(100)
    assert np.allclose(found.marginals * 100, table, atol=0.01)


@needs_mbi
def test_a_worker_that_died_is_replaced():
    """The same problem gets the same answer from the next one."""
    before = fit_something()
    mbi_peer.worker(64).served.process.kill()
    assert np.allclose(fit_something().potentials, before.potentials)


@needs_mbi
def test_the_oracle_is_no_worse_than_its_path():
    """KL by our engine; at few records and much noise the default overfits and the best stop comes early."""
    population = Population.draw(structure_of("chain1", 3, 4), 0)
    release = draw_release(population, 2000, 0.1, 1)
    kls = mbi_kls(population, release)
    path = mbi_fit(release, stops=(50, 200))
    assert kls["mbi"]["kl"] == pytest.approx(population.kl(path.potentials))
    assert kls["mbi-oracle"]["kl"] <= kls["mbi"]["kl"]
    assert 1 <= kls["mbi-oracle"]["iterations"] < 1000
    assert kls["mbi"]["seconds"] > 0


@needs_mbi
def test_the_oracle_goes_beyond_the_default_where_that_is_best():
    """Hardly any noise: 1000 iterations are not enough, and the search goes on to the end."""
    population = Population.draw(structure_of("chain1", 3, 4), 0)
    kls = mbi_kls(population, draw_release(population, 10**6, 5.0, 1), most=1500)
    assert 1000 < kls["mbi-oracle"]["iterations"] <= 1500
    assert kls["mbi-oracle"]["kl"] < kls["mbi"]["kl"]

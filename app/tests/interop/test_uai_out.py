"""Models written as UAI files: their numbers, networks child last, what is refused and what is replaced."""

import itertools
import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpgm.interop import uai as uai_out
from dpgm.interop.uai import names_path, read_uai, write_uai
from dpgm.interop.uai_tasks import infer_uai, read_pr
from dpgm_core._util.files import atomic_write
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DataError, ModelFileError, StructureError
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.structure.dag import Dag
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

SHARED = Path(os.environ.get("DPGM_SHARED", Path(__file__).parents[3].parent / "shared"))


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
    """One factor per attribute, in the domain's order, each row of which sums to 1 along the last axis; the product of
    the factors is the network's joint, enumerated; the sidecar gives back structure and potentials to the bit."""
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
        (
            Structure(Domain.from_sizes({"a": 2}), [("a",)]),
            np.log([0.5, 0.4]),
            "'a' is not a conditional .* differs from 1 by",
        ),
        (Structure(Domain.from_sizes({"a": 2}), [("a",)]), [800.0, -np.inf], "differs from 1 by inf"),
        (Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a",), ("b",), ("a", "b")]), np.zeros(8), "'a' stands first"),
    ],
)
def test_what_is_no_network_is_not_written_as_one(structure, values, message, tmp_path):
    """One line that names the attribute, and no file; as MARKOV all of them can be written."""
    potentials = Tables(structure, np.array(values))
    with pytest.raises(StructureError, match=rf"n\.uai: .*{message}"):
        write_uai(tmp_path / "n.uai", structure, potentials, kind="BAYES")
    assert not list(tmp_path.iterdir())
    write_uai(tmp_path / "n.uai", structure, potentials)
    assert read_uai(tmp_path / "n.uai").kind == "MARKOV"


def test_a_probability_below_any_double_is_not_written_as_zero(tmp_path):
    """exp(-800) is 0 as a double, which would rule the record out; the least denormal can be written."""
    structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    with pytest.raises(DataError, match=r"n\.uai: a probability of 'a', exp\(-800\), is smaller than any double"):
        write_uai(tmp_path / "n.uai", structure, Tables(structure, np.array([0.0, -800.0])), kind="BAYES")
    assert not list(tmp_path.iterdir())
    write_uai(tmp_path / "n.uai", structure, Tables(structure, np.array([0.0, np.log(5e-324)])), kind="BAYES")
    assert (tmp_path / "n.uai").read_text().split()[-2:] == ["1.0", "5e-324"]


@pytest.mark.parametrize("kind", ["bayes", "", "LIMID", None])
def test_unknown_kinds_are_refused(kind, tmp_path):
    """A file that no reader would take is not written."""
    structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    with pytest.raises(DataError, match="the kinds are MARKOV and BAYES"):
        write_uai(tmp_path / "n.uai", structure, Tables.zeros(structure), kind=kind)


@pytest.mark.landing
def test_a_published_network_is_written_back(tmp_path):
    """UAI 2014's pedigree holds a conditional table for each variable, child last: written as BAYES its scopes and
    numbers are the same, up to the rounding of log and exp, and so is the published PR."""
    path = SHARED / "data" / "uai" / "Pedigree_12.uai"
    if not path.exists():
        pytest.skip("needs ../shared/data/uai")
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
    structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    write_uai(tmp_path / "m.uai", structure, Tables.zeros(structure), stamp={"guarantee": "none", "cost": float("inf")})
    told = json.loads(names_path(tmp_path / "m.uai").read_text())
    assert told["stamp"] == {"guarantee": "none", "cost": "inf"}
    assert read_uai(tmp_path / "m.uai").structure == structure
    write_uai(tmp_path / "m.uai", structure, Tables.zeros(structure))
    assert "stamp" not in json.loads(names_path(tmp_path / "m.uai").read_text())


def test_no_model_is_ever_without_its_stamp(tmp_path, monkeypatch):
    """Its names are written first, so a run that ends in between leaves none; a foreign model stops both."""
    structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    written = []
    monkeypatch.setattr(uai_out, "atomic_write", lambda path, *_: written.append(Path(path).name))
    write_uai(tmp_path / "m.uai", structure, Tables.zeros(structure))
    assert written == ["m.uai.names", "m.uai"]
    monkeypatch.setattr(uai_out, "atomic_write", atomic_write)
    (tmp_path / "m.uai").write_text("another's")
    with pytest.raises(ModelFileError, match="only a UAI model"):
        write_uai(tmp_path / "m.uai", structure, Tables.zeros(structure))
    assert not names_path(tmp_path / "m.uai").exists()


def test_probabilities_are_written_with_all_their_digits(tmp_path):
    """Each number in the file is the very double exp(potential)."""
    structure = Structure(Domain.from_sizes({"a": 5}), [("a",)])
    values = np.random.default_rng(2).normal(size=5)
    write_uai(tmp_path / "m.uai", structure, Tables(structure, values))
    words = (tmp_path / "m.uai").read_text().split()
    assert [float(word) for word in words[-5:]] == np.exp(values).tolist()


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e9])
def test_what_cannot_be_written_is_refused(bad, tmp_path):
    """NaN, +inf and potentials beyond any number of factors leave no file behind."""
    structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    with pytest.raises(DataError, match=r"m\.uai"):
        write_uai(tmp_path / "m.uai", structure, Tables(structure, np.array([0.0, bad])))
    assert not (tmp_path / "m.uai").exists()


def test_writing_replaces_older_models_only(tmp_path):
    """The file and its names; anything else stays."""
    structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    for _ in range(2):
        write_uai(tmp_path / "m.uai", structure, Tables(structure, np.array([0.0, np.random.default_rng().normal()])))
    (tmp_path / "x").write_text("another's")
    with pytest.raises(ModelFileError, match="only a UAI model is replaced there"):
        write_uai(tmp_path / "x", structure, Tables.zeros(structure))
    assert (tmp_path / "x").read_text() == "another's"

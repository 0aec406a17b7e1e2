"""The benchmark of inference: agreement, which comes before time, and its tables. No time is asserted."""

from __future__ import annotations

import itertools
import json
import os
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import inference
from benchmarks.cases.coded import wide
from benchmarks.harness.alone import Crashed
from benchmarks.harness.main import main
from benchmarks.peers import libraries, marginals
from benchmarks.peers.served import Model, tables
from benchmarks.speed import exact, page, paths
from benchmarks.speed import ours as ours_module
from benchmarks.speed.contestants import Contestant
from benchmarks.speed.models import GENERATED, case, save
from benchmarks.speed.ours import limit
from benchmarks.speed.page import Aim, aims_table
from benchmarks.speed.race import Agreement, fastest_peer, ours
from dpgm_core import Domain, Structure, Tables, make
from dpgm_core.inference.junction_tree.engine import JunctionTreeEngine

#: A loop with a chord, an attribute alone, one clique within another, a clique of three, axes in both orders.
CLIQUES = [(0, 1), (2, 1), (2, 3), (0, 3), (0, 2), (4,), (3, 5, 2), (5,)]
SIZES = [2, 3, 2, 4, 3, 2]


@pytest.fixture(autouse=True)
def _no_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MBI", "PYAGRUM", "PGMPY", "PGMAX"):
        monkeypatch.delenv(f"DPGM_{name}_PYTHON", raising=False)


def small(zeros: bool) -> Model:
    rng = np.random.default_rng(3)
    theta = 3 * rng.normal(size=(2, sum(int(np.prod([SIZES[i] for i in clique])) for clique in CLIQUES)))
    if zeros:
        theta[:, rng.random(theta.shape[1]) < 0.2] = -np.inf
    return Model(SIZES, CLIQUES, theta)


def by_enumeration(model: Model, number: int) -> tuple[list[np.ndarray], float]:
    """Marginals and log Z from all records, one after another; shares nothing with the engine."""
    parts = tables(model, model.theta[number])
    found = [np.zeros_like(part) for part in parts]
    for record in itertools.product(*map(range, model.sizes)):
        places = [tuple(record[i] for i in clique) for clique in model.cliques]
        weight = np.exp(sum(part[place] for part, place in zip(parts, places, strict=True)))
        for table, place in zip(found, places, strict=True):
            table[place] += weight
    z = found[0].sum()
    return [table / z for table in found], float(np.log(z))


@pytest.mark.parametrize("zeros", [False, True])
def test_every_executor_agrees_with_enumeration(zeros: bool) -> None:
    """Marginals and log Z, on every parameter set, one after another on the same engine."""
    model = small(zeros)
    variants = libraries.dpgm(model)
    assert [one.name for one in variants] == [executor or "numpy" for executor in libraries.executors()]
    for number, variant in itertools.product((0, 1, 0), variants):
        expected, log_z = by_enumeration(model, number)
        found, told = variant.read(variant.call(number))
        assert told == pytest.approx(log_z, rel=1e-12)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-12, err_msg=variant.name)


def test_executors_agree_on_what_is_measured() -> None:
    """On generated models of the benchmark itself, whatever is timed has ours' marginals and log Z."""
    for name in ("chain3-k10", "er-k10", "grid10-k2"):
        measured = case(name, None)
        places = {one: place for place, one in enumerate(measured.structure.domain.names)}
        cliques = [tuple(places[one] for one in clique) for clique in measured.structure.cliques]
        agreement = Agreement()
        for variant in libraries.dpgm(Model(list(measured.structure.domain.sizes.values()), cliques, measured.theta)):
            found, log_z = variant.read(variant.call(0))
            assert agreement.agrees(f"dpgm {variant.name}", np.concatenate([np.ravel(part) for part in found]), log_z)
        assert not agreement.left_out


def test_loopy_answers_a_tree_as_enumeration_does() -> None:
    """Where loopy BP is exact: its reader gives marginals of single attributes, in order."""
    rng = np.random.default_rng(1)
    tree = Model([3, 2, 4], [(2, 0), (1, 2)], rng.normal(size=(1, 20)))
    expected, _ = by_enumeration(tree, 0)
    for variant in libraries.dpgm_loopy(tree):
        found, _ = variant.read(variant.call(0))
        for one, other in zip(found, [expected[0].sum(0), expected[1].sum(1), expected[0].sum(1)], strict=True):
            np.testing.assert_allclose(one, other, atol=1e-12)


def test_who_disagrees_is_named_and_not_timed() -> None:
    """By marginals, by what is not finite, by log Z; libraries of 32 bits are given their rounding."""
    agreement = Agreement()
    truth = np.array([0.25, 0.75])
    assert agreement.agrees("dpgm numpy", truth, 1.5)
    assert agreement.agrees("pyagrum shafer-shenoy", truth + 1e-12, float("nan"))
    assert agreement.agrees("mbi fast", truth + 1e-6, float("nan"))
    assert not agreement.agrees("mbi64 fast", truth + 1e-6, float("nan"))
    assert not agreement.agrees("mbi hugin", np.array([np.nan, 0.75]), float("nan"))
    assert not agreement.agrees("dpgm numba", truth, 1.6)
    assert not agreement.agrees("pgmpy belief propagation", np.array([1.0]), float("nan"))
    assert {who: why[:13] for who, why in agreement.left_out.items()} == {
        "mbi64 fast": "marginals dif",
        "mbi hugin": "1 marginals a",
        "dpgm numba": "log Z is 1.6,",
        "pgmpy belief propagation": "marginals dif",
    }


def test_a_contestant_answers_errors_in_words_and_may_end(tmp_path: Path) -> None:
    """What cannot be loaded is one line, and so is a process that is no contestant."""
    with Contestant("nobody", Path("/bin/false")) as nobody, pytest.raises(Crashed, match="its process ended"):
        nobody.ask({"load": "x"}, 30)
    said = json.loads(json.dumps(marginals.versions(["numpy"])))
    assert said == {"numpy": np.__version__}


def test_a_smoke_run_without_peers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In a process of its own, as every contestant; figures into one file, tables beside it, written again alike."""
    store = tmp_path / "inference.json"
    asked = ["--smoke", "--only", "exact,limits,predicted", "--models", "chain3-k10", "--json", str(store)]
    main(inference.MEASUREMENT, asked)
    kept = json.loads(store.read_text(encoding="utf-8"))
    assert set(kept) == {"exact", "limits", "predicted"} and not kept["exact"]["figures"]["chain3-k10"]["left out"]
    written = store.with_suffix(".md").read_text(encoding="utf-8")
    assert "| chain3-k10 |" in written and "[start:exact]" in written
    main(inference.MEASUREMENT, [*asked, "--report"])
    assert store.with_suffix(".md").read_text(encoding="utf-8") == written
    assert "mbi is left out" in capsys.readouterr().err


@pytest.mark.landing
def test_whole_paths_at_their_smallest(tmp_path: Path) -> None:
    """The paths that --models names are measured here and in a checkout beside; the store keeps the others of the same
    commit, and no other commit's."""
    store = tmp_path / "found.json"
    asked = ["--smoke", "--only", "paths", "--json", str(store), "--before", str(paths.ROOT), "--models"]
    main(inference.MEASUREMENT, [*asked, "first intervals 31*"])
    main(inference.MEASUREMENT, [*asked, "fit auto 1M*,fit aim*"])
    kept = json.loads(store.read_text(encoding="utf-8"))
    measured = [name for name in paths.PATHS if "100" not in name and "compilation" not in name]
    assert kept["paths"]["figures"].keys() == set(measured)
    assert all(one["seconds"] > 0 and one["before"]["seconds"] > 0 for one in kept["paths"]["figures"].values())
    rows = paths.table(kept["paths"]["figures"]).splitlines()[2:]
    assert [row.split("|")[1].strip() for row in rows] == measured
    kept["paths"]["revision"] = "another"
    store.write_text(json.dumps(kept), encoding="utf-8")
    main(inference.MEASUREMENT, [*asked, "fit aim*"])
    assert list(json.loads(store.read_text(encoding="utf-8"))["paths"]["figures"]) == ["fit, aim, 40 rounds, 30k x 10"]


def test_paths_beside_their_targets() -> None:
    """A path that has an aim is held against it; the others are only shown, as is what was measured before."""
    one = {"seconds": 21.04, "peak": 400.2, "shares": [["a/b", 0.5], ["numpy", 0.25]]}
    one |= {"inferences": 1501, "limit": 0.123}
    figures = {
        "report, 100 columns": {**one, "inferences": 0},
        "fit, auto, 1M x 12": {**one, "before": {"seconds": 47.0}},
    }
    assert paths.aims(figures) == [Aim("fit, auto, 1M x 12, CPU s", 21.04, 20)]
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in paths.table(figures).splitlines()[2:]]
    assert rows == [
        ["fit, auto, 1M x 12", "47.0", "21.0", "1,501", "0.12", "400", "a/b 50 %, numpy 25 %"],
        ["report, 100 columns", "-", "21.0", "0", "-", "400", "a/b 50 %, numpy 25 %"],
    ]


def test_inferences_are_counted_and_priced() -> None:
    """Each call of an engine, by what one takes; its limit is exp and multiply-adds, or bytes if they take longer."""
    structure = Structure.chain(Domain.from_sizes(dict.fromkeys("abc", 4)))
    engine = make("inference", "junction-tree").compile(structure)
    assert isinstance(engine, JunctionTreeEngine)
    with paths.counted() as counts:
        engine.infer(Tables(structure, np.zeros(32)))
        engine.infer_many(np.zeros((3, 32)))
    engine.infer(Tables(structure, np.zeros(32)))  # is not counted
    needs = engine.needs
    assert paths.listed(counts) == [[32, needs.multiply_adds, needs.peak_bytes, 4]]
    rate = {"exp": 1e9, "multiply-add": 1e9, "memory": 1e-9, "cache": 1e12}
    assert paths.limit_seconds(paths.listed(counts), rate) == pytest.approx(4 * (32 + needs.multiply_adds) / 1e9)


def test_many_inferences_have_all_cores_and_what_follows_one(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def timed(call: object) -> float:
        seen.append(os.environ.get("DPGM_THREADS"))
        return 1.0

    monkeypatch.setattr(ours_module, "wall_seconds", timed)
    before = dict(os.environ)
    ours_module.MANY.measure(Namespace(models="chain3-k10", networks=None, smoke=True))
    assert seen and set(seen) == {str(os.cpu_count())}
    assert dict(os.environ) == before


def test_the_model_of_first_intervals_is_as_large_as_it_says() -> None:
    """All columns, pairs and triples of near ones up to so many cells, the same each time."""
    table = wide(31, 1, 0)
    structure = paths.related(table, paths.RELATED[31])
    in_pairs_and_triples = sum(
        size for size, (clique,) in zip(structure.sizes, structure.groups, strict=True) if len(clique) > 1
    )
    assert 0.98 * 25_000 < in_pairs_and_triples <= 25_000
    assert {len(clique) for clique in structure.cliques} == {1, 2, 3}
    assert paths.related(table, paths.RELATED[31]) == structure


def test_figures_beside_their_targets() -> None:
    """Ours is the executor that is chosen by itself, the peer whoever is fastest; met at the digits shown."""
    found = {
        "ms": {"dpgm numba": 0.1, "dpgm numpy": 0.2, "mbi fast": 1.0, "mbi64 fast": 0.8, "pyagrum x": 3.0},
        "left out": {},
    }
    assert (ours(found), fastest_peer(found)) == (0.1, ("mbi64 fast", 0.8))
    assert exact.aims({"chain3-k10": found, "insurance": found}) == [
        Aim("chain3-k10, ours / fastest peer", 0.1 / 0.8, 0.09, "mbi64 fast"),
        Aim("chain3-k10, without numba", 0.2 / 0.8, 0.2, "mbi64 fast"),
        Aim("insurance, without numba", 0.2 / 0.8, 0.2, "mbi64 fast"),
    ]
    row = exact.table({"chain3-k10": found}).splitlines()[2]
    assert [cell.strip() for cell in row.split("|")[1:-1]] == [
        "chain3-k10", "0.1", "0.2", "1", "0.8", "3", "-", "mbi64 fast", "0.125", "0.09"
    ]  # fmt: skip
    assert "missed" in aims_table([Aim("x", 0.1511, 0.15)]) and "met" in aims_table([Aim("x", 0.1501, 0.15)])


def test_the_limit_is_the_longer_of_arithmetic_and_bytes() -> None:
    """Milliseconds; a working set beyond the cache moves at the rate of memory."""
    rate = {"exp": 1e9, "multiply-add": 1e10, "memory": 1e9, "cache": 1e11}
    assert limit(10**6, 10**7, 10**5, rate) == pytest.approx(1 + 1)
    assert limit(10, 10, 10**7, rate) == pytest.approx(10)


def test_the_committed_tables_are_those_of_the_committed_figures() -> None:
    """`--report` would change nothing."""
    store = inference.RESULTS / "inference.json"
    kept = json.loads(store.read_text(encoding="utf-8"))
    assert set(kept) <= set(inference.PARTS)
    assert store.with_suffix(".md").read_text(encoding="utf-8") == page.text(inference.PARTS, kept)


def test_a_model_travels_as_it_is(tmp_path: Path) -> None:
    """Through the file that contestants read: cliques as places, axes as the structure has them."""
    measured = case("grid10-k2", None)
    save(measured, tmp_path / "model.npz")
    model = marginals.load(tmp_path / "model.npz")
    again = libraries.structure_of(model)
    assert again.cliques == GENERATED["grid10-k2"]().cliques
    np.testing.assert_array_equal(model.theta, measured.theta)

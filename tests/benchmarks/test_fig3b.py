"""The mobility case study: its made-up traces, how it reads other people's, and how it scores models."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

pytest.importorskip("joblib")

from benchmarks import fig3b
from benchmarks.cases import mobility
from benchmarks.harness.main import main
from benchmarks.traces import ABSENT, BUILDINGS, segments, traces
from dpgm_core import Contributions, DataError, Domain, Structure, Tables, make
from dpgm_core.sources import as_source
from dpgm_core.sources.persons import PersonSource


@pytest.fixture(scope="module")
def slots():
    return traces(60, 7, seed=2)


def test_traces_are_like_a_campus(slots):
    """Repeatable; people stay, are absent about half of the time, some for whole days, and every building is used."""
    assert (slots == traces(60, 7, seed=2)).all() and (slots != traces(60, 7, seed=3)).any()
    assert slots.shape == (420, 144) and set(np.unique(slots)) == set(range(len(BUILDINGS)))
    assert 0.35 < (slots == ABSENT).mean() < 0.75
    assert 0.1 < (slots == ABSENT).all(axis=1).mean() < 0.45
    assert 0.85 < (slots[:, 1:] == slots[:, :-1]).mean() < 0.97
    dining = (slots == 11) | (slots == 12)
    at_noon, at_night = dining[:, 69:84].mean(), dining[:, :36].mean()
    assert at_noon > 0.05 > 0.005 > at_night


def test_segments_drop_what_is_left_over():
    found = segments(np.arange(20).reshape(2, 10), length=4)
    assert found.tolist() == [[[0, 1, 2, 3], [4, 5, 6, 7]], [[10, 11, 12, 13], [14, 15, 16, 17]]]


@pytest.fixture
def small():
    """Ten days of two segments of three slots, three labels."""
    codes = np.random.default_rng(1).integers(0, 3, (10, 2, 3)).astype(np.uint8)
    codes[0] = 0
    return mobility.Days(codes=codes, labels=("null", "a", "b"), empty="null")


@pytest.mark.parametrize("tied", [True, False])
def test_scores_are_those_of_enumeration(small, tied):
    """Segments by all 27 records' probabilities; pairs by the mean pair marginal given that not both are null."""
    structure = mobility.structure_of(small, "segments", tied)
    theta = np.random.default_rng(0).normal(size=structure.cells)
    parts = Tables(structure, theta)
    log = np.zeros((3, 3, 3))
    for record in itertools.product(range(3), repeat=3):
        for group, table in zip(structure.groups, parts.arrays(), strict=True):
            log[record] += sum(table[tuple(record[int(name[1]) - 1] for name in clique)] for clique in group)
    p = np.exp(log) / np.exp(log).sum()
    found = mobility.scores(small, "segments", structure, theta)
    rows = small.codes.reshape(-1, 3)
    assert found["segment"] == pytest.approx(np.mean([np.log(p[tuple(row)]) for row in rows]))
    pair = (p.sum(2) + p.sum(0)) / 2
    pair = pair / (1 - pair[0, 0])
    days = [[np.log(pair[a, b]) for row in day for a, b in itertools.pairwise(row) if a or b] for day in small.codes]
    assert found["pair"] == pytest.approx(np.mean([score for day in days for score in day]))
    assert found["pair_by_day"] == pytest.approx(np.mean([np.mean(day) for day in days if day]))
    assert found["pair_uniform"] == pytest.approx(-np.log(8)) and found["segment_uniform"] == pytest.approx(-np.log(27))


@pytest.mark.parametrize(("view", "weights"), [("segments", "tied"), ("segments", "R1"), ("pairs", "R2")])
def test_the_reference_reproduces_the_tables_it_was_given(small, view, weights):
    """Maximum likelihood of an exponential family: expected statistics equal observed ones."""
    structure, theta = mobility.reference(small, view, weights)
    per = mobility.WEIGHTS[weights][1]
    weighting = Contributions(per=per or "clique", empty="null" if view == "pairs" else None)
    people = PersonSource(source=as_source(small.table()), person="person_day", rows_per_person=2)
    wanted = mobility.counted(people, structure, weighting)
    wanted = wanted.values / wanted.repeat(wanted.sums() / np.asarray(structure.multiplicities))
    found = make("inference", "junction-tree").compile(structure).infer(Tables(structure, theta)).marginals
    assert np.abs(found.values - wanted).max() < 1e-3


def test_days_are_split_whole_and_always_alike(small):
    train, test = mobility.split(small)
    assert len(test.codes) == 2 and len(train.codes) == 8
    again = mobility.split(small)[0]
    assert (again.codes == train.codes).all()
    together = np.concatenate([train.codes, test.codes]).reshape(10, -1).tolist()
    assert sorted(together) == sorted(small.codes.reshape(10, -1).tolist())


@pytest.mark.parametrize("values", ["codes", "labels"])
def test_other_data_are_read_from_a_folder(values, tmp_path):
    """A row per person-day, slots named by the domain, labels or codes, further columns left alone."""
    labels = ["null", "home", "work"]
    (tmp_path / "my-domain.json").write_text(json.dumps({f"h{hour}": labels for hour in range(4)}))
    rows = [[0, 1, 1, 2], [2, 2, 0, 0]]
    said = [[str(code) if values == "codes" else labels[code] for code in row] for row in rows]
    lines = ["user,h0,h1,h2,h3", *(f"{number},{','.join(row)}" for number, row in enumerate(said))]
    (tmp_path / "days.csv").write_text("\n".join(lines) + "\n")
    mobility.load.cache_clear()
    found = mobility.load(str(tmp_path), length=2)
    assert found.codes.tolist() == [[[0, 1], [1, 2]], [[2, 2], [0, 0]]] and found.empty == "null"
    (tmp_path / "my-domain.json").write_text(json.dumps({"h0": labels, "h9": labels}))
    mobility.load.cache_clear()
    with pytest.raises(DataError, match="must be a column"):
        mobility.load(str(tmp_path))
    (tmp_path / "other.csv").write_text("")
    with pytest.raises(DataError, match="must hold one"):
        mobility.load(str(tmp_path))


def test_the_case_study_runs_and_resumes(tmp_path, capsys):
    """One line per run with scores alone, tables of them; the second start has nothing to do."""
    store = tmp_path / "f.jsonl"
    asked = ["--smoke", "--store", str(store), "--only-methods", "tied naive-mle,R2 naive-mle,*reference"]
    main(fig3b.STUDY, asked)
    printed = capsys.readouterr().out
    assert "campus, view pairs, score pair_by_day" in printed and "non-private, weighted as R2" in printed
    lines = [json.loads(line) for line in store.read_text().splitlines()]
    assert len(lines) == 2 * 2 + 2 * 2
    scores = {"pair", "pair_by_day", "pair_uniform", "segment", "segment_uniform"}
    assert all(set(line) <= scores | {"cell", "trial", "method", "cpu", "wall", "by"} for line in lines)
    main(fig3b.STUDY, asked)
    assert "nothing to do" in capsys.readouterr().err
    best = {line["method"]: line["segment"] for line in lines if line["cell"].startswith("campus/segments")}
    assert best["tied reference"] > best["tied naive-mle"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cells", "nowhere"], "no cell is called 'nowhere'"),
        (["--only-methods", "tied magic"], "no method is called"),
        (["--name", "a/b"], "no slashes"),
        (["--report"], "no finished runs"),
        (["/nowhere/at/all"], "there is no /nowhere/at/all"),
    ],
)
def test_bad_requests_are_one_line(arguments, message, tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(fig3b.STUDY, ["--store", str(tmp_path / "f.jsonl"), *arguments])
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


def test_the_structure_is_the_one_of_the_paper(small):
    """One table for all edges, a node potential on x1; untied edges hold x1 already."""
    names = [("x1", "x2"), ("x2", "x3")]
    domain = Domain.from_dict(
        {"attributes": {f"x{t}": {"labels": ["null", "a", "b"], "unknown": "null"} for t in (1, 2, 3)}}
    )
    assert mobility.structure_of(small, "segments", tied=True) == Structure(domain, [("x1",)], tied=[names])
    assert mobility.structure_of(small, "pairs", tied=True) == Structure(domain, [], tied=[names])
    assert mobility.structure_of(small, "pairs", tied=False) == Structure(domain, names)

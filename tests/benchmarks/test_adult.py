"""The Adult comparison: its margins and scores are exact, its budgets equal, its bad input one line."""

import csv
import itertools
import os
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("joblib")

from benchmarks import adult
from benchmarks.cases.census import RAW, TREES, Census, load, records_margins, scores
from benchmarks.harness.main import main
from benchmarks.harness.runs import read
from dpgm_core import Domain, Model, Structure

DOMAIN = Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 4, "e": 2})
EDGES = [("b", "a"), ("b", "c"), ("d", "b"), ("e", "d")]  # d and b have several neighbours
SHARED = Path(os.environ.get("DPGM_SHARED", Path(__file__).parents[3] / "shared")) / "data"


def census(records: int = 500) -> Census:
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, size, size=records) for size in DOMAIN.sizes.values()], axis=1)
    codes[:, 1] = np.where(rng.random(records) < 0.8, codes[:, 0], codes[:, 1])
    codes[:, 2] = np.where(rng.random(records) < 0.8, codes[:, 1] % 2, codes[:, 2])
    return Census.split(DOMAIN, EDGES, codes)


def people(folder: Path, count: int) -> Path:
    """A made-up adult_raw: income follows education, the rest is chance."""
    rng = np.random.default_rng(0)
    rows = [{name: rng.choice(labels) for name, labels in RAW.items()} for _ in range(count)]
    for row in rows:
        row["Income"] = ">50K" if row["Education"] == "Academic-Degree" else "<=50K"
    (folder / "adult_raw").mkdir(parents=True)
    with (folder / "adult_raw" / "adult.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, RAW)
        writer.writeheader()
        writer.writerows(rows)
    return folder


def test_the_margins_of_records_are_their_shares():
    """A triple counted by hand."""
    codes = census().training
    found = dict(records_margins(DOMAIN, codes))
    assert found["a", "c", "d"].shape == (2, 2, 4)
    by_hand = np.mean((codes[:, 0] == 1) & (codes[:, 2] == 0) & (codes[:, 3] == 3))
    assert found["a", "c", "d"][1, 0, 3] == pytest.approx(by_hand)


def test_the_scores_are_mean_total_variation():
    """0 from the training records to themselves; to the held-out ones what the definition says."""
    data = census()
    found = scores(data, records_margins(DOMAIN, data.training))
    assert found["training2"] == found["training3"] == 0
    here, there = (dict(records_margins(DOMAIN, codes)) for codes in (data.training, data.heldout))
    pairs = [0.5 * np.abs(here[clique] - there[clique]).sum() for clique in here if len(clique) == 2]
    assert found["heldout2"] == pytest.approx(np.mean(pairs))
    assert 0 < found["heldout2"] < found["heldout3"] < 1


def test_independent_attributes_are_put_over_the_tree():
    """The model's margins are the products of the shares."""
    shares = {name: np.random.default_rng(2).dirichlet(np.ones(size)) for name, size in DOMAIN.sizes.items()}
    tree = Structure(DOMAIN, EDGES)
    model = Model(tree, adult.over_tree(tree, shares))
    assert np.allclose(model.marginal(("a", "d")), np.outer(shares["a"], shares["d"]))
    assert np.allclose(model.marginal(("e", "c")), np.outer(shares["e"], shares["c"]))


def test_the_split_loses_no_record():
    """Four fifths and the rest, together all records."""
    data = census(503)
    assert len(data.training) == 402
    together = np.concatenate([data.training, data.heldout])
    again = census(503)
    assert np.array_equal(together, np.concatenate([again.training, again.heldout]))
    assert len(together) == 503


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_all_methods_spend_the_same(noise):
    """The baseline's one-way tables cost what the tree's cost; learners share one release."""
    data = census()
    alone = Structure(DOMAIN, [(name,) for name in DOMAIN.names])
    tree, ways = (adult.measured(data, structure, noise, "0.5", 3) for structure in (data.tree, alone))
    assert tree.cost == ways.cost
    assert tree.total_policy == "estimated"
    assert np.array_equal(tree.tables.values, adult.measured(data, data.tree, noise, "0.5", 3).tables.values)


def test_the_trees_reach_every_attribute():
    """Connected and without a cycle: one edge less than attributes."""
    for name, edges in TREES.items():
        names = {attribute for edge in edges for attribute in edge}
        structure = Structure(Domain.from_sizes(dict.fromkeys(names, 2)), edges)
        report = structure.describe()
        assert (report.components, report.treewidth, len(edges)) == (1, 1, len(names) - 1), name


def test_a_smoke_run_on_made_up_people(tmp_path, capsys):
    """A learner of pairs is nearer to dependent records than the baseline, and all is reported."""
    folder = people(tmp_path / "data", 3000)
    store = tmp_path / "store.jsonl"
    asked = ["--smoke", "--store", str(store), "--only-methods", "independent,naive,training records"]
    main(adult.STUDY, [str(folder), *asked])
    lines = {(line["cell"], line["method"]): line for line in read(store)}
    assert set(lines) == {
        ("adult_raw exact", "training records"),
        *itertools.product(("adult_raw laplace 1", "adult_raw gaussian 1"), ("independent", "naive")),
    }
    naive, baseline = (lines["adult_raw laplace 1", method] for method in ("naive", "independent"))
    assert naive["training2"] < baseline["training2"]
    assert naive["loglik"] > baseline["loglik"]
    assert "| naive " in capsys.readouterr().out
    assert not list(tmp_path.glob("*.png"))


@pytest.mark.parametrize(
    "text",
    [None, "Age,Education\n20-34,HS-grad\n", "", "Age\n150\n", ",".join(RAW) + "\n150" + "," * (len(RAW) - 1) + "\n"],
)
def test_a_table_that_is_absent_or_does_not_fit_is_one_line(tmp_path, capsys, text):
    """No folder, missing columns, an empty file, a label that does not exist: exit code 2."""
    if text is not None:
        (tmp_path / "adult_raw").mkdir()
        (tmp_path / "adult_raw" / "adult.csv").write_text(text)
    with pytest.raises(SystemExit) as left:
        main(adult.STUDY, [str(tmp_path), "--smoke", "--store", str(tmp_path / "store.jsonl")])
    assert left.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    if text is None:
        assert str(tmp_path) in line and "benchmarks.adult DIR" in line
    else:
        assert line.startswith("adult cannot read") and "150" not in line


@pytest.mark.skipif(not (SHARED / "adult" / "adult.csv").is_file(), reason="the Adult table is not here")
def test_the_real_table_fits_its_domain():
    """48,842 people, 14 attributes."""
    data = load(SHARED, "adult")
    assert len(data.training) + len(data.heldout) == 48_842
    assert len(data.domain) == 14

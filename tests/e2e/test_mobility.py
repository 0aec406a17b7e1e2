"""The mobility case on the command line: tied edges, a node potential and normalised contributions from one file."""

import json

import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm.cli import main

PLACES = ["absent", "hall", "library"]
STAY = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.2, 0.3, 0.5]])

SPEC = """
name = "campus"
data = "segments.csv"
neighbours = "add-remove"
unit = "one person-day"
person = "person_day"
rows_per_person = 24
learner = "{learner}"
{contributions}

[budget]
epsilon = 2

[domain.attributes]
x1 = {{ labels = ["absent", "hall", "library"], unknown = "absent" }}
x2 = {{ labels = ["absent", "hall", "library"], unknown = "absent" }}
x3 = {{ labels = ["absent", "hall", "library"], unknown = "absent" }}
x4 = {{ labels = ["absent", "hall", "library"], unknown = "absent" }}

[structure]
cliques = [["x1"]]
tied = [[["x1", "x2"], ["x2", "x3"], ["x3", "x4"]]]

[ledger]
path = "campus.ledger"
budget = {{ epsilon = 3 }}
create = true

[simulation]
seed = 5
"""


@pytest.fixture(scope="module")
def days():
    """(800, 24, 4): person-days of 24 segments, each day one walk of the chain."""
    rng = np.random.default_rng(3)
    steps = np.empty((800, 96), int)
    steps[:, 0] = rng.integers(0, 3, 800)
    for t in range(1, 96):
        steps[:, t] = (rng.random(800)[:, None] > STAY.cumsum(1)[steps[:, t - 1]]).sum(1)
    return steps.reshape(800, 24, 4)


@pytest.fixture
def folder(days, tmp_path):
    segments = ((day, segment) for day, of_day in enumerate(days) for segment in of_day)
    rows = [",".join([str(day), *(PLACES[code] for code in segment)]) for day, segment in segments]
    (tmp_path / "segments.csv").write_text("\n".join(["person_day,x1,x2,x3,x4", *rows]) + "\n")
    return tmp_path


def run(capsys, *arguments):
    """What the command printed; the spec's folder must be current."""
    main([*map(str, arguments)])
    return capsys.readouterr().out


WEIGHTS = {
    "ones": ("", "L1 96,"),
    "clique": ('contributions = { per = "clique", grid = 240 }', "L1 960,"),
    "group": ('contributions = { per = "group", grid = 240 }', "L1 480,"),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("learner", "weights"), [*(("naive-mle", weights) for weights in WEIGHTS), ("cgm-em", "clique")]
)
def test_the_whole_way_from_a_file(learner, weights, folder, days, capsys, monkeypatch):
    """plan, fit, learn again, query, sample, evaluate; the model's steps are those of the traces."""
    monkeypatch.chdir(folder)
    setting, l1 = WEIGHTS[weights]
    (folder / "campus.toml").write_text(SPEC.format(learner=learner, contributions=setting))

    planned = run(capsys, "plan", "campus.toml", "--records", 800)
    assert l1 in planned and ("persons" in planned) == (weights != "ones")
    printed = run(capsys, "fit", "campus.toml")
    assert "left in the ledger: epsilon = 1" in printed
    assert ("at most 1 per" in printed) == (weights != "ones")

    model = dpgm.load_model("campus.dpgm")
    assert (model.release.contributions is None) == (weights == "ones")
    pair = model.marginal(["x1", "x2"])
    assert np.abs(pair / pair.sum(1, keepdims=True) - STAY).max() < 0.05
    assert np.abs(model.marginal("x4") - np.bincount(days[:, :, 3].ravel()) / days[:, :, 3].size).max() < 0.05

    run(capsys, "learn", "campus.release.dpgm", "-o", "again.dpgm")
    assert np.abs(dpgm.load_model("again.dpgm").marginal(["x1", "x2"]) - pair).max() < 0.03
    asked = json.loads(run(capsys, "query", "campus.dpgm", "x2", "--given", "x1=hall", "--json"))
    assert "hall" in json.dumps(asked)
    run(capsys, "sample", "campus.dpgm", "-n", 50, "-o", "made.csv")
    assert len((folder / "made.csv").read_text().splitlines()) == 51
    assert "KL" in run(capsys, "compare", "campus.dpgm", "again.dpgm")
    own = json.loads(run(capsys, "compare", "campus.dpgm", "--json"))  # against its own noisy tables
    assert len(own["tables"]) == 2 and all(table["total_variation"] < 0.1 for table in own["tables"])


def test_what_does_not_go_together_is_one_line(folder, capsys, monkeypatch):
    """A public total, rounds of subsamples, settings that are wrong: refused, and nothing is released."""
    monkeypatch.chdir(folder)
    setting = WEIGHTS["group"][0]
    (folder / "campus.toml").write_text(SPEC.format(learner="naive-mle", contributions=setting))
    for change, message in [
        ("total=public", "no public total"),
        ("learner=psgd", "rounds of subsamples"),
        ("contributions.grid=10", "too coarse"),
        ("contributions.empty=abscent", "did you mean 'absent'"),
        ("contributions.pre=group", "did you mean 'per'"),
    ]:
        with pytest.raises(SystemExit, match="2"):
            main(["fit", "campus.toml", "--set", change])
        (line,) = [line for line in capsys.readouterr().err.splitlines() if message in line]
        assert line.startswith("dpgm: ")
    assert not list(folder.glob("*.dpgm"))

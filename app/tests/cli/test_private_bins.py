"""Bins and labels that are found privately, as a user meets them."""

import json
import zipfile

import numpy as np
import pytest

from dpgm_core import Ledger, load_model, load_release
from dpgm_core.curator.live import LiveCurator

PLANTED = ("73193.8125", "ZZ-PLANTED", "41.40625")
SPEC = """\
neighbours = "add-remove"
data = "people.csv"
output.folder = "out"
simulation.seed = 3
budget = { epsilon = 2, delta = "1e-6" }
ledger = { path = "people.ledger", create = true, budget = { epsilon = 8, delta = "1e-5" } }

[domain.attributes]
income = { type = "number", min = 0, max = 100000, bins = { private = 16 } }
hours = { type = "integer", min = 0, max = 99, bins = { private = 8, share = 0.01 } }
sex = { labels = ["F", "M"] }
"""
NAMED = '\n[structure]\ncliques = [["income", "sex"], ["hours", "sex"]]\n'
CHOSEN = '\n[structure]\nselect = "mst"\n'


@pytest.fixture
def people(tmp_path):
    """A folder with 4,000 records, among them one whose values are nobody else's."""
    rng = np.random.default_rng(0)
    incomes = np.where(rng.random(4000) < 0.6, 0, rng.lognormal(9.5, 1, 4000).clip(0, 99_999)).round(1)
    rows = [
        f"{income},{hours},{'FM'[hours % 2]}" for income, hours in zip(incomes, rng.integers(20, 60, 4000), strict=True)
    ]
    (tmp_path / "people.csv").write_text("\n".join(["income,hours,sex", *rows, "73193.8125,41.40625,ZZ-PLANTED"]))
    return tmp_path


@pytest.mark.sampled(2)
@pytest.mark.parametrize("structure", [NAMED, CHOSEN])
def test_a_spec_with_private_bins_is_planned_and_fitted(people, ran, facts, structure):
    """The plan states the cost of bins, a fit shows and charges them once, and no file shows a single record."""
    spec = people / "people.toml"
    spec.write_text(SPEC + structure)
    planned = "".join(ran("plan", spec))
    assert "private bins of" in planned and "income" in planned
    printed = "".join(ran("fit", spec))
    assert "bins:    income in " in printed and "bins:    hours in 8 bins" in printed
    assert "the domain but for the bins of 'income' and 'hours', which were found privately" in printed
    assert ("chosen:" in printed) is (structure == CHOSEN)
    assert "epsilon, delta) = (6" in ran("ledger", "show", people / "people.ledger")[0]
    model, release = (people / "out" / name for name in ("people.dpgm", "people.release.dpgm"))
    assert not load_model(model).domain.undetermined
    session = load_release(release).session
    assert [one.name for one in session.bins] == ["income", "hours"]
    assert session.bins[0].attribute.edges[1] < 10  # the heavy value at the lower end has its cell to itself
    shown_facts = facts("fit", spec, "--set", "name='again'")
    assert set(shown_facts["bins"]) == {"income", "hours"}
    ran("sample", model, "-n", "50", "--seed", "1", "-o", people / "sampled.csv")
    sampled = (people / "sampled.csv").read_bytes()
    assert sampled.count(b"\n") == 51
    everything = [planned.encode(), printed.encode(), json.dumps(shown_facts).encode(), sampled]
    for path in (people / "out").iterdir():
        everything.append(path.read_bytes())
        with zipfile.ZipFile(path) as archive:
            everything += map(archive.read, archive.namelist())
    assert not [text for text in PLANTED if any(text.encode() in one for one in everything)]


def test_a_release_of_private_bins_is_refused_with_what_would_do(people, dpgm_command):
    spec = people / "people.toml"
    spec.write_text(SPEC + NAMED)
    code, out, err = dpgm_command("release", spec)
    assert (code, out) == (2, "") and "'income', 'hours' are still to be found privately" in err
    assert not list(people.glob("out/*"))


RARE = "zz-planted-zz"
SPEC_FIT_LABELS = """
data = "x.csv"
neighbours = "add-remove"
budget = { epsilon = 2, delta = 1e-5 }
mechanism = "gaussian"
structure = { cliques = [["job", "sex"]] }
simulation = { seed = 3 }
[domain.attributes]
job = { labels = { private = true, keep = 5 } }
sex = { labels = ["F", "M"] }
[ledger]
path = "x.ledger"
create = true
budget = { epsilon = 2, delta = 1e-5 }
"""


@pytest.fixture
def spec(tmp_path):
    """A run whose rarest job is that of one person."""
    rows = ["cook,F"] * 400 + ["pilot,M"] * 300 + [f"{RARE},M"]
    (tmp_path / "x.csv").write_text("\n".join(["job,sex", *rows]) + "\n")
    (tmp_path / "run.toml").write_text(SPEC_FIT_LABELS)
    return tmp_path / "run.toml"


def test_labels_are_found_shown_and_paid_for(spec, dpgm_command):
    """Two lines of the ledger; the plan foretells the cost; nothing shows the rare job. The noise is seeded."""
    _, out, err = told = dpgm_command("plan", spec)
    assert "at most 5 labels of 'job' are found first" in err
    assert "this release costs (epsilon, delta) = (2, 1e-05)" in out
    done = dpgm_command("fit", spec, "--json")
    shown_facts = json.loads(done[1])
    (found,) = shown_facts["labels"]
    assert (found["column"], found["labels"]) == ("job", ["cook", "pilot"])
    assert shown_facts["spent"] == {"epsilon": "2", "delta": "1/100000"}
    assert "the labels of 'job', which were found privately" in shown_facts["guarantee"]
    shown = dpgm_command("query", spec.with_name("run.dpgm"), "job", "sex")
    book = dpgm_command("ledger", "show", spec.with_name("x.ledger"))
    assert shown[0] == 0 and RARE not in repr([told, done, shown, book])
    assert [one.cost.epsilon * 10 for one in Ledger.open(spec.with_name("x.ledger")).history()] == [2, 18]


def test_a_run_that_was_stopped_goes_on(spec, dpgm_command, monkeypatch, ran):
    """It says with which line; that run costs only the rest."""

    def stopped(self, *_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(LiveCurator, "_count", stopped)
        code, _, err = dpgm_command("fit", spec)
    kept = spec.with_name("run.labels.json")
    assert code != 0 and f"labels_from = '{kept}'" in err
    out, _ = ran("fit", spec, "--set", f"labels_from={kept.name}")
    assert "labels:  job: 2 labels found for" in out
    assert spec.with_name("run-2.dpgm").exists()
    assert [one.cost.epsilon * 10 for one in Ledger.open(spec.with_name("x.ledger")).history()] == [2, 18]


def test_labels_that_a_new_ledger_cannot_have_paid_for_are_refused_before_it_is_made(spec, ran, refused):
    ran("fit", spec)
    said = refused("fit", spec, "--set", "labels_from=run.labels.json", "--set", "ledger.path=new.ledger")
    assert "were not charged to the ledger to be created; name the one that paid for them" in said
    assert not spec.with_name("new.ledger").exists()
    said = refused("report", spec.with_name("run.labels.json"))
    assert "is labels that were found by its name, and not a model" in said and "--set labels_from=" in said


def test_a_budget_without_delta_is_refused_before_anything_is_made(spec, refused):
    told = refused("fit", spec, "--set", "budget={epsilon=1}", "--set", "ledger.budget={epsilon=9}")
    assert "the labels of 'job' are to be found privately" in told
    assert not spec.with_name("x.ledger").exists()

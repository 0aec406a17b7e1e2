"""dpgm fit with labels found privately: what it prints, what it keeps, and how it goes on."""

import json

import pytest

from dpgm_core import Ledger
from dpgm_core.curator.live import LiveCurator

RARE = "zz-planted-zz"
SPEC = """
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
    (tmp_path / "run.toml").write_text(SPEC)
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


def test_a_budget_without_delta_is_refused_before_anything_is_made(spec, refused):
    """By the column's name, with exit code 2."""
    told = refused("fit", spec, "--set", "budget={epsilon=1}", "--set", "ledger.budget={epsilon=9}")
    assert "the labels of 'job' are to be found privately" in told
    assert not spec.with_name("x.ledger").exists()

"""Private bins as a user meets them: a spec file, the command line, and files in which no value of a record is."""

import json
import zipfile

import numpy as np
import pytest

from dpgm_core import load_model, load_release

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


@pytest.fixture
def dpgm(ran):
    """What a command prints and says; fails where it does."""

    def run(*words):
        out, err = ran(*words)
        return out, out + err

    return run


@pytest.mark.sampled(2)
@pytest.mark.parametrize("structure", [NAMED, CHOSEN])
def test_a_spec_with_private_bins_is_planned_and_fitted(people, dpgm, structure):
    """Claim: the plan says what bins cost, a fit prints where they are and charges the budget once; the model answers
    over them; and what only one record has is in no output and no file."""
    spec = people / "people.toml"
    spec.write_text(SPEC + structure)
    _, planned = dpgm("plan", spec)
    assert "private bins of" in planned and "income" in planned
    _, printed = dpgm("fit", spec)
    assert "bins:    income in " in printed and "bins:    hours in 8 bins" in printed
    assert "the domain but for the bins of 'income' and 'hours', which were found privately" in printed
    assert ("chosen:" in printed) is (structure == CHOSEN)
    assert "epsilon, delta) = (6" in dpgm("ledger", "show", people / "people.ledger")[0]
    model, release = (people / "out" / name for name in ("people.dpgm", "people.release.dpgm"))
    assert not load_model(model).domain.undetermined
    session = load_release(release).session
    assert [one.name for one in session.bins] == ["income", "hours"]
    assert session.bins[0].attribute.edges[1] < 10  # the heavy value at the lower end has its cell to itself
    shown_facts = json.loads(dpgm("fit", spec, "--json", "--set", "name='again'")[0])
    assert set(shown_facts["bins"]) == {"income", "hours"}
    dpgm("sample", model, "-n", "50", "--seed", "1", "-o", people / "sampled.csv")
    sampled = (people / "sampled.csv").read_bytes()
    assert sampled.count(b"\n") == 51
    everything = [planned.encode(), printed.encode(), json.dumps(shown_facts).encode(), sampled]
    for path in (people / "out").iterdir():
        everything.append(path.read_bytes())
        with zipfile.ZipFile(path) as archive:
            everything += map(archive.read, archive.namelist())
    assert not [text for text in PLANTED if any(text.encode() in one for one in everything)]


def test_a_release_of_private_bins_is_refused_with_what_would_do(people, dpgm_command):
    """Claim: exit 2 and one line, and nothing is charged."""
    spec = people / "people.toml"
    spec.write_text(SPEC + NAMED)
    code, _, err = dpgm_command("release", spec)
    assert code == 2
    assert "'income', 'hours' are still to be found privately" in err
    assert not list(people.glob("out/*"))

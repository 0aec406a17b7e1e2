"""What a user does with latent classes, from a spec file to a report."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import dpgm_core as dpgm
from dpgm.cli import cli
from dpgm_core import Budget, Domain, DpgmError, SeededRandomness, Structure, Terms, Workload

SPEC = """
name = "items"
data = "items.csv"
neighbours = "replace-one"
learner = "mixture"

[domain]
item0 = { labels = ["no", "yes"] }
item1 = { labels = ["no", "yes"] }
item2 = { labels = ["no", "yes"] }
item3 = { labels = ["no", "yes"] }

[budget]
rho = 1

[structure]
selector = "all-pairs"

[intervals]
level = 0.9
replicates = 4

[ledger]
path = "out/items.ledger"
budget = { rho = 2 }
create = true

[output]
folder = "out"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where everything lies."""
    return tmp_path_factory.mktemp("items")


@pytest.fixture(scope="module")
def run(folder):
    """Commands in the folder, with a fit of four items on one scale: words to (exit code, output)."""
    rng = np.random.default_rng(1)
    items = (rng.normal(size=(2000, 1)) + rng.normal(size=(2000, 4)) > 0).astype(int)
    rows = [",".join(("no", "yes")[item] for item in row) for row in items]
    (folder / "items.csv").write_text("\n".join(["item0,item1,item2,item3", *rows]))
    (folder / "items.toml").write_text(SPEC)

    def command(*words):
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            done = CliRunner().invoke(cli, [str(word) for word in words])
        if isinstance(done.exception, DpgmError):  # which the program prints
            return 2, str(done.exception)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, done.output

    code, said = command("fit", "items.toml")
    assert code == 0, said
    return command


MODEL = "out/items.dpgm"


def test_every_command_serves_such_a_model(run, folder):
    """The class appears in the description and in files for other programs, and in no answer."""
    code, said = run("query", MODEL)
    assert code == 0 and "latent classes: h (32)" in said and "not converge" not in said
    code, said = run("query", MODEL, "item0", "item3", "--intervals", "0.9", "--json")
    facts = json.loads(said[said.index("{") :])
    assert code == 0 and facts["standing"] == "measured"
    for words in (
        ("sample", MODEL, "-n", 50, "-o", "s.csv"),
        ("complete", MODEL, "s.csv", "-o", "c.csv"),
        ("export", MODEL, "--bif", "m.bif", "--uai", "m.uai"),
        ("report", MODEL, "-o", "r.html"),
        ("compare", MODEL, "out/items.release.dpgm"),
        ("compare", MODEL, "s.csv"),
        ("learn", "out/items.release.dpgm", "--learner", "eb-map", "-o", "e.dpgm"),
        ("compare", MODEL, "e.dpgm"),
    ):
        code, said = run(*words)
        assert code == 0, (words, said)
    assert "Differential privacy" in run("query", MODEL)[1]
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert "Within each of 32 latent classes, which no record states, attributes are independent." in page


def test_the_class_is_refused_in_one_line(run):
    """As an attribute, as a condition, and where it would have to be summed out of a maximum."""
    for words, hint in (
        (("query", MODEL, "h"), "'h' is a latent class of the model, not an attribute of the records"),
        (("query", MODEL, "item0", "-g", "h=1"), "'h' is a latent class of the model"),
        (("sample", MODEL, "-n", 5, "-o", "x.csv", "-g", "h=1"), "'h' is a latent class of the model"),
        (("query", MODEL, "--map"), "has latent classes, so its most probable record"),
        (("study", "items.toml", "--truth", MODEL), "the truth has latent classes"),
    ):
        code, said = run(*words)
        assert code != 0 and hint in said and len(said.strip().splitlines()) == 1, said


def test_other_learners_are_refused_all_pairs_with_what_would_do(run, tmp_path):
    """Before the charge: what is left in the ledger stays."""
    names = "\n".join(f"c{at} = {{ labels = {[str(code) for code in range(12)]} }}" for at in range(12))
    spec = SPEC.replace('learner = "mixture"', 'learner = "eb-map"').split("[domain]")[0]
    rest = SPEC[SPEC.index("[budget]") :].replace('"out', f'"{tmp_path}/out')
    (tmp_path / "wide.csv").write_text("\n".join([",".join(f"c{at}" for at in range(12)), ",".join("0" * 12)]))
    (tmp_path / "wide.toml").write_text(spec.replace("items.csv", "wide.csv") + "[domain]\n" + names + "\n\n" + rest)
    for command in ("plan", "fit"):
        code, said = run(command, tmp_path / "wide.toml")
        assert code != 0 and "take learner = 'mixture'" in said and not (tmp_path / "out").exists(), said


CODES = {
    f"x{at}": column
    for at, column in enumerate(
        (
            np.random.default_rng(3).normal(size=(3000, 1)) + np.random.default_rng(4).normal(size=(3000, 4)) > 0
        ).T.astype(int)
    )
}
ROWS = {name: [str(code) for code in column] for name, column in CODES.items()}
PERSONS = [str(one) for one in np.random.default_rng(5).integers(0, 1500, 3000)]
DOMAIN = Domain.from_sizes(dict.fromkeys(CODES, 2))


@pytest.mark.parametrize("target", ["all-pairs", "mst", "named"])
@pytest.mark.parametrize(
    "terms",
    [
        Terms(neighbours="replace-one"),
        Terms(neighbours="add-remove", total="estimated"),
        Terms(neighbours="add-remove", total=3000.0),
        Terms(neighbours="add-remove", person="id", rows_per_person=3),
    ],
    ids=["replace-one", "estimated", "stated", "persons"],
)
def test_relations_totals_and_rows_per_person_are_as_for_other_learners(terms, target):
    """A measured pair is within .03 of the records'; sampling of whole persons moves it by less than .02."""
    import pyarrow as pa

    asked = (Structure.complete(DOMAIN), Budget.pure(5)) if target == "named" else (target, Budget.zcdp(1))
    settings = {"workload": None if target == "named" else Workload.all(DOMAIN, 2), "terms": terms}
    rows, seed = pa.table({**ROWS, "id": PERSONS}), SeededRandomness(1)
    model = dpgm.fit(rows, *asked, learner="mixture", randomness=seed, **settings).model
    true = np.bincount(CODES["x0"] * 2 + CODES["x3"], minlength=4).reshape(2, 2) / 3000
    assert np.abs(model.marginal(["x0", "x3"]) - true).max() < 0.03
    assert model.private is False and model.domain == DOMAIN

"""`dpgm compare --task`: exact scores for the owner, a private test under the ledger, and what is refused before it."""

import numpy as np
import pytest

import dpgm_core as dpgm
from app.tests.made import domain_of, uniform

pytest.importorskip("sklearn")


@pytest.fixture
def fitted(spec, ran):
    """The model of the spec, whose ledger has 1.5 left."""
    ran("fit", spec)
    return spec.parent / "out" / "visits.dpgm"


def spent(spec) -> tuple[str, list[tuple[str, str]]]:
    ledger = dpgm.Ledger.open(spec.parent / "out" / "visits.ledger")
    return str(ledger.remaining()), [(str(one.cost), one.status) for one in ledger.history()]


def test_exact_scores_are_for_the_owner(spec, fitted, ran, facts, refused):
    """Without the option nothing is read; with it both streams, and JSON, say NOT PRIVATE and what must be held out."""
    data = spec.parent / "visits.csv"
    words = ("compare", fitted, "--task", "sex", "--data", data)
    assert "--allow-non-private" in refused(*words)
    before = spent(spec)
    out, err = ran(*words, "--allow-non-private")
    assert "NOT PRIVATE: exact functions of the records" in out and "NOT PRIVATE: exact" in err
    assert "no model may have been fitted to the test rows" in err
    assert "sex: 60 test rows" in out and out.count("gradient boosting") == out.count("logistic regression") == 2
    shown = facts(*words, "--allow-non-private", "--train-data", spec)
    assert shown["test_rows"] == 120 and shown["commonest"]["label"] == "M" and "NOT PRIVATE" in shown["privacy"]
    assert shown["commonest"]["share"] == pytest.approx(2 / 3)
    real, own = shown["scores"][0], shown["scores"][2]
    assert (real["accuracy"], real["rows"], real["loss"]) == (1, 120, None)  # an age tells the sex
    assert own["trained_on"] == str(fitted) and own["loss"]["accuracy"] == 1 - own["accuracy"]
    assert spent(spec) == before


def test_a_private_test_is_one_release_under_the_ledger(spec, fitted, ran, facts):
    """It costs what was said, is saved, never replaces another one, and prints only what follows from its table."""
    words = ("compare", fitted, "--task", "sex", "--spec", spec, "--set", "budget.epsilon=0.5")
    out, err = ran(*words)
    assert spent(spec) == ("epsilon = 1", [("epsilon = 1", "released"), ("epsilon = 0.5", "released")])
    assert "spent:   epsilon = 0.5; left: epsilon = 1" in out and "Differential privacy with epsilon = 0.5" in out
    assert "scores on them tend to be too high" in out and "share of M" in out and err == ""
    noisy = dpgm.load_release(spec.parent / "out" / "visits.task.release.dpgm")
    assert noisy.structure.cliques == (("score of sex", "sex"),) and noisy.private and noisy.unit == "one record"
    shown = facts(*words)
    assert shown["release"].endswith("visits.task-2.release.dpgm") and shown["spent"] == {"epsilon": "1/2"}
    again = dpgm.load_release(shown["release"])
    for name, one in shown["scores"].items():
        assert 0 <= one["low"] <= one["value"] <= one["high"] <= 1 and one["error"] > 0, name
    assert shown["private"] is True and again.tables[("score of sex", "sex")].shape[1] == 2
    assert shown["scores"]["accuracy"]["value"] > 0.7


def test_more_than_two_labels_have_an_accuracy_alone(spec, fitted, facts):
    shown = facts("compare", fitted, "--task", "age", "--spec", spec, "--set", "budget.epsilon=0.5")
    assert shown["scores"]["auc"] is None and shown["scores"]["accuracy"]["value"] > 0.7
    assert "no AUC, as age has 3 labels and not 2" in shown["notes"]


@pytest.mark.parametrize("budget", ["{rho=0.05}", "{epsilon=0.5,delta=1e-6}"])
def test_other_budgets_and_persons_of_several_rows(spec, ran, facts, budget):
    """The terms of the spec hold for the test: its noise is that of two rows per person."""
    text = spec.read_text().replace(
        "{ epsilon = 2.5 }", "{ rho = 1 }" if "rho" in budget else "{ epsilon = 9, delta = 1e-5 }"
    )
    text = text.replace('neighbours = "add-remove"', 'neighbours = "replace-one"\nperson = "id"\nrows_per_person = 2')
    if "rho" in budget:  # weights of rows are of the fit; a share of rows counts each as one
        text = text.replace("rows_per_person = 2", 'rows_per_person = 2\ncontributions = { per = "clique" }')
    text = text.replace("budget = { epsilon = 1 }", f'budget = {budget}\nmechanism = "gaussian"')
    spec.write_text(text)
    lines = ["sex,age,id", *(f"{'FM'[number % 2]},{30 + 20 * (number % 2)},p{number // 3}" for number in range(300))]
    (spec.parent / "visits.csv").write_text("\n".join(lines) + "\n")
    ran("fit", spec)
    model = spec.parent / "out" / "visits.dpgm"
    shown = facts("compare", model, "--task", "sex", "--spec", spec, "--set", f"budget={budget}")
    noisy = dpgm.load_release(shown["release"])
    assert noisy.rows_per_person == 2 and noisy.neighbours.value == "replace-one" and noisy.unit == "one person"
    assert noisy.contributions is None and noisy.measurement.noise[0].variance > 10


def test_a_seeded_run_is_stamped(spec, fitted, ran, facts):
    """That of the test by its release, and that of the model by a note."""
    spec.write_text(spec.read_text().replace("epsilon = 1 ", "epsilon = 0.5 ") + "[simulation]\nseed = 3\n")
    _, err = ran("compare", fitted, "--task", "sex", "--spec", spec, "--set", "budget.epsilon=0.5")
    assert "NOT PRIVATE (private = false)" in err
    ran("fit", spec, "--set", "name=seeded")
    seeded = fitted.with_name("seeded.dpgm")
    words = ("compare", seeded, "--task", "sex", "--data", spec, "--allow-non-private")
    assert any(note.startswith(f"{seeded}: NOT PRIVATE") for note in facts(*words)["notes"])


def test_what_is_wrong_is_refused_before_the_charge(spec, fitted, refused, model):
    """One line each, nothing charged, nothing written."""
    test = ("--spec", spec, "--set", "budget.epsilon=0.5")
    before, files = spent(spec), set((spec.parent / "out").iterdir())
    other = domain_of(town="A B", sex="F M")
    uniform(other).save(fitted.with_name("other.dpgm"))
    files.add(fitted.with_name("other.dpgm"))
    flat = spec.with_name("flat.toml")
    flat.write_text(spec.read_text().split("[ledger]")[0] + "[output]\nfolder = 'out'\n")
    for words, says in (
        ((fitted, "--task", "sx", *test), "the model has no column 'sx'; did you mean 'sex'"),
        ((fitted.with_name("other.dpgm"), "--task", "sex", *test), "the first line does not name each"),
        ((fitted, "--task", "sex", "--spec", spec, "--set", "budget.epsilon=2"), "only epsilon = 1.5 is left"),
        (
            (fitted, "--task", "sex", "--spec", spec, "--set", "budget.epsilon=2"),
            "what is left can be spent with: the same command and --set budget.epsilon=1.5",
        ),
        ((fitted, "--task", "sex", "--spec", flat, "--set", "budget.epsilon=0.5"), "has no [ledger]"),
        ((fitted, "--task", "sex", "--spec", spec), "say what the test may spend, as in --set budget={epsilon=0.1}"),
        ((fitted, "--task", "sex", "--spec", spec, "--set", "learner=psgd"), "say what the test may spend"),
        ((fitted, "--task", "sex"), "--task needs real rows"),
        ((fitted, "--task", "sex", "--data", spec, *test), "--task needs real rows"),
        ((fitted, "--task", "sex", "--data", spec, "--set", "name=x"), "--set goes with --spec"),
        ((fitted, model, "--task", "sex", *test), "tests one model"),
        ((fitted, fitted, "--task", "sex", "--data", spec), "named twice"),
        ((fitted, "--task", "sex", "--train-data", spec, *test), "--train-data goes with --data"),
        ((fitted, *test), "go with --task COLUMN"),
        ((fitted, "--task", "sex", "-o", "x.html", *test), "leave --output"),
        ((fitted, "--task", "sex", "--spec", spec, "--set", "budget={rho=0.1}"), "rho"),
    ):
        assert says in refused("compare", *words)
    (spec.parent / "visits.csv").write_text("sex,age\n")
    assert "no record behind the line" in refused("compare", fitted, "--task", "sex", *test)
    assert spent(spec) == before and set((spec.parent / "out").iterdir()) == files


def test_scikit_learn_is_named_before_the_charge(spec, fitted, refused, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sklearn.ensemble", None)
    before = spent(spec)
    words = ("compare", fitted, "--task", "sex", "--spec", spec, "--set", "budget.epsilon=0.5")
    assert 'pip install "dpgm[task]"' in refused(*words)
    assert spent(spec) == before


def test_two_related_tables_have_no_task(fitted, refused, monkeypatch):
    from dpgm_core.models.model import Model

    monkeypatch.setattr(Model, "related", property(lambda _: object()))
    assert "the model is of two related ones" in refused(
        "compare", fitted, "--task", "sex", "--data", fitted, "--allow-non-private"
    )


def test_a_value_planted_in_one_record_reaches_no_output(spec, fitted, ran, dpgm_command):
    """Neither of the two forms quotes a record: a text that no label has, with a key of its own."""
    data = spec.parent / "visits.csv"
    data.write_text(data.read_text() + "SECRET,SECRET\n")
    for words in (("--spec", spec, "--set", "budget.epsilon=0.5"), ("--data", data, "--allow-non-private")):
        code, out, err = dpgm_command("compare", fitted, "--task", "sex", *words)
        assert code == 0 and "SECRET" not in out + err
    assert all(b"SECRET" not in file.read_bytes() for file in (spec.parent / "out").iterdir())


def test_the_seed_repeats_an_exact_comparison(spec, fitted, facts):
    words = ("compare", fitted, "--task", "sex", "--data", spec, "--allow-non-private", "--seed")
    assert facts(*words, 5) == facts(*words, 5)
    assert np.isfinite(facts(*words, 6)["scores"][0]["auc"])

"""`select` under [structure]: chosen, released, learned from and planned, without a clique being named."""

from pathlib import Path

import pytest

import dpgm_core as dpgm

MORE = (
    "[attributes.job]\nlabels = ['y', 'n']\nunknown = 'n'\n[attributes.town]\nlabels = ['A', 'B', 'C']\nunknown = 'C'\n"
)


@pytest.fixture
def chosen(spec) -> Path:
    """A spec over four attributes, of which sex and age go together, that names no clique."""
    with (spec.parent / "domain.toml").open("a") as file:
        file.write(MORE)
    (spec.parent / "visits.csv").write_text("sex,age,job,town\n" + "F,30,y,A\nM,50,y,B\nF,30,n,B\nM,50,n,A\n" * 100)
    text = spec.read_text().replace('structure = { graph = "chain" }', 'structure = { select = "mst" }')
    spec.write_text(text.replace("budget = { epsilon = 2.5 }", "budget = { epsilon = 40 }"))
    return spec


def test_fit_chooses_and_says_what(chosen, ran, facts):
    """How many cliques, by whom, each step with -v; the guarantee no longer assumes a public structure."""
    out, _ = ran("-v", "fit", chosen, "--set", "budget.epsilon=10")
    assert "by mst in " in out and "sex x age" in out
    assert "left in the ledger: epsilon = 30" in out
    assert "select" in out and "measure" in out  # the steps
    assert "The structure was chosen privately, within the stated budget." in out
    assert "Assumed public: the domain, the workload and every setting of the run." in out
    shown = facts("fit", chosen, "--set", "budget.epsilon=10")
    assert ["sex", "age"] in shown["structure"]
    assert {step["kind"] for step in shown["trace"]} >= {"select", "measure"}
    assert shown["spent"] == {"epsilon": "10"}
    model = dpgm.load_model(shown["model"])
    assert [list(clique) for clique in model.structure.cliques] == shown["structure"]
    assert model.cost == dpgm.Budget.pure(10)
    assert model.stamp()["provenance"]["selector"]["name"] == "mst"  # goes with samples too


def test_release_then_learn(chosen, dpgm_command, facts):
    """The release has the structure in it; learning from it costs nothing and gives a model over the same cliques."""
    shown = facts("release", chosen, "--set", "budget.epsilon=10")
    assert shown["selector"] == "mst" and shown["spent"] == {"epsilon": "10"} and shown["left"] == {"epsilon": "30"}
    assert ["sex", "age"] in shown["structure"] and shown["trace"]
    assert not list(chosen.parent.glob("out/*[!e].dpgm"))  # no model
    assert {tuple(clique) for clique in facts("learn", shown["release"])["structure"]} >= {
        tuple(one) for one in shown["structure"]
    }
    code, out, _ = dpgm_command("release", chosen)
    assert code == 0 and "chosen: " in out and "The structure was chosen privately" in out
    both = (shown["release"], str(next(chosen.parent.glob("out/*-2.release.dpgm"))))
    steps = [len(dpgm.load_release(file).steps) for file in both]
    code, out, err = dpgm_command("learn", *both)
    assert code == 0 and f" in {sum(steps)} steps of 2 sessions" in out, err
    assert len(facts("learn", *both)["trace"]) == sum(steps)


@pytest.mark.parametrize(
    ("command", "setting", "words"),
    [
        ("fit", "structure.select=mts", "did you mean 'mst'"),
        ("release", "structure.select.nonsense=1", "no option 'nonsense'"),
        ("fit", "mechanism=gaussian", "'gaussian' cannot serve pure epsilon"),
        ("fit", "learner=bayes-net", "take selector = 'privbayes'"),
        ("plan", "learner=bayes-net", "take selector = 'privbayes'"),
        ("release", "structure.select={name='privbayes', order=['sex']}", "leaves out 'age', 'job', 'town'"),
        ("fit", "learner=psgd", "trains on many releases of subsampled records"),
        ("plan", "learner=psgd", "trains on many releases of subsampled records"),
        ("fit", "learner={name='eb-map', scales=[1.0]}", "scales are those of one structure"),
        ("plan", "learner={name='eb-map', scales=[1.0]}", "scales are those of one structure"),
        ("plan", "learner={name='eb-map', base='nowhere.dpgm'}", "there is no file nowhere.dpgm"),
        ("release", "budget.epsilon=1e-7", "epsilon"),
    ],
)
def test_wrong_requests_write_nothing(chosen, refused, command, setting, words):
    before = sorted(chosen.parent.rglob("*"))
    assert words in refused(command, chosen, "--set", setting)
    assert sorted(chosen.parent.rglob("*")) == before


def test_a_graph_on_an_order(chosen, facts):
    """Planned, chosen alone, and learned as a network whose graph keeps to the order."""
    graph = ("--set", "structure.select={name='privbayes', parents=1, order=['town', 'job', 'age', 'sex']}")
    graph += ("--set", "learner=bayes-net", "--set", "budget.epsilon=10")
    planned = facts("plan", chosen, *graph)
    assert planned["directed"] and planned["candidates"] == 6
    assert ["sex", "age"] in facts("release", chosen, *graph)["structure"]
    model = dpgm.load_model(facts("fit", chosen, *graph)["model"])
    assert dpgm.Dag.of(model.structure).parents["sex"] == ("age",)
    assert dpgm.cpds(model, dpgm.Dag.of(model.structure))["sex"].sum(axis=0) == pytest.approx(1.0)


def test_plan_of_a_selection(chosen, dpgm_command, facts):
    """Where the budget goes, the noise of one-way tables, what it could find; the records are not there at all."""
    (chosen.parent / "visits.csv").unlink()
    before = sorted(chosen.parent.rglob("*"))
    assert dpgm_command("plan", chosen, "--records", "0")[0] == 2
    code, out, err = dpgm_command("plan", chosen, "--records", "400")
    assert code == 0 and "a total variation of" in out, err
    said = ("one-way tables: noise of standard deviation", "found with probability 0.9", "candidates: ", "spent on")
    assert all(words in out for words in said)
    shown = facts("plan", chosen)
    assert shown["selector"] == "mst" and shown["workload"]["order"] == 3 and shown["asked"] == {"epsilon": "1"}
    shares = [dpgm.Budget.parse(one) for one in shown["shares"].values()]
    assert abs(sum(float(one.epsilon) for one in shares) - 1) < 1e-6
    assert shown["deviation"] > 0 and shown["detectable"] > 0 and shown["candidates"] > 0
    assert shown["unmeasured"] == []
    few = ("plan", chosen, "--set", "workload.never=[['town']]")
    assert "not measured, so unknown to the model: town" in dpgm_command(*few)[1]
    assert facts(*few)["unmeasured"] == ["town"]
    assert sorted(chosen.parent.rglob("*")) == before


def test_a_check_an_order_and_targets_reach_the_session(chosen, facts):
    """The holdout is part of the budget, and nothing outside of the workload is measured."""
    shown = facts("fit", chosen, "--set", "holdout.share=0.1", "--set", "budget.epsilon=10")
    assert shown["structure_error"] is not None and shown["spent"] == {"epsilon": "10"}
    settings = ("--set", "workload={order=2, targets=['age']}", "--set", "budget.epsilon=10")
    assert all(len(clique) == 1 or "age" in clique for clique in facts("fit", chosen, *settings)["structure"])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("command", ["fit", "release", "plan"])
def test_runs_are_stamped(chosen, dpgm_command, command, facts):
    code, _, err = dpgm_command(command, chosen, "--set", "simulation.seed=1")
    assert code == 0 and "NOT PRIVATE" in err, err
    shown = facts(command, chosen, "--set", "total=public")
    assert shown["private"] is True and any("CONDITIONAL" in one for one in shown["conditions"])


@pytest.mark.parametrize("command", ["fit", "release"])
def test_a_failed_selector_leaves_what_was_paid_for(chosen, dpgm_command, monkeypatch, command, facts):
    """Exit 1, no traceback, the ledger is charged, and a last word that works as it is printed: dpgm learn FILE."""

    def fail(self, session, **more):
        session.measure([("sex",), ("age",)], session.budget)
        raise ZeroDivisionError("not my day")

    monkeypatch.setattr(type(dpgm.make("selector", "mst")), "select", fail)
    code, out, err = dpgm_command(command, chosen)
    assert (code, out) == (1, "") and "not my day" in err and "Traceback" not in err
    hint = next(line for line in err.splitlines() if "learn from it with: dpgm learn " in line)
    assert facts("learn", hint.split("dpgm learn ")[1])["structure"] == [["sex"], ["age"]]
    history = facts("ledger", "show", chosen.parent / "out/visits.ledger")
    assert [entry["status"] for entry in history["charges"]] == ["released"]


def test_votes_are_planned_selected_and_learned_from(chosen, dpgm_command, facts):
    """The plan shows their part, the selection's steps begin with them, and the release says both parts for ever."""
    text = chosen.read_text().replace('select = "mst"', 'select = { name = "mrf-stable", blocks = 9 }')
    chosen.write_text(text.replace("budget = { epsilon = 40 }", "budget = { epsilon = 40, delta = 1e-3 }"))
    budget = ["--set", "budget.epsilon=40", "--set", "budget.delta=1e-3"]
    shown = facts("plan", chosen, *budget)
    assert shown["shares"]["votes on the structure"] == {"epsilon": "20", "delta": "1/2000"}
    assert any("9 blocks vote" in note for note in shown["notes"])
    code, out, err = dpgm_command("plan", chosen, *budget)
    assert code == 0 and "votes on the structure" in out, err
    shown = facts("release", chosen, *budget)
    vote, measured = shown["trace"]
    assert vote["kind"] == "vote" and vote["stable"] and ["sex", "age"] in vote["cliques"]
    assert measured["kind"] == "measure" and ["sex", "age"] in measured["cliques"]
    assert shown["spent"] == {"epsilon": "40", "delta": "1/1000"}
    code, out, err = dpgm_command("learn", shown["release"])
    assert code == 0 and "for votes of records on the structure" in out, err


def test_votes_out_of_epsilon_alone_are_refused(chosen, refused):
    """Exit 2, before anything is charged, with who would do it."""
    for command in ("plan", "release", "fit"):
        line = refused(command, chosen, "--set", "structure={select='mrf-stable'}", "--set", "budget.epsilon=10")
        assert "needs an (epsilon, delta)" in line and "mrf-select" in line

"""What a run or an answer reports: stamps, doubts, and no planted value."""

import json
from pathlib import Path

import numpy as np
import pytest

import dpgm_core as dpgm
from app.tests.made import domain_of, uniform
from dpgm.cli import _COMMANDS
from dpgm.cli.show import print_chosen
from dpgm_core.curator.live import LiveCurator
from dpgm_core.privacy.descent import NodeGradients, Regressions
from dpgm_core.privacy.selection import TableDistance
from dpgm_core.releases.session import session_facts
from dpgm_core.sources import as_source
from dpgm_core.structure.workload import Workload

KINDS = {
    "plain": ({}, None),
    "seeded": ({"randomness": dpgm.SeededRandomness(1)}, "NOT PRIVATE (private = false)"),
    "unsafe": ({"mechanism": {"name": "laplace", "exact": False, "allow_unsafe": True}}, "UNSAFE: "),
    "public": ({"terms": dpgm.Terms(neighbours="add-remove", total="public")}, "CONDITIONAL ON PUBLIC N"),
}
SETTINGS = {
    "plain": (),
    "seeded": ("--set", "simulation.seed=1"),
    "unsafe": ("--set", "mechanism={name='laplace', exact=false, allow_unsafe=true}"),
    "public": ("--set", "total=public"),
}


@pytest.fixture(scope="module", params=KINDS)
def kind(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def made(kind, tmp_path_factory) -> Path:
    """A model of the kind, beside its release and a plain model."""
    folder = tmp_path_factory.mktemp(kind)
    structure = dpgm.Structure.chain(domain_of(sex="F M", age="young old"))
    codes = np.array([[0, 0], [1, 1], [1, 1], [0, 1]] * 50)
    for name, options in (("m", KINDS[kind][0]), ("plain", {})):
        terms = {"terms": dpgm.Terms(neighbours="add-remove"), "save_release": folder / f"{name}.release"} | options
        release = dpgm.release(codes, structure, dpgm.Budget.pure(5), **terms)
        dpgm.learn(release).model.save(folder / f"{name}.dpgm")
    return folder / "m.dpgm"


def assert_stamped(kind: str, path: Path, err: str) -> None:
    """One line on stderr that names the file and the caveat, or none."""
    lines = [line for line in err.splitlines() if any(words and words in line for _, words in KINDS.values())]
    assert len(lines) == (kind != "plain"), err
    for line in lines:
        assert line.startswith("dpgm: ") and path.name in line and KINDS[kind][1] in line


ANSWERS = {
    "describe": ["query", "m.dpgm"],
    "query": ["query", "m.dpgm", "sex", "--given", "age=old"],
    "map": ["query", "m.dpgm", "--map"],
    "intervals": ["query", "m.dpgm", "sex", "--intervals", "0.5", "--replicates", "2"],
    "analyse": ["analyse", "m.dpgm", "age ~ sex"],
    "sample": ["sample", "m.dpgm", "-n", "3", "-o", "s.csv"],
    "datasets": ["sample", "m.dpgm", "-n", "3", "-o", "s.parquet", "--datasets", "2"],
    "export": ["export", "m.dpgm", "--uai", "m.uai"],
    "compare": ["compare", "m.dpgm"],
    "other": ["compare", "plain.dpgm", "m.dpgm"],
    "learn": ["learn", "m.release", "-o", "again.dpgm"],
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("answer", ANSWERS)
def test_answers_are_stamped(kind, made, answer, dpgm_command, monkeypatch, ran):
    """In text one line on stderr; in JSON private, unsafe, conditions and guarantee, and stderr says nothing of it."""
    monkeypatch.chdir(made.parent)
    _, err = ran(*ANSWERS[answer])
    assert_stamped(kind, Path("again.dpgm") if answer == "learn" else made, err)
    code, out, err = dpgm_command(*ANSWERS[answer], "--json")
    shown_facts = json.loads(out)
    if "models" in shown_facts:
        shown_facts |= shown_facts["models"]["m.dpgm"]
    if "subjects" in shown_facts:
        shown_facts |= next(one for one in shown_facts["subjects"] if one["name"] == "m.dpgm")
    assert code == 0 and shown_facts["private"] is (kind != "seeded")
    assert bool(shown_facts["unsafe"]) is (kind == "unsafe")
    assert any("CONDITIONAL" in one for one in shown_facts["conditions"]) is (kind == "public")
    assert shown_facts["guarantee"] == dpgm.load_model(made).guarantee()
    assert_stamped("plain", made, err)


def test_completed_rows_are_never_private(kind, made, dpgm_command, monkeypatch, facts):
    """They are the user's own; what was filled in has the model's guarantee, and its caveats are said as elsewhere."""
    monkeypatch.chdir(made.parent)
    Path("rows.csv").write_text("sex,age\nF,\n,old\n")
    words = ("complete", "m.dpgm", "rows.csv", "-o", "full.csv")
    code, _, err = dpgm_command(*words)
    assert code == 0 and "NOT COVERED" in err
    assert_stamped(kind, made, err)
    shown_facts = facts(*words)
    assert shown_facts["private"] is False and shown_facts["guarantee"].startswith("NOT COVERED")
    assert shown_facts["guarantee"].endswith(dpgm.load_model(made).guarantee())
    assert json.loads(Path("full.csv.dpgm.json").read_text())["private"] is False


@pytest.mark.parametrize("answer", ["compare", "other"])
def test_compare_says_private_only_of_what_is(kind, made, answer, dpgm_command, monkeypatch, facts):
    monkeypatch.chdir(made.parent)
    sentence = dpgm_command(*ANSWERS[answer])[1].splitlines()[-1]
    assert facts(*ANSWERS[answer])["privacy"] == sentence
    assert sentence.startswith("post-processing of releases")
    assert ("private as they are" in sentence) is (kind == "plain")
    assert kind == "plain" or KINDS[kind][1] in sentence


def test_a_model_without_a_release_is_unknown(tmp_path, dpgm_command, facts):
    structure = dpgm.Structure.chain(dpgm.Domain.from_sizes({"a": 2, "b": 2}))
    path = tmp_path / "u.dpgm"
    other = path.with_name("v.dpgm")
    for file in (path, other):
        uniform(structure).save(file)
    for words in (("query", path, "a"), ("compare", path, other)):
        code, out, err = dpgm_command(*words)
        assert code == 0 and "nothing is known about the privacy" in err
        assert "private as they are" not in out
    assert facts("query", path, "a")["private"] is None


@pytest.mark.sampled(4)
@pytest.mark.parametrize("command", ["fit", "release", "plan"])
def test_runs_are_stamped(kind, spec, command, ran, facts):
    _, err = ran(command, spec, *SETTINGS[kind])
    assert_stamped(kind, spec.with_name("visits"), err)
    shown_facts = facts(command, spec, *SETTINGS[kind])
    assert shown_facts["private"] is (kind != "seeded")
    assert bool(shown_facts["unsafe"]) is (kind == "unsafe")
    assert any("CONDITIONAL" in one for one in shown_facts["conditions"]) is (kind == "public")


def test_no_command_was_forgotten():
    """A new command goes to those that answer from a release, which are tested above, or to those that do not."""
    answers = {words[0] for words in ANSWERS.values()} | {"fit", "release", "plan"}
    answers |= {"complete"}  # whose rows are their owner's
    others = {
        "infer",  # other people's models: nothing is known of where they come from
        "report",  # a page, each section of which is stamped (app/tests/report)
        "study",  # draws from a model; says what that model's stamp says (test_study.py)
        "init",  # reads public descriptions, and no release
        "validate", "ledger", "plugins", "new", "check",
    }  # fmt: skip
    assert answers | others == set(_COMMANDS) and not answers & others


def test_a_seed_is_stamped_everywhere(spec, ran):
    out, err = ran("fit", spec, "--json", "--set", "simulation.seed=1")
    assert "private = false" in err
    shown = json.loads(out)
    assert shown["private"] is False
    assert shown["guarantee"].startswith("NOT PRIVATE")
    assert dpgm.load_release(shown["release"]).private is False
    assert dpgm.load_model(shown["model"]).private is False


def test_planted_values_appear_nowhere(spec, dpgm_command, ran):
    secret = "PLANTED-9f"
    with (spec.parent / "visits.csv").open("a") as file:
        file.write(f'{secret},{secret}\n"{secret}\n{secret},1,2,3\n')
    out, err = ran("-v", "--debug", "fit", spec)
    (spec.parent / "visits.csv").write_bytes(b"\x1f\x8b" + secret.encode())
    code, more, errors = dpgm_command("-v", "--debug", "fit", spec)
    assert code == 2
    assert secret not in out + err + more + errors


def test_values_that_are_no_labels_are_noticed(spec, dpgm_command):
    """Nearly all records on the unknown label: said from the model alone, so it costs nothing."""
    text = (spec.parent / "domain.toml").read_text().replace('["F", "M"]', '["female", "male"]')
    (spec.parent / "domain.toml").write_text(text.replace('unknown = "F"', 'unknown = "female"'))
    (spec.parent / "visits.csv").write_text("sex,age\n" + "F,30\nM,50\nM,60\n" * 4000)
    code, _, err = dpgm_command("fit", spec)
    assert code == 0 and "nearly all of 'sex' is 'female'" in err


def test_what_only_tied_tables_hold_is_told(spec, dpgm_command, ran):
    """Its share in the model is by structure: the table is the sum over its cliques."""
    two = (
        "[attributes.job]\nlabels = ['y', 'n']\nunknown = 'y'\n[attributes.home]\nlabels = ['y', 'n']\nunknown = 'y'\n"
    )
    (spec.parent / "domain.toml").write_text((spec.parent / "domain.toml").read_text() + two)
    (spec.parent / "visits.csv").write_text("sex,age,job,home\n" + "F,30,y,n\nM,50,y,y\n" * 60)
    tied = ("--set", "structure={cliques=[['sex'], ['age']], tied=[[['job'], ['home']]]}")
    out, _ = ran("fit", spec, *tied)
    assert "by structure, as only tables shared with others hold them: job, home" in out
    assert "by structure" not in dpgm_command("fit", spec)[1]


def test_a_session_is_told_step_by_step(capsys):
    """What was chosen and measured, of how many, at what cost, and which labels were merged; all of it is released."""
    domain = domain_of(sex="F M", town="A B C D")
    singles, records = dpgm.Structure(domain, [("sex",), ("town",)]), as_source(np.array([[0, 0], [1, 1]] * 100))
    terms = {"terms": dpgm.Terms(neighbours="add-remove"), "randomness": dpgm.SeededRandomness(1)}
    curator = LiveCurator(records, singles, dpgm.make("mechanism", "laplace"), budget=dpgm.Budget.pure(4), **terms)
    with curator.session(workload=Workload.all(domain, order=2)) as session:
        session.measure([("sex",), ("town",)], dpgm.Budget.pure(1))
        coarse = session.coarsen({"town": [0, 1, 2, 2]})
        pair = dpgm.Structure(coarse, [("sex", "town")])
        session.select(TableDistance(candidates=pair, predicted=np.full(6, 33.0)), dpgm.Budget.pure(1))
        session.measure([("sex", "town")], dpgm.Budget.pure("1/2"))
        own = Regressions(candidates=pair, loss="softmax")
        session.descend(NodeGradients(regressions=own, weights=own.zeros(), radius=1), dpgm.Budget.pure("1/2"))
    shown_facts = session_facts(curator.released)
    assert [step["kind"] for step in shown_facts["trace"]] == ["measure", "select", "measure", "descend"]
    assert shown_facts["trace"][3]["candidates"] == 1 and shown_facts["trace"][3]["cliques"] in ([], [["sex", "town"]])
    assert shown_facts["trace"][1]["cliques"] == [["sex", "town"]] and shown_facts["trace"][1]["candidates"] == 1
    assert shown_facts["merges"] == {"town": [0, 1, 2, 2]}
    json.dumps(shown_facts)
    print_chosen(pair, curator.released, verbose=True, selector="mst", notes=["because"])
    out = capsys.readouterr().out
    assert "chosen:  1 clique by mst in 4 steps" in out and "sex x town" in out and "because" in out
    assert "town (4 as 3)" in out
    kinds = [line.split()[:2] for line in out.splitlines()[-4:]]
    assert kinds == [["1", "measure"], ["2", "select"], ["3", "measure"], ["4", "descend"]]
    assert session_facts([]) == {}

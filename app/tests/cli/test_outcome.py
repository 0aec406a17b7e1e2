"""What a run reports: stamps, doubts, and no planted value."""

import json

import numpy as np

import dpgm_core as dpgm
from app.tests.made import domain_of
from dpgm.cli.show import print_chosen
from dpgm_core.curator.live import LiveCurator
from dpgm_core.privacy.descent import NodeGradients, Regressions
from dpgm_core.privacy.selection import TableDistance
from dpgm_core.releases.session import session_facts
from dpgm_core.sources import as_source
from dpgm_core.structure.workload import Workload


def test_a_seed_is_stamped_everywhere(spec, ran):
    """stderr, JSON, guarantee, release file and model file."""
    out, err = ran("fit", spec, "--json", "--set", "simulation.seed=1")
    assert "private = false" in err
    shown = json.loads(out)
    assert shown["private"] is False
    assert shown["guarantee"].startswith("NOT PRIVATE")
    assert dpgm.load_release(shown["release"]).private is False
    assert dpgm.load_model(shown["model"]).private is False


def test_planted_values_appear_nowhere(spec, dpgm_command, ran):
    """-v and --debug included, whatever is in the file."""
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

"""`dpgm ledger`, and what its owner has to say."""

from dpgm_core.errors import Overspent
from dpgm_core.pipeline import run as pipeline


def test_ledgers(tmp_path, dpgm_command, refused, facts, spec):
    """What `create`, `show` and `validate` refuse writes nothing; a wrong column is found before a ledger is made."""
    path = tmp_path / "x.ledger"
    create = ("ledger", "create", path, "--name", "x", "--neighbours", "add-remove")
    assert "epsilon" in refused(*create)
    assert dpgm_command(*create, "--epsilon", "0.3")[0] == 0
    refused(*create, "--epsilon", "1")
    refused(*create[:2], tmp_path / "y", *create[3:], "--epsilon", "1", "--rho", "1")
    assert "remaining: epsilon = 0.3" in dpgm_command("ledger", "show", path)[1]
    assert facts("ledger", "show", path)["budget"] == {"epsilon": "3/10"}
    assert facts("ledger", "show", path)["charges"] == []
    refused("ledger", "show", tmp_path / "none")
    (tmp_path / "text").write_text("hello")
    refused("ledger", "show", tmp_path / "text")
    other = spec.parent / "other.json"
    other.write_text("{}")
    assert "only a note of dpgm validate is replaced there" in refused("validate", spec, "-o", other)
    assert other.read_text() == "{}"
    assert "visits.csv has no column 'nobody'; for the owner" in refused("fit", spec, "--set", "person=nobody")
    assert not (spec.parent / "out").exists()


def test_rows_per_person_need_the_column_of_the_key(tmp_path, dpgm_command, refused):
    """No run could state such terms, so nothing could ever be charged."""
    create = ("ledger", "create", tmp_path / "x", "--name", "x", "--neighbours", "add-remove", "--epsilon", "1")
    assert "rows_per_person = 3 needs a person key" in refused(*create, "--rows-per-person", "3")
    assert not (tmp_path / "x").exists()
    assert dpgm_command(*create, "--rows-per-person", "3", "--person", "id")[0] == 0


def test_the_owner_says_what_to_do_with_a_spent_ledger(spec, dpgm_command, refused, monkeypatch):
    """`when_spent` ends the refusal of a ledger that holds too little, and no other refusal."""
    words = ("fit", spec, "--set", "ledger.when_spent=ask the data board")
    assert dpgm_command(*words, "--set", "ledger.budget.epsilon=1.5")[0] == 0
    for command in ("fit", "release"):
        said = refused(command, *words[1:])
        assert "a ledger keeps the budget that it was created with, and not the spec's epsilon = 2.5; the" in said
        assert said.endswith(f"the spec says of {spec.parent / 'out/visits.ledger'}: ask the data board\n")
    assert "says of" not in refused("fit", spec)
    assert "data board" not in refused(*words, "--set", "learner=no-such-learner", "--set", "budget.epsilon=0.5")
    assert "when_spent" in refused("fit", spec, "--set", 'ledger.when_spent="a\\nb"')
    assert "when_spent" in refused("fit", spec, "--set", "ledger.when_spent=3")

    def greedy(*_, **__):
        raise Overspent("epsilon = 2 was asked, but only epsilon = 1 remains")

    monkeypatch.setattr(pipeline.Run, "fit", greedy)
    code, _, err = dpgm_command(*words, "--set", "ledger.path=out/other.ledger")
    assert code == 2 and "only epsilon = 1 remains" in err and "data board" not in err


def test_conditional_charges_are_marked(spec, dpgm_command, facts):
    """`show` says it of the total and of each charge, both in text and in JSON."""
    path = spec.parent / "out/visits.ledger"
    assert dpgm_command("fit", spec)[0] == 0
    assert "conditional" not in dpgm_command("ledger", "show", path)[1]
    assert dpgm_command("fit", spec, "--set", "total=public", "--set", "simulation.seed=7")[0] == 0
    _, shown, _ = dpgm_command("ledger", "show", path)
    assert "1 of 2 charge(s) are conditional: conditional on public N (1), the noise came from a seed" in shown
    assert "the total is no unconditional guarantee." in shown
    counted = facts("ledger", "show", path)["conditions"]
    assert counted == {"conditional on public N": 1, "the noise came from a seed, for simulation only": 1}
    first, second = facts("ledger", "show", path)["charges"]
    assert first["conditions"] == [] and second["conditions"] == list(counted)
    lines = dpgm_command("ledger", "show", path)[1].split("\n\n")[1].splitlines()
    assert lines[0].split()[:6] == ["entry", "when", "(UTC)", "cost", "state", "conditions"]
    assert " none" in lines[2] and "conditional on public N; the noise came from a seed" in lines[3]


def test_validate_notes_the_domain_whatever_it_finds(spec, dpgm_command, refused):
    """The same note for sound and for broken records; `fit` asks that it names the domain, and for nothing else."""
    note = spec.with_name("visits.validated.json")
    assert dpgm_command("validate", spec)[0] == 0
    sound = note.read_bytes()
    (spec.parent / "visits.csv").write_text("sex,age\nX,300\nbroken\n")
    code, out, err = dpgm_command("validate", spec)
    assert code == 1 and "2 (66.7 %) unknown" not in out and "sex: 1 (50 %) unknown, 0 (0 %) null" in out
    assert err == f"dpgm: noted in {note} which domain was looked at, and nothing of what was found\n"
    assert note.read_bytes() == sound
    code, out, _ = dpgm_command("fit", spec, "--validated", note)
    assert code == 0 and "a domain edited after looking at records is outside of this guarantee" in out
    (spec.parent / "domain.toml").write_text((spec.parent / "domain.toml").read_text().replace("40", "41"))
    before = (spec.parent / "out" / "visits.ledger").read_bytes()
    for command in ("fit", "release"):
        assert "names another domain than this run has" in refused(command, spec, "--validated", note)
    assert "names another domain" in refused("fit", spec, "--set", "validated=visits.validated.json")
    assert (spec.parent / "out" / "visits.ledger").read_bytes() == before
    assert dpgm_command("validate", spec, "--set", "validated=visits.validated.json")[0] == 1
    assert dpgm_command("fit", spec, "--set", "validated=visits.validated.json")[0] == 0


def test_a_ledger_that_adds_squares_of_mu(tmp_path, dpgm_command, refused, facts, spec):
    """It shows epsilon spent and left at its delta, and charges a run of (epsilon, delta) its mu."""
    path = tmp_path / "x.ledger"
    create = ("ledger", "create", path, "--name", "x", "--neighbours", "add-remove")
    whole = ("--epsilon", "1", "--delta", "1e-6")
    said = dpgm_command(*create, *whole, "--account", "gaussian", "--other", "0.2", "1e-7")[1]
    assert said.endswith("(epsilon, delta) = (1, 1e-06) under add-remove, adding squares of mu\n")
    _, shown, _ = dpgm_command("ledger", "show", path)
    assert "or one release of (epsilon, delta) = (0.79999" in shown and "Gaussian account: squares of mu add" in shown
    assert "such as labels, come to (epsilon, delta) = (0, 0) of (epsilon, delta) = (0.2, 1e-07)" in shown
    plain = facts("ledger", "show", path)
    assert plain["account"] == "gaussian" and plain["other"] == {"epsilon": "1/5", "delta": "1/10000000"}
    for words, match in (
        (("--rho", "1", "--account", "gaussian"), "zCDP does not imply GDP"),
        (("--mu", "1", "--account", "concentrated"), "account = 'gaussian'"),
        ((*whole, "--other", "0.2", "1e-7"), "account = 'gaussian'"),
    ):
        assert match in refused(*create[:2], tmp_path / "y", *create[3:], *words)
    runs = ("fit", spec, "--set", "budget={epsilon=0.5, delta=1e-6}", "--set", "mechanism=gaussian")
    kept = ("--set", 'ledger={path="out/mu.ledger", budget={epsilon=1, delta=1e-6}, create=true, account="gaussian"}')
    assert "Differential privacy with mu = ~0.12" in dpgm_command(*runs, *kept)[1]
    assert dpgm_command(*runs, *kept)[0] == dpgm_command(*runs, *kept)[0] == 0
    assert "GDP) is spent and only mu = " in refused(*runs, *kept)
    charges = facts("ledger", "show", spec.parent / "out/mu.ledger")
    assert [list(one["cost"]) for one in charges["charges"]] == [["mu_squared"]] * 3
    assert float(charges["spent_in_all"]["epsilon"].split("/")[0]) > 0
    assert "one of concentrated, gaussian" in refused(*runs, "--set", "ledger.account=exact")
    under_mu = ("fit", spec, "--set", "budget={mu=0.3}", "--set", "mechanism=gaussian", "--set", "ledger.budget={mu=1}")
    assert dpgm_command(*under_mu, "--set", "ledger.path=out/own.ledger")[0] == 0
    assert "zCDP does not imply GDP" in refused(*runs[:2], "--set", "budget={rho=0.1}", *kept)

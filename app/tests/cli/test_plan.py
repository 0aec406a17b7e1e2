"""`dpgm plan`: needs no data, writes nothing, refuses what a fit would."""

import pytest
from attrs import frozen

from app.tests.made import files
from dpgm_core import Dag, Structure
from tests.partitioned import Partitioned


def test_plan_needs_no_data_and_writes_nothing(spec, ran, facts):
    """The data file may be absent; text and JSON agree."""
    (spec.parent / "visits.csv").unlink()
    before = files(spec.parent)
    assert "forecast" not in ran("plan", spec)[0]
    out, _ = ran("plan", spec, "--records", "1000")
    assert "forecast: in 9 of 10 cases shares of columns are right to about" in out
    assert "noise scale 1 records" in out
    assert facts("plan", spec, "--records", "1000")["scale"] == 1.0
    assert files(spec.parent) == before


def test_plan_refuses_what_fit_would(spec, refused):
    """All pairs of 200 attributes: TooLarge with sizes, at once. A plan of a run that cannot be made is no plan."""
    for setting, words in (("learner.tolerance=nan", "tolerance"), ("learner=nobody", "nobody"), ("total=-5", "total")):
        assert words in refused("plan", spec, "--set", setting)
    domain = "".join(f"[attributes.x{i}]\nsize = 10\n" for i in range(200))
    (spec.parent / "domain.toml").write_text(domain)
    assert "treewidth 199" in refused("plan", spec, "--set", "structure.graph=complete")


def test_plan_lists_what_would_not_be_measured(spec, dpgm_command, facts):
    """In text and JSON; fit, release and learn list it again, and nothing is said where all is measured."""
    assert "not measured" not in dpgm_command("plan", spec)[1]
    alone = (spec, "--set", "structure={cliques=[['sex']]}")
    assert "not measured, so unknown to the model: age" in dpgm_command("plan", *alone)[1]
    assert facts("plan", *alone)["unmeasured"] == ["age"]
    for command in ("release", "fit"):
        code, out, err = dpgm_command(command, *alone)
        assert code == 0 and "not measured, so unknown to the model: age" in out, err
    learn = ("learn", spec.parent / "out" / "visits.release.dpgm", "-o", spec.with_name("again.dpgm"))
    assert "not measured, so unknown to the model: age" in dpgm_command(*learn)[1]
    assert facts(*learn)["unmeasured"] == ["age"]
    free = ("--set", "ledger={path='out/free.ledger',budget={epsilon=9},create=true}")
    for command in ("release", "fit"):
        assert facts(command, *alone, *free)["unmeasured"] == ["age"]


@frozen(kw_only=True)
class Largest:
    """A learner of directed graphs that measures the largest families alone, and asks no engine."""

    def check(self, structure, inference):
        Dag.of(structure)

    def learn(self, curator, inference, *, randomness, progress):
        raise NotImplementedError

    def planned_tables(self, structure):
        return Structure(structure.domain, Dag.of(structure).maximal), "optimal"


def test_plan_shows_the_tables_of_the_learner(registered, spec, dpgm_command, refused, ran, facts):
    """Its tables, records per row and the rows that noise leaves unknown; its refusal is the plan's."""
    registered("largest", Largest)
    network = (spec, "--set", "learner=largest", "--set", "structure={parents={age=['sex']}}")
    out, err = ran("plan", *network, "--records", "2")
    assert "measured for the learner: 1 tables instead of 2" in out
    assert "records per row" in out and out.split("age x sex")[1].split()[-1] == "1"
    assert "3 of the 3 rows of conditional tables have fewer records" in err
    told = facts("plan", *network, "--records", "6000")
    assert [(one["clique"], one["records_per_row"]) for one in told["tables"]] == [(["age", "sex"], 3000.0)]
    assert "records per row" not in dpgm_command("plan", spec, "--records", "6")[1]
    assert "no directed graph" in refused("plan", spec, "--set", "learner=largest")


def test_plan_shows_products_where_they_are_measured(spec, dpgm_command, refused):
    """In their own words, with what they are worth beside tables; what has none, or none worth it, is refused."""
    pairs = [domain_of_two(spec), "--set", "structure={cliques=[['a', 'b'], ['c', 'd']]}", "--set", "split=contrasts"]
    code, out, err = dpgm_command("plan", *pairs, "--set", "budget={rho=0.1}", "--set", "mechanism=gaussian")
    assert code == 0 and "records per sum" in out and "7 sums of products, one for each set" in out
    assert "at most 0.875 times the noise variance that tables would give it" in err
    assert "3.06 times the noise variance" in refused("plan", *pairs, "--set", "budget={epsilon=0.01}")
    assert "learner naive-mle learns from tables" in refused("plan", *pairs, "--set", "learner=naive-mle")
    assert "'a' has 3" in refused("plan", domain_of_two(spec, 3), *pairs[1:])


def domain_of_two(spec, labels=2):
    """The same spec over four attributes of so many labels."""
    domain = "".join(f"[attributes.{name}]\nsize = {labels}\nunknown = 0\n" for name in "abcd")
    (spec.parent / "domain.toml").write_text(domain)
    return spec


def test_plan_says_how_many_passes_an_engine_will_take(spec, dpgm_command, monkeypatch, facts):
    """Of records that are summed where they are, with cliques and with a selector; the source is not read."""
    source = Partitioned(table=None)
    monkeypatch.setattr("dpgm_core.sources.related.as_source", lambda data: source)
    for more, words in (((), "in one pass"), (("--set", "structure={select='mst'}"), "before anything is charged")):
        told = dpgm_command("plan", spec, *more)
        assert "source Partitioned sums where its rows are:" in told[2] and words in told[2], told
        notes = facts("plan", spec, *more)["notes"]
        assert any(words in note for note in notes)
    assert not source.log


def test_plan_says_the_most_that_a_learner_may_take_behind_a_selector(spec, dpgm_command, facts):
    select = ("--set", "structure={select='mst'}")
    assert "learner: up to about" in dpgm_command("plan", spec, *select)[1]
    shown_facts = facts("plan", spec, *select)
    assert shown_facts["order"] == 2 and shown_facts["learner_memory"] > 2**27 and shown_facts["learner_seconds"] > 0


def test_plan_and_fit_say_which_bins_are_not_even(spec, dpgm_command, facts):
    """In text and JSON, with named cliques and with a selector; nothing is said without such bins, or of even ones."""
    assert "times as wide" not in "".join(map(str, dpgm_command("plan", spec)))
    for shape, said in (("fitted", True), ("uniform", False)):
        bins = f'[attributes.sex]\nlabels = ["F", "M"]\n[attributes.age]\nbins = [0, 1, 99]\nshape = "{shape}"\n'
        (spec.parent / "domain.toml").write_text(bins)
        select = ("--set", "structure={select='mst'}", "--set", "budget={rho=0.5}", "--set", "ledger.budget={rho=9}")
        for words in (("plan", spec), ("plan", spec, *select), ("fit", spec)):
            code, out, err = dpgm_command(*words)
            assert code == 0 and ("as wide as a neighbour: 'age' ([1, 99])" in out + err) == said, err
        assert ("'age'" in str(facts("plan", spec)["notes"])) == said
    free = ("--set", "ledger={path='out/free.ledger',budget={epsilon=9},create=true}")
    (spec.parent / "domain.toml").write_text(bins.replace("uniform", "fitted"))
    assert "'age'" in str(facts("fit", spec, *free)["notes"])


@pytest.mark.parametrize(
    ("settings", "bound"),
    [
        ((), "2 epsilon"),
        (("--set", "mechanism=gaussian", "--set", "budget={rho=0.5}", "--set", "ledger.budget={rho=9}"), "2 rho"),
        (
            ("--set", "structure={select='mst'}", "--set", "budget={rho=0.5}", "--set", "ledger.budget={rho=9}"),
            "4 rho",
        ),
    ],
    ids=["pure", "tables", "a selector"],
)
def test_plan_says_what_an_exchange_costs_of_what_it_plans(spec, dpgm_command, facts, settings, bound):
    """With a public number of records, by the kind of the budget, and less where tables alone are released."""
    words = ("plan", spec, "--set", "total=public", *settings)
    assert f"the loss is at most {bound})" in dpgm_command(*words)[2]
    assert facts(*words)["conditions"][0].endswith(f"the loss is at most {bound})")


SCORES = """
name = "scores"
data = "scores.csv"
neighbours = "add-remove"
unit = "one pupil"
budget = { epsilon = 4 }
structure = { selector = "mst" }
[domain.attributes]
maths = { type = "integer", min = 0, max = 15 }
physics = { type = "integer", min = 0, max = 15 }
school = { labels = ["north", "south"] }
"""


def test_pairs_too_large_to_measure_are_named_before_and_after(tmp_path, ran):
    """By the plan, the notes of the fit and its verdict, which is not green."""
    spec = tmp_path / "scores.toml"
    spec.write_text(SCORES)
    rows = [
        f"{number % 16},{(number % 16 + number // 999) % 16},{'south' if number % 16 > 9 else 'north'}\n"
        for number in range(4000)
    ]
    (tmp_path / "scores.csv").write_text("maths,physics,school\n" + "".join(rows))
    limited = ("--set", "workload.max_cells=200", "--set", 'structure.selector={name="mst", merge=false}')
    note = "pairs left out for more than max_cells = 200 cells: 1 of 3 (maths x physics); max_cells = 290 admits all"
    assert note in ran("plan", spec, *limited)[1]
    out, _ = ran("fit", spec, *limited)
    assert note in out and "verdict: amber" in out and "more than max_cells cells: maths and physics" in out
    note = "pairs measured only if merging leaves at most max_cells = 200 cells: 1 of 3 (maths x physics)"
    assert note in ran("plan", spec, *limited[:2])[1]

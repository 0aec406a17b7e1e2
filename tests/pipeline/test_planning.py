"""What a run would spend, measure, see and refuse, told before any record is read."""

import math
import time
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpgm_core as dpgm
from dpgm_core import (
    Budget,
    ClippedScore,
    Contributions,
    Dag,
    DataError,
    Domain,
    Structure,
    StructureError,
    Terms,
    TooLarge,
    plan,
    plan_selection,
)
from dpgm_core.pipeline.planning import describe_release_passes, describe_session_passes
from dpgm_core.pipeline.run import Run
from dpgm_core.sources import as_source
from dpgm_core.structure.workload import Workload
from tests.fixtures import Unchecked, dry_run
from tests.partitioned import Partitioned
from tests.private_columns import private_bins

DOMAIN = Domain.from_sizes({"a": 3, "b": 2})
STRUCTURE = Structure(DOMAIN, [("a", "b")])


def test_plan_says_what_proposition_4_says():
    """MSE = mu (1 - mu) / N + 2 (L1/eps)^2 / N^2 at the average cell, with the discrete noise's own variance."""
    planned = dpgm.plan(STRUCTURE, Budget.pure("0.1"), neighbours="replace-one", records=1000)
    assert (planned.sensitivity.l1, planned.scale, planned.cost) == (2, 20.0, Budget.pure("0.1"))
    [table] = planned.tables
    assert table.noise == pytest.approx(20 * 2**0.5, rel=1e-3)
    assert table.relative == pytest.approx((1 / 6 * 5 / 6 / 1000 + 2 * 20**2 / 1000**2) ** 0.5, rel=1e-3)
    for wrong in (0, float("nan"), float("inf"), True, "many"):
        with pytest.raises(dpgm.BudgetError):
            dpgm.plan(STRUCTURE, Budget.pure(1), neighbours="add-remove", records=wrong)


HALVES = [2.5, Fraction(5, 2), Decimal("2.5"), "2"]
WRONG = [*HALVES, b"2", None, True, math.nan, math.inf, -1, 0, 1e308, 10**400, 2j, [2], {}]


def refused(ask):
    """Each wrong number is an error of dpgm in one line."""
    for wrong in WRONG:
        try:
            ask(wrong)
        except dpgm.DpgmError as error:
            assert "\n" not in str(error)
            continue
        yield wrong


@pytest.mark.parametrize("contributions", [None, Contributions(per="clique"), Contributions(per="group")])
def test_rows_are_whole(contributions):
    """A fractional `rows_per_person`, with contributions or without, wherever it is said: no plan."""

    def plan(rows):
        terms = Terms(neighbours="add-remove", person="id", rows_per_person=rows, contributions=contributions)
        dpgm.plan(STRUCTURE, Budget.pure(1), terms=terms)

    assert list(refused(plan)) == []
    if contributions is not None:
        assert list(refused(lambda rows: contributions.check(STRUCTURE, rows))) == []


@pytest.mark.parametrize(
    ("ask", "taken"),
    [
        (lambda one: dpgm.plan(STRUCTURE, Budget.pure(1), neighbours="add-remove", records=one), [2.5, None]),
        (lambda one: dpgm.plan(one, Budget.pure(1), neighbours="add-remove"), []),
        (lambda one: dpgm.plan(STRUCTURE, one, neighbours="add-remove"), []),
        (lambda one: dpgm.plan(STRUCTURE, Budget.pure(1), terms=one), []),
        (lambda one: Terms(neighbours="add-remove", total=one), [2.5]),
        (lambda one: Contributions(per="clique", grid=one), []),
        (lambda one: ClippedScore(norm=one, grid=4), HALVES),
        (lambda one: ClippedScore(norm=1, grid=one), []),
        (lambda one: dpgm.optimal_split(one, Budget.pure(1)), []),
        (lambda one: dpgm.optimal_split(STRUCTURE, Budget.pure(1), one), [None, {}]),
        (lambda one: dpgm.optimal_split(STRUCTURE, Budget.pure(1), {("a", "b"): one}), HALVES),
    ],
    ids=["records", "structure", "budget", "terms", "total", "grid", "norm", "clip grid", "split", "weights", "weight"],
)
def test_numbers_are_taken_or_refused_in_words(ask, taken):
    """Fractions, texts, NaN, bools and what no double holds: numbers where numbers are meant, else an error of ours."""
    assert list(refused(ask)) == taken


class Largest:
    """A learner of directed graphs that measures the largest families alone; `fits`: what its engine must hold."""

    def __init__(self, split="optimal", fits=True):
        self.split, self.fits = split, fits

    def check(self, structure, inference):
        Dag.of(structure)
        if self.fits:
            inference.compile(structure)

    def learn(self, curator, inference, *, randomness, progress):
        raise NotImplementedError

    def planned_tables(self, structure):
        return Structure(structure.domain, Dag.of(structure).maximal), self.split


NETWORK = Dag(Domain.from_sizes({"a": 2, "b": 3, "c": 4, "d": 2}), {"c": ["a", "b"], "d": ["b"]})


def test_a_plan_shows_what_the_learner_will_measure():
    """Tables, noise and cost are those of a release that it will ask for; the model's structure stays."""
    structure, budget = NETWORK.structure(), Budget.pure(1)
    planned = dpgm.plan(structure, budget, neighbours="add-remove", learner=Largest())
    assert [table.clique for table in planned.tables] == [("c", "a", "b"), ("d", "b")]
    laplace, records = dpgm.make("mechanism", "laplace"), as_source(np.zeros((10, 4), int))
    terms = {"terms": Terms(neighbours="add-remove"), "randomness": dpgm.SeededRandomness(1)}
    curator = dpgm.LiveCurator(records, structure, laplace, budget=budget, **terms)
    release = curator.release(cliques=NETWORK.maximal, split="optimal")
    assert [table.noise**2 for table in planned.tables] == pytest.approx(list(release.variances))
    assert planned.cost == release.cost and planned.sensitivity.l1 == 2
    assert planned.structure == structure.describe()
    even = dpgm.plan(structure, budget, neighbours="add-remove", learner=Largest("even")).tables
    assert even[0].noise == even[1].noise > planned.tables[0].noise
    as_told = dpgm.plan(structure, budget, neighbours="add-remove", learner=Largest(None), split="optimal")
    assert as_told.tables == planned.tables
    assert len(dpgm.plan(structure, budget, neighbours="add-remove", learner="naive-mle").tables) == 4


def test_records_per_row_and_the_rows_that_noise_leaves_unknown():
    """N / parents' states; a row is unknown where its mean count is below the noise of that count."""
    asked = {"neighbours": "add-remove", "learner": Largest("even")}
    planned = dpgm.plan(NETWORK.structure(), Budget.pure(1), records=60, **asked)
    assert [table.records_per_row for table in planned.tables] == [10.0, 20.0]
    assert planned.notes == () and planned.to_dict()["tables"][0]["records_per_row"] == 10.0
    # Noise of variance about 8: a row of c sums 4 cells, its sd is 5.6; one of d 2 cells, 4; a, b all of a table.
    few = dpgm.plan(NETWORK.structure(), Budget.pure(1), records=30, **asked)
    assert "6 of the 11 rows" in few.notes[0]  # 5 records in a row of c, 10 in one of d
    none = dpgm.plan(NETWORK.structure(), Budget.pure(1), **asked)
    assert none.notes == () and {table.records_per_row for table in none.tables} == {None}
    plain = dpgm.plan(NETWORK.structure(), Budget.pure(1), records=30, neighbours="add-remove")
    assert plain.notes == () and {table.records_per_row for table in plain.tables} == {None}


def test_a_plan_refuses_what_the_learner_refuses():
    """And nothing else: what it learns without an engine is planned without one."""
    chain, ask = Structure.chain(NETWORK.domain), {"neighbours": "add-remove"}
    with pytest.raises(StructureError, match="no directed graph"):
        dpgm.plan(chain, Budget.pure(1), learner=Largest(), **ask)
    names = [f"x{i}" for i in range(60)]
    parents = {two: names[max(0, at - 40) : at][::13] for at, two in enumerate(names)} | {"x59": names[:3]}
    wide = Dag(Domain.from_sizes(dict.fromkeys(names, 10)), parents).structure()
    with pytest.raises(TooLarge):
        dpgm.plan(wide, Budget.pure(1), learner=Largest(), **ask)
    planned = dpgm.plan(wide, Budget.pure(1), learner=Largest(fits=False), **ask)
    assert planned.seconds_per_inference is planned.inference_cost is None
    with pytest.raises(TooLarge):
        dpgm.plan(wide, Budget.pure(1), **ask)


def test_pairs_to_check_are_those_that_no_family_holds():
    """Of the model's structure, whatever is measured; what is left of the budget is the learner's."""
    asked = {"neighbours": "add-remove", "learner": Largest(), "split": {"tables": "even", "holdout": "0.1"}}
    planned = dpgm.plan(NETWORK.structure(), Budget.pure(1), **asked)
    assert "2 of the 2 pairs that no clique holds" in planned.notes[0]  # a and d, c and d
    bare = dpgm.plan(NETWORK.structure(), Budget.pure("0.9"), neighbours="add-remove", learner=Largest())
    assert planned.tables == bare.tables and planned.cost == Budget.pure(1)


def test_a_column_that_a_map_tells_is_not_said_to_be_unmeasured():
    """A model knows it as it knows the column that tells it; where that is in no table either, it does not."""
    columns = {name: {"size": 2, "unknown": 0} for name in ("fine", "coarse", "other")}
    rules = {"x": {"columns": ["fine", "coarse"], "map": {"0": "0", "1": "1"}}}
    domain = dpgm.Domain.from_dict({"attributes": columns, "constraints": rules})
    for cliques, unmeasured in (([("fine",)], ("other",)), ([("other",)], ("fine", "coarse"))):
        planned = dpgm.plan(dpgm.Structure(domain, cliques), dpgm.Budget.pure(1), neighbours="add-remove")
        assert planned.unmeasured == unmeasured


TERMS = Terms(neighbours="add-remove")
NAMES = [f"x{number}" for number in range(100)]
SOURCE = Partitioned(table=None)


def wide_workload(size, order, count=100):
    domain = Domain.from_sizes(dict.fromkeys(NAMES[:count], size))
    return Workload.all(domain, order=order)


def test_a_release_says_passes_tables_and_bytes():
    """Claim: as many passes as counting will take; nothing of a source that is read here."""
    structure = Structure(Domain.from_sizes({"a": 2, "b": 3}), [("a", "b"), ("b",)])
    (told,) = plan(structure, Budget.pure(1), terms=TERMS, data=SOURCE).notes
    assert told == "source Partitioned sums where its rows are: 2 tables (72 B) in one pass"
    assert not plan(structure, Budget.pure(1), terms=TERMS, data="visits.csv").notes
    large = Structure(Domain.from_sizes({"a": 3000, "b": 3000, "c": 2}), [("a", "b"), ("c",)])
    (told,) = describe_release_passes(SOURCE, large, TERMS)
    assert told.endswith("2 tables (68.7 MiB) in 2 passes, of at most 68.7 MiB each")
    weights = Contributions(per="clique", grid=2)
    shares = Terms(neighbours="add-remove", person="id", rows_per_person=2, contributions=weights)
    assert describe_release_passes(SOURCE, structure, shares)[0].endswith("2 tables (72 B) in one pass")


def test_a_session_says_what_is_counted_before_the_charge(monkeypatch):
    """Claim: all candidates where they fit, else so many of them; private bins come first."""
    (told,) = describe_session_passes(SOURCE, wide_workload(2, 2))
    said = (
        "source Partitioned sums where its rows are: 5,050 tables (156.2 KiB) in one pass, before anything is charged"
    )
    assert told == said
    binned = Domain([private_bins("age", 8), *Domain.from_sizes({"a": 2}).attributes])
    (told,) = describe_session_passes(SOURCE, Workload.all(binned))
    assert told.endswith(", once the bins of age are found")
    monkeypatch.setattr("dpgm_core.curator.records._MAX_AHEAD_BYTES", 1000)
    (told,) = describe_session_passes(SOURCE, wide_workload(10, 2, 3))
    assert told.endswith(
        "3 tables (240 B) in one pass; 3 tables (2.3 KiB) more do not fit beside them and are counted "
        "when a step asks for them"
    )


def test_selections_say_it_among_their_notes():
    """Claim: in `plan_selection`, for the workload."""
    told = plan_selection("aim", Budget.zcdp(1), wide_workload(2, 2, 5), terms=TERMS, data=SOURCE).notes
    assert "15 tables (400 B) in one pass" in told[-1]
    alone = plan_selection("aim", Budget.zcdp(1), wide_workload(2, 2, 5), terms=TERMS)
    assert not any("sums where" in one for one in alone.notes)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("size", "order", "count"), [(10, 2, 100), (10, 3, 50)])
def test_wide_jobs_are_planned_fast(size, order, count):
    """Claim: 4,950 pairs and 20,000 triples in less than 5 seconds of this process; measured at 0.1 and 0.4."""
    workload = wide_workload(size, order, count)
    began = time.process_time()
    describe_session_passes(SOURCE, workload)
    assert time.process_time() - began < 5


def test_the_check_asks_for_batches_and_takes_none(tmp_path):
    """What a release would refuse by names and types alone is refused before it, in the same words; no row is read."""
    structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    tables = {
        "names": pa.table({"a": [0], "x": [1]}),
        "labels": pa.table({"a": pa.array([[0]]), "b": [1]}),
        "keys": pa.table({"a": [0], "b": [1], "id": [1.0]}),
        "fine": pa.table({"a": [0], "b": [1], "id": [1]}),
    }
    for name, table in tables.items():
        path = tmp_path / f"{name}.parquet"
        pq.write_table(table, path)
        terms = Terms(neighbours="add-remove", person="id" if "id" in table.column_names else None)
        said = []
        for call in (dry_run, dpgm.release):
            try:
                call(path, structure, Budget.pure(1), terms=terms)
                said.append("")
            except DataError as error:
                said.append(str(error))
        assert said[0] == said[1] and bool(said[0]) == (name != "fine"), name

    class Yields:
        def batches(self, domain, columns):
            raise AssertionError("it was read")
            yield

    Run(Yields(), structure, Budget.pure(1), terms=TERMS).check()
    with pytest.raises(DataError, match="cannot read a person key"):
        Run(Yields(), structure, Budget.pure(1), terms=Terms(neighbours="add-remove", person="id")).check()


def test_a_folder_is_looked_at_before_the_charge(tmp_path):
    """A file of it that lacks a column refuses the run; folders and patterns that are there are found."""
    structure, terms = Structure(Domain.from_sizes({"a": 2}), [("a",)]), Terms(neighbours="add-remove")
    folder = tmp_path / "t"
    for name, column in (("1.parquet", "a"), ("2.parquet", "b")):
        folder.mkdir(exist_ok=True)
        pq.write_table(pa.table({column: [0, 1]}), folder / name)
    ledger = dpgm.Ledger.create(tmp_path / "l", name="x", budget=Budget.pure(1), neighbours="add-remove")
    for call in (dry_run, dpgm.release):
        with pytest.raises(DataError, match=r"t/2\.parquet has no column 'a'"):
            call(folder, structure, Budget.pure(1), terms=terms, **({"ledger": ledger} if call is dpgm.release else {}))
    assert ledger.remaining() == Budget.pure(1)
    Run(folder / "1*.parquet", structure, Budget.pure(1), terms=terms).check()
    with pytest.raises(DataError, match="holds no Parquet file"):
        Run(folder / "3*.parquet", structure, Budget.pure(1), terms=terms).check()
    with pytest.raises(DataError, match="there is no data file"):
        Run(folder / "3.parquet", structure, Budget.pure(1), terms=terms).check()


class InTwo(Unchecked):
    """A learner of two releases, that takes pure budgets alone and foresees nothing."""

    def learn(self, curator, inference, *, randomness, progress):
        if curator.budget.kind != "pure":
            raise dpgm.BudgetError("two releases take a pure budget")
        curator.release(budget=curator.remaining * Fraction(1, 10))


def test_a_plan_says_where_the_learner_does_otherwise_and_refuses_what_it_refuses_of_a_budget():
    """`check` is told of no budget, so the learner is asked to learn, from a curator that gives nothing."""
    asked = {"mechanism": "gaussian", "neighbours": "add-remove", "learner": InTwo()}
    told = dpgm.plan(STRUCTURE, Budget.pure(1), neighbours="add-remove", learner=InTwo())
    assert "a first look" in told.notes[0] and told.tables[0].noise > 0
    for kind in (Budget.zcdp(1), Budget.approx(1, "1e-6")):
        with pytest.raises(dpgm.BudgetError, match="take a pure budget"):
            dpgm.plan(STRUCTURE, kind, **asked)
        with pytest.raises(dpgm.BudgetError, match="take a pure budget"):
            dry_run(np.zeros((5, 2), int), STRUCTURE, kind, "gaussian", InTwo(), terms=TERMS)
    assert dpgm.plan(STRUCTURE, Budget.pure(1), neighbours="add-remove", learner="naive-mle").notes == ()

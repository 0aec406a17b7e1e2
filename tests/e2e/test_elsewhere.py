"""Whole fits of records that are summed where they are: the model of records held here, or a refusal by name."""

import numpy as np
import pyarrow as pa
import pytest

from dpgm_core import (
    Budget,
    DataError,
    Domain,
    LearningFailed,
    Ledger,
    SeededRandomness,
    Structure,
    Terms,
    fit,
    learn,
    load_release,
    release,
    select,
)
from dpgm_core.pipeline.run import Run
from dpgm_core.structure.workload import Workload
from tests.partitioned import Partitioned
from tests.private_columns import private_bins, private_labels

DOMAIN = Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 2})
RNG = np.random.default_rng(0)
CHAIN = RNG.integers(0, 2, 400)
TABLE = pa.table(
    {
        "a": CHAIN,
        "b": (CHAIN + RNG.integers(0, 2, 400)) % 3,
        "c": np.where(RNG.random(400) < 0.9, CHAIN, 1 - CHAIN),
        "d": RNG.integers(0, 2, 400),
        "age": RNG.integers(0, 100, 400),
        "id": RNG.integers(0, 120, 400),
    }
)
BINARY = Domain.from_sizes(dict.fromkeys("acd", 2))
PAIRS = Workload.all(DOMAIN, order=2)
CLIQUES = Structure(DOMAIN, [("a", "b"), ("b", "c"), ("d",)])
BINNED = Structure(Domain([private_bins("age", 4), *DOMAIN.attributes]), [("age", "a"), ("b", "c")])
TERMS = Terms(neighbours="add-remove")
#: What is fitted: a structure or a selector, its budget, the learner, and what it is wanted for.
FITS = {
    "cliques": (CLIQUES, Budget.pure(2), "eb-map", None),
    "aim": ("aim", Budget.zcdp("1/2"), "eb-map", PAIRS),
    "mst": ("mst", Budget.approx(2, "1e-6"), "eb-map", PAIRS),
    "oneshot": ("oneshot", Budget.approx(2, "1e-6"), "eb-map", PAIRS),
    "auto": ("auto", Budget.zcdp("1/2"), "eb-map", PAIRS),
    "descents": (Structure.complete(BINARY), Budget.zcdp("1/2"), {"name": "mrf-fw", "width": 2}, None),
    "private bins": (BINNED, Budget.zcdp("1/2"), "eb-map", None),
}


def fitted(data, name, **more):
    structure, budget, learner, workload = FITS[name]
    settings = {"terms": TERMS, "randomness": SeededRandomness(7), "workload": workload} | more
    return fit(data, structure, budget, learner=learner, **settings)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FITS)
def test_a_fit_is_that_of_records_held_here(name):
    """The model is the same, bit for bit; `check` passes and sums nothing, and the source is closed."""
    structure, budget, learner, workload = FITS[name]
    source = Partitioned(table=TABLE, parts=4)
    Run(source, structure, budget, learner=learner, workload=workload, terms=TERMS).check()
    assert source.log == ["enter", "exit"]
    here, there = fitted(TABLE, name), fitted(source, name)
    assert here.model.structure == there.model.structure
    assert here.model.potentials.values.tolist() == there.model.potentials.values.tolist()
    tables = [[one.tables.values.tolist() for one in fit.releases] for fit in (here, there)]
    assert tables[0] == tables[1]
    assert source.log.count("enter") == source.log.count("exit") == 2  # of check, and of fit


def test_release_and_select_too():
    """Claim: the verbs that learn nothing take such a source as well, by persons too."""
    terms = Terms(neighbours="replace-one", person="id", rows_per_person=3)
    found = []
    for data in (TABLE, Partitioned(table=TABLE)):
        more = {"terms": terms, "randomness": SeededRandomness(7)}
        one = release(data, CLIQUES, Budget.zcdp(1), "gaussian", **more)
        two, chosen = select(data, "aim", Budget.zcdp(1), PAIRS, **more)
        found.append((one.tables.values.tolist(), two.tables.values.tolist(), chosen.structure))
    assert found[0] == found[1]


LABELLED = Structure(Domain([private_labels("a")]), [("a",)])
FAMILIES = Structure(DOMAIN, [("a",), ("b", "a"), ("c", "b"), ("d",)])


@pytest.mark.parametrize(
    ("structure", "budget", "learner", "workload", "words"),
    [
        (CLIQUES, Budget.pure(1), "psgd", None, "rounds of subsamples are no sum"),
        (FAMILIES, Budget.pure(1), {"name": "bayes-net-two-stage", "sampling_rate": 0.5}, None, "rounds of subsamples"),
        ("mrf-stable", Budget.approx(2, "1e-6"), "eb-map", Workload.all(BINARY, order=2), "votes are no sum"),
        (LABELLED, Budget.approx(2, "1e-6"), "eb-map", None, "source Partitioned offers none; list the labels"),
    ],
)
def test_what_is_no_sum_is_refused_before_anything_is_spent(structure, budget, learner, workload, words, tmp_path):
    """Claim: by `check` and by `fit`, in the same words, with the ledger empty and the source not reached."""
    source = Partitioned(table=TABLE)
    whole = Budget.pure(9) if budget.kind == "pure" else Budget.approx(9, "1e-5")
    book = Ledger.create(tmp_path / "x.ledger", name="x", budget=whole, neighbours="add-remove")
    more = {"learner": learner, "workload": workload, "terms": TERMS}
    for run in (
        lambda *settings, **named: Run(*settings, **named).check(),
        lambda *given, **named: fit(*given, ledger=book, **named),
    ):
        with pytest.raises(DataError, match=words) as caught:
            run(source, structure, budget, **more)
        assert "\n" not in str(caught.value)
    assert not source.log and not book.history()


@pytest.mark.parametrize(("table", "words"), [
    (TABLE.drop_columns("c"), "no column 'c'"),
    (TABLE.set_column(2, "c", pa.array([[1]] * 400)), "'c'"),
])  # fmt: skip
@pytest.mark.parametrize("name", ["cliques", "aim"])
def test_names_and_types_are_found_wanting_by_a_dry_run(name, table, words, tmp_path):
    """Claim: `check` refuses what the run would, and nothing is summed."""
    structure, budget, learner, workload = FITS[name]
    source = Partitioned(table=table)
    with pytest.raises(DataError, match=words):
        Run(source, structure, budget, learner=learner, workload=workload, terms=TERMS).check()
    assert "sum" not in source.log


@pytest.mark.parametrize(
    ("name", "lost", "words"),
    [
        ("private bins", 2, "budget is spent, and nothing was measured yet"),
        ("descents", 3, "the release is paid for and kept: learn again, at no cost"),
    ],
)
def test_a_fit_whose_engine_is_lost_in_the_middle_says_what_is_kept(name, lost, words, tmp_path):
    """The ledger holds the charge, the error is one line without a record, and what was measured is in its file."""
    book = Ledger.create(tmp_path / "x.ledger", name="x", budget=Budget.zcdp(1), neighbours="add-remove")
    source = Partitioned(table=TABLE, fails_at=lost)
    with pytest.raises(LearningFailed, match=words) as caught:
        fitted(source, name, ledger=book, randomness=None, save_release=tmp_path / "x.dpgm")
    assert book.spent() == Budget.zcdp("1/2") and "Marple" not in str(caught.value) and "\n" not in str(caught.value)
    assert source.log[-1] == "exit"
    assert bool(caught.value.releases) == (tmp_path / "x.dpgm").exists() == (name == "descents")
    if caught.value.releases:
        assert learn(load_release(tmp_path / "x.dpgm"), "eb-map").model.cost == Budget.zcdp("1/2")

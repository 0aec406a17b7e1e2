"""Runs on two related tables: one charge, the statement in every file, refusals before the charge."""

import json

import numpy as np
import pyarrow as pa
import pytest
from attrs import evolve

import dpgm_core as dpgm
from dpgm_core import BudgetError, DataError, ModelFileError, OptionError, Related, Structure, Terms
from dpgm_core.pipeline.run import Run
from dpgm_core.privacy.budget import Budget
from dpgm_core.sources.related import RelatedSource
from tests.related import small

UNIT = "one household with all its members"
STATED = small(3, order="line")
RIGHT = {"neighbours": "add-remove", "unit": UNIT, "related": STATED}


def tables(keys=200, seed=0):
    rng = np.random.default_rng(seed)
    roots = pa.table({"id": np.arange(keys), "own": rng.integers(0, 2, keys)})
    rows = 3 * keys
    children = {"id": rng.integers(0, keys + 10, rows), "line": rng.integers(1, 9, rows)}
    return roots, pa.table(children | {name: rng.integers(0, 2, rows) for name in ("age", "sex")})


def source(stated=STATED, **made):
    roots, children = tables()
    return RelatedSource(**({"root": roots, "children": children, "related": stated} | made))


def structure(stated=STATED):
    return Structure(stated.pair, [("own", "size"), ("size", "first.age"), ("first.age", "age"), ("age", "sex")])


def ledger(tmp_path, budget, stated=STATED):
    return dpgm.Ledger.create(
        tmp_path / "x.ledger", name="x", budget=budget, neighbours="add-remove", unit=UNIT, related=stated
    )


def test_a_fit_charges_once_and_states_both_tables(tmp_path):
    """One charge pays for all tables, and the model, read again, states the two tables."""
    budget = Budget.pure(2)
    book = ledger(tmp_path, Budget.pure(3))
    path = tmp_path / "x.dpgm"
    fit = dpgm.fit(source(), structure(), budget, terms=Terms(**RIGHT), ledger=book)
    fit.model.save(path)
    model = dpgm.load_model(path)
    assert [entry.cost for entry in book.history()] == [budget]
    assert model.releases[0].terms.related == STATED
    assert model.releases[0].structure.domain == STATED.pair
    guarantee = model.guarantee()
    assert f"the protected unit is {UNIT}, counted as one record with at most 3 children for each key 'id'" in guarantee
    assert "absent" not in guarantee  # structural zeros are no statement of the owner's


def test_structural_zeros_reach_the_learner():
    """No sample has a child where there is none, nor lacks one that there is."""
    whole = Structure(STATED.pair, [*structure().cliques, ("position", "previous.sex", "sex")])
    model = dpgm.fit(source(), whole, Budget.pure(1), terms=Terms(**RIGHT)).model
    pairs = dpgm.Model(model.structure, model.potentials)  # which does not know that it is of two tables
    sample = pairs.sample(3000, randomness=dpgm.SeededRandomness(1))
    columns = {name: sample[name].to_pylist() for name in sample.column_names}
    for size, position, first, this, previous in zip(
        *(columns[name] for name in ("size", "position", "first.age", "age", "previous.sex")), strict=True
    ):
        assert (first == "absent") == (size == "0")
        assert (this == "absent") == (position == "none") == (int(size) < 2)
        assert (previous == "absent") == (position != "later")
        assert position != "later" or int(size) > 2


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("selector", "budget"),
    [("aim", Budget.pure(2)), ("auto", Budget.zcdp("1/2")), ("oneshot", Budget.zcdp("1/2")), ("grow", Budget.gdp(1))],
)
def test_sessions_choose_the_structure(selector, budget, tmp_path):
    """Selectors see the pair domain as any other, under one charge."""
    book = ledger(tmp_path, budget)
    run = {"terms": Terms(**RIGHT), "workload": STATED.pair}
    plan = dpgm.plan_selection(selector, budget, workload=STATED.pair, terms=Terms(**RIGHT), data=source())
    assert plan.shares
    fit = dpgm.fit(source(), selector, budget, ledger=book, **run)
    assert len(book.history()) == 1
    assert set(STATED.pair.scopes) <= set(fit.model.domain.scopes)
    assert fit.model.releases[0].terms.related == STATED


def test_mst_is_refused(tmp_path):
    """Its tree would be spent on absent children; nothing is charged."""
    book = ledger(tmp_path, Budget.pure(1))
    with pytest.raises(OptionError, match="selector 'mst' would spend its tree of two related tables on links"):
        dpgm.fit(source(), "mst", Budget.pure(1), workload=STATED.pair, terms=Terms(**RIGHT), ledger=book)
    assert not book.history()


def test_plan_and_release(tmp_path):
    """A plan shows the noise of one record, but for the lattice that it is drawn on, and a release holds it: numbers in
    halves of a root, with r = 3, which come back from a file."""
    planned = dpgm.plan(structure(), Budget.pure(1), terms=Terms(**RIGHT), data=source())
    several = Terms(neighbours="add-remove", person="id", rows_per_person=STATED.draws)
    flat = dpgm.plan(structure(), Budget.pure(1), terms=several)
    assert [one.noise for one in planned.tables] == [one.noise / STATED.draws for one in flat.tables]
    alone = Terms(neighbours="add-remove").sensitivity(structure())
    assert planned.sensitivity == alone
    path = tmp_path / "x.dpgm"
    released = dpgm.release(source(), structure(), Budget.pure(1), terms=Terms(**RIGHT), save_release=path)
    assert released.terms.related == STATED and STATED.draws == 2
    parts = released.published[0].tables.values * 2
    assert np.array_equal(parts, np.rint(parts)) and (parts % 2).any()
    again = dpgm.load_release(path)
    assert np.array_equal(again.tables.values * 2, parts) and again.terms.related.draws == 2
    assert np.allclose(np.sqrt(again.variances), [one.noise for one in planned.tables])
    assert [one.variance for one in again.noise] == again.variances.tolist()


def test_tables_are_means_over_the_draws(tmp_path):
    """With hardly any noise, tables of a release and of a session are those of the source's records."""
    stated = small(5, order="line")
    budget, terms = Budget.zcdp(10**6), Terms(**RIGHT | {"related": stated})
    whole = structure(stated)
    batches = list(source(stated).repeated(4).batches(stated.pair, stated.pair.names))
    codes = dict(zip(stated.pair.names, map(np.concatenate, zip(*batches, strict=True)), strict=True))
    released = dpgm.release(source(stated), whole, budget, "gaussian", terms=terms).published[0]
    pairs = dpgm.Workload.all(stated.pair, order=2)
    chosen = dpgm.fit(source(stated), "oneshot", budget, workload=pairs, terms=terms).model.releases[0]
    for release in (released, chosen):
        assert round(release.total) == 200
        for clique in release.structure.cliques:
            shape = stated.pair.shape(clique)
            table = np.zeros(shape)
            np.add.at(table, tuple(codes[name].astype(int) for name in clique), 0.25)
            assert np.abs(release.tables[clique] - table).max() < 0.05 * (1 if release is released else 20)
    model = dpgm.fit(source(stated), whole, Budget.zcdp(1), learner={"name": "psgd", "epochs": 1}, terms=terms).model
    assert model.releases[0].terms.related.draws == 1


def test_contrasts_of_means_come_back_from_a_file(tmp_path):
    """Of binary root columns, with the noise of one record."""
    rooms = dpgm.Domain.from_sizes({"own": 2, "urban": 2})
    stated = Related(root=rooms, children=STATED.children, key="id", max_children=5)
    roots, children = tables()
    made = RelatedSource(
        root=roots.append_column("urban", pa.array(np.arange(200) % 2)), children=children, related=stated
    )
    terms = Terms(neighbours="add-remove", related=stated)
    whole, path = Structure(stated.pair, [("own", "urban")]), tmp_path / "x.dpgm"
    run = {"terms": terms, "split": "contrasts", "save_release": path}
    released = dpgm.release(made, whole, Budget.zcdp(10**4), "gaussian", **run)
    again, alone = (
        dpgm.load_release(path),
        Terms(neighbours="add-remove").sensitivity(released.structure, contrasts=True),
    )
    assert again.contrasts and np.array_equal(again.tables.values, released.published[0].tables.values)
    moved = terms.sensitivity(released.structure, contrasts=True)
    assert (moved.l1, moved.l2_squared, moved.linf) == (4 * alone.l1, 16 * alone.l2_squared, 4 * alone.linf)
    expected = [[np.sum((roots["own"].to_numpy() == a) & (np.arange(200) % 2 == b)) for b in (0, 1)] for a in (0, 1)]
    assert np.abs(again.tables["own", "urban"] - expected).max() < 0.2


def test_files_from_before_there_were_draws():
    """Their statement is of one record for each root."""
    plain = STATED.to_dict()
    del plain["draws"]
    assert Related.from_dict(plain) == STATED and Related.from_dict(plain).draws == 1
    assert [small(most).draws for most in (1, 2, 3, 4, 5, 6, 60)] == [1, 1, 2, 4, 4, 4, 4]
    with pytest.raises(dpgm.DomainError, match="draws must be one of 1, 2, 4, 8, 16, got 3"):
        small(3, draws=3)


# --- Refusals before the charge --------------------------------------------------------------------


def refused(tmp_path, error, message, made=None, stated=STATED, **changes):
    """Both the check and the run refuse it, and nothing is charged."""
    book = ledger(tmp_path, Budget.pure(5))
    terms = Terms(**RIGHT | changes)
    run = Run(made or source(), structure(stated), Budget.pure(1), "laplace", terms=terms, ledger=book)
    for call in (run.check, run.release):
        with pytest.raises(error, match=message):
            call()
    assert not book.history()


def test_terms_and_records_must_be_of_the_same_tables(tmp_path):
    """Two tables need terms that state them, as the source does; and such terms need two tables."""
    roots, _ = tables()
    refused(tmp_path / "a", DataError, "the terms do not state them as the source does", related=None)
    refused(tmp_path / "b", DataError, "source ArrowSource is one table", roots)
    other = source(small(2, order="line"))
    refused(tmp_path / "c", DataError, "the terms do not state them as the source does", other)


def test_releases_of_other_statements_do_not_go_together():
    """One key, r and order, and another domain: the guarantee of both could name one statement only."""
    stated = small(2, order="line")
    other = evolve(stated, children=dpgm.Domain(list(stated.children)[:1]))
    made = [
        dpgm.release(
            source(one), Structure(one.pair, [("own", "size")]), Budget.pure(1), terms=Terms(**RIGHT | {"related": one})
        )
        for one in (stated, other)
    ]
    with pytest.raises(BudgetError, match="state other columns, labels or constraints"):
        dpgm.learn(made)


def test_another_number_of_children_is_refused_before_reading(tmp_path):
    """A ledger of r = 3 pays for no release of r = 2, whose records are not read."""
    stated = small(2, order="line")
    book = ledger(tmp_path, Budget.pure(5))
    made = source(stated, children=tmp_path / "no such file.csv")
    terms = Terms(**RIGHT | {"related": stated})
    with pytest.raises(BudgetError, match="at most 2 children for each key 'id', ordered by 'line'"):
        dpgm.release(made, structure(stated), Budget.pure(1), terms=terms, ledger=book)
    assert not book.history()


def test_structures_over_other_domains_are_refused(tmp_path):
    """The pair domain is that of the statement."""
    wrong = Structure(dpgm.Domain.from_sizes({"own": 2, "size": 3}), [("own", "size")])
    with pytest.raises(dpgm.DomainError, match="attribute 'size' is not one of the two related tables"):
        dpgm.release(source(), wrong, Budget.pure(1), terms=Terms(**RIGHT))


def test_files_and_columns_are_looked_for_in_both_tables(tmp_path):
    """A file that is not there, and a key or an order that no column is."""
    roots, children = tables()
    missing = source(root=tmp_path / "x.csv")
    refused(tmp_path / "a", DataError, "x.csv", missing)
    refused(tmp_path / "b", DataError, "x.parquet", source(children=tmp_path / "x.parquet"))
    refused(tmp_path / "c", DataError, "has no column 'id'", source(root=roots.drop_columns(["id"])))
    refused(tmp_path / "d", DataError, "has no column 'line'", source(children=children.drop_columns(["line"])))


# --- Files -----------------------------------------------------------------------------------------


def test_edited_statements_are_refused(tmp_path, members_of, written, changed):
    """A statement that does not fit the domain, or lacks a part, is refused."""
    path = tmp_path / "x.dpgm"
    dpgm.release(source(), structure(), Budget.pure(1), terms=Terms(**RIGHT), save_release=path)
    assert dpgm.load_release(path).terms.related == STATED
    members = members_of(path)
    assert set(json.loads(members["release.json"])["terms"]) == {
        "neighbours", "unit", "person", "rows_per_person", "contributions", "total", "related",
    }  # fmt: skip
    small_r = evolve(STATED, max_children=2).to_dict()
    for stated in (
        small_r,
        {**STATED.to_dict(), "more": 1},
        {**STATED.to_dict(), "draws": 1},
        {"max_children": 3},
        "id",
    ):
        document = changed(members["release.json"], {("terms", "related"): stated})
        written(path, members | {"release.json": document})
        with pytest.raises(ModelFileError, match=r"related tables|one person can change .*; the file was edited"):
            dpgm.load_release(path)


def test_private_bins_of_root_columns(tmp_path):
    """They are found first, and the statement in the release is what was stated."""
    roots, children = tables()
    pays = dpgm.Domain.from_dict({"attributes": {"pay": {"min": 0, "max": 9, "bins": {"private": 4}}}})
    stated = Related(root=pays, children=STATED.children, key="id", max_children=2)
    roots = roots.append_column("pay", pa.array(np.arange(len(roots)) % 10))
    made = RelatedSource(root=roots, children=children, related=stated)
    terms = Terms(neighbours="add-remove", related=stated)
    fit = dpgm.fit(made, Structure(stated.pair, [("pay", "size")]), Budget.zcdp(1), terms=terms)
    path = tmp_path / "x.dpgm"
    fit.model.save(path)
    model = dpgm.load_model(path)
    assert model.domain["pay"].private is None
    assert model.releases[0].terms.related == stated


@pytest.mark.parametrize("draws", [1, 2])
def test_a_source_of_several_draws_has_those_of_the_terms(draws):
    """Records that stand there four times: counts are those of the roots, to 12 standard deviations of the noise."""
    stated = evolve(small(3, order="line"), draws=draws)
    terms = Terms(neighbours="add-remove", unit=UNIT, related=stated)
    release = dpgm.release(
        source(stated).repeated(4), structure(stated), Budget.pure(100), "laplace", terms=terms,
        randomness=dpgm.SeededRandomness(1),
    )  # fmt: skip
    assert abs(release.total - 200) < 5

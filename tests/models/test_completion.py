"""Rows with gaps: what stands stays, what is missing becomes an answer of the conditional law."""

import json
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from dpgm_core import Budget, DataError, Domain, Model, SeededRandomness, Structure, Tables, TooLarge, fit
from dpgm_core.domain import Ordered
from dpgm_core.models import completion as module
from dpgm_core.models.completion import conditional, read_cells, stamp_own_rows
from tests.models.enumerated import random_model, uniform_model
from tests.models.test_merged import joint, model_of

DOMAIN = Domain.from_dict(
    {
        "age": {"type": "integer", "min": 0, "max": 99, "bins": 5},
        "sex": {"labels": ["F", "M"], "null_values": ["?"]},
        "seen": {"type": "date", "min": "2020-01-01", "max": "2020-12-31", "bins": "quarter", "format": "%d.%m.%Y"},
        "ok": {"type": "boolean"},
    }
)


def model_over(domain: Domain, zeros=()) -> Model:
    structure = Structure.chain(domain)
    tables = random_model(structure).potentials
    arrays = {clique: np.array(tables[clique]) for clique in structure.cliques}
    for clique, cell in zeros:
        arrays[clique][cell] = -np.inf
    return Model(structure, Tables.from_arrays(structure, arrays))


MODEL = model_over(DOMAIN)


def completed(rows, model: Model = MODEL) -> pa.Table:
    return model.complete(rows, randomness=SeededRandomness(1))


def test_given_cells_stay_and_missing_ones_are_answers():
    """Typed columns keep their types; null, NaN, empty texts and the column's null values are missing; others pass."""
    rows = pa.table(
        {
            "id": [b"\xff", None, b"x", b"y"],
            "sex": ["F", "?", "", " "],
            "age": [37.0, None, float("nan"), 20.0],
            "seen": pa.array([date(2020, 5, 1), None, None, None]),
            "ok": pa.array([True, None, False, None]).dictionary_encode(),
        }
    )
    made = completed(rows)
    assert made.schema.names == rows.schema.names and made.schema.types == rows.schema.types
    assert made["id"].equals(rows["id"])
    assert made["sex"].to_pylist()[0] == "F" and set(made["sex"].to_pylist()[1:]) <= {"F", "M"}
    assert (made["age"][0].as_py(), made["age"][3].as_py()) == (37.0, 20.0)
    assert all(value is not None and value == int(value) for value in made["age"].to_pylist())
    assert made["seen"][0].as_py() == date(2020, 5, 1) and made["seen"].null_count == 0
    assert made["ok"].to_pylist()[::2] == [True, False] and made["ok"].null_count == 0
    assert completed(rows).equals(made)


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64(), pa.float64(), pa.string()])
def test_days_as_whole_numbers_are_filled_in_as_such(kind):
    """20200514 in a column of any type, and not days since 1970; a given one has its place."""
    tables = {"seen": {**DOMAIN["seen"].to_dict(), "format": "%Y%m%d"}, "sex": {"labels": ["F", "M"]}}
    model = model_over(Domain.from_dict(tables))
    rows = pa.table({"seen": pa.array([20200514, None], pa.int32()).cast(kind), "sex": ["F", "M"]})
    first, filled = (int(cell) for cell in completed(rows, model)["seen"].to_pylist())
    assert first == 20200514 and 20200101 <= filled <= 20201231
    codes, places = read_cells(model.domain["seen"], rows["seen"], 0)
    assert codes.tolist() == [1, -1] and places[0] == date(2020, 5, 14).toordinal() - date(1970, 1, 1).toordinal()


def test_columns_that_are_lacking_are_added_in_the_models_types():
    """All their cells are missing; a table without rows has them too."""
    made = completed(pa.table({"sex": ["F", "M"], "note": [1, 2]}))
    assert made.schema.names == ["sex", "note", "age", "seen", "ok"]
    assert made.schema.types[2:] == [pa.int64(), pa.date32(), pa.bool_()]
    assert completed(pa.table({"sex": pa.array([], pa.string())})).num_rows == 0


@pytest.mark.parametrize(
    ("column", "cells", "code"),
    [
        ("age", [37, 38], 1), ("age", ["37", b"37"], 1), ("age", [37.0], 1), ("age", [Decimal("37")], 1),
        ("age", ["20-39"], 1), ("ok", ["TRUE", "true"], 1), ("ok", [True], 1), ("sex", ["M"], 1),
        ("seen", ["29.02.2020"], 0), ("seen", [date(2020, 2, 29)], 0), ("seen", [datetime(2020, 2, 29, 5)], 0),
    ],
)  # fmt: skip
def test_values_of_every_type_are_read(column, cells, code):
    """As the column's files hold them: the rest of the row follows their code."""
    for cell in cells:
        table = pa.table({column: pa.array([cell] * 3000)})
        other = "sex" if column == "age" else "age" if column == "sex" else "seen" if column == "ok" else "ok"
        law = MODEL.marginal(other, given={column: code})
        law = law[:-1] / law[:-1].sum()
        one = MODEL.domain[other]
        got = completed(table)[other].to_pylist()
        texts = [cell.strftime("%d.%m.%Y") if isinstance(cell, date) else str(cell) for cell in got]
        counts = np.bincount([one.code(text) for text in texts], minlength=one.size)[:-1]
        assert stats.chisquare(counts, 3000 * law).pvalue > 1e-6, cell  # false alarm 1e-6 each, seed fixed


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"sex": ["F", "X"]}, r"row 2: its value of 'sex' is none that the model knows; its labels are 'F', 'M', 'm"),
        ({"age": [1, 137]}, "row 2: its value of 'age'"),
        ({"age": ["1", "old"]}, "row 2: its value of 'age'"),
        ({"seen": [None, "2020-02-29"]}, "row 2: its value of 'seen'"),
    ],
)
def test_what_the_model_does_not_know_is_refused(rows, message):
    """With the row, the column and what there is; never the value."""
    with pytest.raises(DataError, match=message) as caught:
        completed(pa.table(rows))
    assert not any(f"{cell!r}" in str(caught.value) for cell in ("X", 137, "old", "2020-02-29"))


def test_columns_named_twice_or_of_another_type_are_refused():
    """Dates cannot be put into a column of whole numbers."""
    with pytest.raises(DataError, match="two columns 'sex'"):
        completed(pa.table([pa.array(["F"]), pa.array(["M"])], names=["sex", "sex"]))
    with pytest.raises(DataError, match="'sex' do not fit its column of type int64"):
        completed(pa.table({"sex": pa.array([None], pa.int64()), "age": [3]}))


def test_impossible_rows_are_refused_and_full_ones_pass():
    """A row to fill has probability above 0, or its number is told; a row without gaps is not asked about. A cell stays
    empty where its value is missing for sure; else an answer is drawn, however rare."""
    model = model_over(DOMAIN, [(("age", "sex"), (1, 0))])
    with pytest.raises(DataError, match="row 2: what is given of it has probability 0"):
        completed(pa.table({"age": [1, 37], "sex": ["F", "F"], "seen": [None, None]}), model)
    full = pa.table({"age": [37], "sex": ["F"], "seen": ["01.02.2020"], "ok": [True]})
    assert completed(full, model).equals(full)
    model = model_over(DOMAIN, [(("age", "sex"), (1, code)) for code in (0, 1)])
    made = completed(pa.table({"age": [37, 5] * 50, "sex": pa.array([None] * 100, pa.string())}), model)
    assert [cell is None for cell in made["sex"].to_pylist()] == [True, False] * 50


def test_orders_hold_for_what_is_filled_in():
    """In one bin with a given value, on either side."""
    whole = {"type": "integer", "bins": [0, 50, 100]}
    domain = Domain(
        Domain.from_dict({"low": whole, "high": whole}).attributes, [Ordered(name="order", columns=("low", "high"))]
    )
    structure = Structure(domain, [("low", "high")])
    values = np.zeros((3, 3))
    values[1, 0] = -np.inf
    model = Model(structure, Tables(structure, values.reshape(-1)))
    rows = pa.table({"low": [40, None] * 500, "high": [None, 10] * 500})
    made = completed(rows, model)
    assert made["low"].to_pylist()[::2] == [40] * 500 and made["high"].to_pylist()[1::2] == [10] * 500
    assert all(one <= other for one, other in zip(made["low"].to_pylist(), made["high"].to_pylist(), strict=True))


def test_no_completed_row_breaks_a_constraint():
    """4,000 rows with any gaps, of a model with an order and a map, bins that overlap and one without an end."""
    tables = {
        "low": {"type": "integer", "min": 0, "max": 99, "bins": 9},
        "high": {"type": "number", "bins": [0, 15, 50, "inf"]},
        "fine": {"labels": ["x1", "x2", "y1"]},
        "coarse": {"labels": ["x", "y"]},
    }
    to = {"x1": "x", "x2": "x", "y1": "y", "missing": "missing"}
    rules = {"o": {"columns": ["low", "high"], "order": "<"}, "m": {"columns": ["fine", "coarse"], "map": to}}
    model = model_over(Domain.from_dict({"attributes": tables, "constraints": rules}))
    full = model.sample(4000, form="values", randomness=SeededRandomness(2))
    rng = np.random.default_rng(0)
    cells = {name: full[name].to_pylist() for name in full.column_names}
    rows = {name: [cell if rng.random() < 0.5 else None for cell in column] for name, column in cells.items()}
    made = completed(pa.table({name: pa.array(rows[name], full[name].type) for name in rows}), model)
    assert (made["low"].to_numpy() < made["high"].to_numpy()).all()
    assert all(one[0] == other for one, other in zip(made["fine"].to_pylist(), made["coarse"].to_pylist(), strict=True))


def test_the_stamp_says_that_no_guarantee_covers_the_rows():
    """Whatever the model's own is."""
    stamp = json.loads(completed(pa.table({"sex": ["F"]})).schema.metadata[b"dpgm"])
    assert stamp["private"] is False and stamp["completed"] is True
    assert stamp["guarantee"].startswith("NOT COVERED")
    assert stamp_own_rows({"private": True, "guarantee": "(1, 0)"})["guarantee"].endswith("holds: (1, 0)")


def test_pandas_and_attributes_left_out(partial_model):
    """A data frame comes through; of an attribute that no release measured nothing is filled in."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"sex": ["F", None], "town": [None, "Z"]})
    made = partial_model.complete(frame).to_pandas()
    assert made["town"].isna().tolist() == [True, False] and made["sex"].notna().all()
    assert list(made.columns) == ["sex", "town", "age", "job"]


@pytest.fixture(scope="module")
def partial_model() -> Model:
    domain = Domain.from_dict({name: ["x", "y"] for name in ("town", "age", "job")} | {"sex": ["F", "M"]})
    structure = Structure(domain, [("sex", "age"), ("age", "job")])
    codes = np.random.default_rng(0).integers(0, 2, (200, 4))
    options = {"neighbours": "add-remove", "randomness": SeededRandomness(0)}
    return fit(codes, structure, Budget.pure(5), **options).model


def test_what_counts_as_other_is_given_as_other():
    """Open columns and those with `unknown` say where values go that they do not list; a row is not refused for one."""
    domain = Domain.from_dict(
        {
            "job": {"labels": ["cook", "nurse"], "unknown": "other", "missing": "none"},
            "town": {"labels": ["A", "B"], "unknown": "elsewhere"},
            "sex": ["F", "M"],
            "code": {"size": 2, "unknown": 0},
            "nist": {"labels": ["1"], "missing": "N", "null_values": ["N"]},
        }
    )
    structure = Structure(domain, [("job", "sex"), ("town",), ("code",), ("nist",)])
    model = Model(structure, Tables(structure, np.where(np.arange(structure.cells) == 7, 9.0, 0.0)))
    rows = pa.table({"job": ["baker", "baker"], "town": ["C", None], "sex": pa.nulls(2, pa.string())})
    made = completed(rows, model)
    assert made["job"].to_pylist() == ["baker", "baker"] and made["town"].to_pylist()[0] == "C"
    many = completed(pa.table({"job": ["baker"] * 500}), model)
    share = model.marginal("sex", given={"job": "other"})[1]
    assert share > 0.9 and many["sex"].to_pylist().count("M") > 400  # 500 draws: false alarm below 1e-9
    for column, value in (("sex", "X"), ("code", "7"), ("nist", "2")):
        with pytest.raises(DataError, match=f"row 1: its value of '{column}'"):
            completed(pa.table({column: [value]}), model)


@pytest.mark.skipif(not hasattr(pa, "string_view"), reason="a pyarrow older than views")
@pytest.mark.skipif(pa.__version__.startswith("18."), reason="this pyarrow crashes where a table of views is passed on")
@pytest.mark.parametrize("packed", [False, True])
def test_views_of_texts_are_filled(packed):
    """Texts of polars frames, plain or as categories: no kernel replaces their cells, so large texts come out."""
    model = uniform_model(Structure.chain(Domain.from_dict({"sex": ["F", "M"], "job": ["a", "b"]})))
    column = pa.array(["F", None, "M"]).cast(pa.string_view())
    if packed:
        words = pa.array(["F", "M"]).cast(pa.string_view())
        column = pa.DictionaryArray.from_arrays(pa.array([0, None, 1], pa.uint32()), words)
    made = model.complete(pa.table({"note": column, "sex": column}), randomness=SeededRandomness(1))
    assert made["note"].to_pylist() == ["F", None, "M"] and made["sex"].to_pylist()[::2] == ["F", "M"]
    assert made["sex"].null_count == made["job"].null_count == 0 and made["sex"].type == made["note"].type


# --- codes drawn given others, against the table of all records -------------------------------------------------------


SIZES = Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 3, "e": 2, "f": 2})
CLIQUES = [("a", "b"), ("b", "c"), ("c", "d", "a"), ("d", "e")]


def plain(zeros: float) -> tuple[Model, np.ndarray]:
    model = random_model(Structure(SIZES, CLIQUES), 5, zeros)
    return model, model.marginal(SIZES.names)


def held(model: Model, table: np.ndarray, allowed: dict[str, np.ndarray], seed: int) -> None:
    """Rows with random gaps: given codes stay, rows are refused just where they are impossible, and the drawn codes of
    each pattern of gaps have the table's conditional law (chi-squared over all patterns, false alarm 1e-6)."""
    rng = np.random.default_rng(seed)
    names, count = model.domain.names, 60_000
    patterns = rng.random((7, len(names))) < np.array([0.2, 0.3, 0.5, 0.5, 0.7, 0.8, 1.1])[:, None]
    which = rng.integers(0, len(patterns), count)
    given = {name: rng.integers(0, model.domain[name].size, count) for name in names}
    codes = {name: np.where(patterns[which, at], -1, given[name]) for at, name in enumerate(names)}
    found, possible = conditional(model._distribution, model.domain, allowed).draw(codes, count, rng)
    statistic, freedom = 0.0, 0
    for number, pattern in enumerate(patterns):
        rows = np.flatnonzero(which == number)
        law = table.copy()
        for at, name in enumerate(names):
            if pattern[at] and name in allowed:
                law *= allowed[name].reshape([-1 if axis == at else 1 for axis in range(len(names))])
        axes = tuple(np.flatnonzero(pattern))
        mass = law.sum(axis=axes, keepdims=True)
        zero = np.broadcast_to(mass, law.shape)[tuple(given[name][rows] for name in names)] == 0
        np.testing.assert_array_equal(possible[rows], ~zero)
        rows = rows[~zero]
        for at, name in enumerate(names):
            if not pattern[at]:
                np.testing.assert_array_equal(found[name][rows], codes[name][rows])
        seen = np.zeros(law.shape)
        np.add.at(seen, tuple(found[name][rows] for name in names), 1)
        share = np.divide(law, mass, out=np.zeros_like(law), where=mass > 0)
        wanted = seen.sum(axis=axes, keepdims=True) * share
        assert not seen[wanted == 0].any()
        large = wanted > 5
        scale = wanted[large] * (1 - share[large] * (share[large] < 1))
        statistic += float(((seen - wanted)[large] ** 2 / scale).sum())
        freedom += int((large & (share < 1)).sum())
    # Each cell is scaled by its variance, so the sum has this mean; cells of one row share a total, which widens it.
    assert abs(statistic - freedom) < 6 * np.sqrt(2 * freedom * max(table.shape))


@pytest.mark.landing
@pytest.mark.parametrize("zeros", [0.0, 0.15])
def test_rows_with_gaps_have_the_conditional_law(zeros):
    """With and without impossible cells; one attribute in no clique; some codes not to be drawn."""
    held(*plain(zeros), {}, 1)
    held(*plain(zeros), {"b": np.array([True, True, False]), "f": np.array([False, True])}, 2)


@pytest.mark.parametrize("weight0", [False, True])
def test_merged_codes_have_theirs(weight0):
    """Blocks and the codes in them; codes of weight 0 are impossible; codes not allowed are left out of a block."""
    model = model_of(3, weight0=weight0)
    held(model, joint(model), {}, 4)
    held(model, joint(model), {"a": np.array([True, False, True, True, False])}, 5)


def test_batches_of_states_are_the_same_law(monkeypatch):
    """Where few rows fit at once."""
    monkeypatch.setattr(module, "_CELLS_AT_ONCE", 30)
    held(*plain(0.15), {}, 7)


def test_what_is_too_wide_is_refused(monkeypatch):
    """With its size, before it is made."""
    monkeypatch.setattr(module, "_MAX_ROW_CELLS", 5)
    model, _ = plain(0.0)
    codes = {name: np.full(3, -1) for name in SIZES.names}
    with pytest.raises(TooLarge, match="leave fewer attributes out"):
        conditional(model._distribution, SIZES, {}).draw(codes, 3, np.random.default_rng(0))

"""Rows with gaps: what stands stays, what is missing becomes an answer of the conditional law."""

import json
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from dpgm_core import Budget, DataError, Domain, Model, SeededRandomness, Structure, Tables, fit
from dpgm_core.domain import Ordered
from dpgm_core.models.completion import stamp_own_rows

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
    tables = Tables(structure, np.random.default_rng(0).normal(size=structure.cells))
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
    """A row to fill has probability above 0, or its number is told; a row without gaps is not asked about."""
    model = model_over(DOMAIN, [(("age", "sex"), (1, 0))])
    with pytest.raises(DataError, match="row 2: what is given of it has probability 0"):
        completed(pa.table({"age": [1, 37], "sex": ["F", "F"], "seen": [None, None]}), model)
    full = pa.table({"age": [37], "sex": ["F"], "seen": ["01.02.2020"], "ok": [True]})
    assert completed(full, model).equals(full)


def test_where_there_is_no_answer_a_cell_stays_empty():
    """Of a row whose missing value is missing for sure; else an answer is drawn, however rare."""
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
    structure = Structure.chain(Domain.from_dict({"sex": ["F", "M"], "job": ["a", "b"]}))
    model = Model(structure, Tables(structure, np.zeros(structure.cells)))
    column = pa.array(["F", None, "M"]).cast(pa.string_view())
    if packed:
        words = pa.array(["F", "M"]).cast(pa.string_view())
        column = pa.DictionaryArray.from_arrays(pa.array([0, None, 1], pa.uint32()), words)
    made = model.complete(pa.table({"note": column, "sex": column}), randomness=SeededRandomness(1))
    assert made["note"].to_pylist() == ["F", None, "M"] and made["sex"].to_pylist()[::2] == ["F", "M"]
    assert made["sex"].null_count == made["job"].null_count == 0 and made["sex"].type == made["note"].type

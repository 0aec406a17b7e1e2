"""Records in batches: one law, however they are written, given what is given; none lacks what is never null."""

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import dpgm_core as dpgm
from dpgm_core import Domain, InferenceError, Model, OptionError, SeededRandomness, Structure, Tables
from dpgm_core.models import sampling as drawing
from tests.models.enumerated import random_model, uniform_model
from tests.models.test_merged import joint, margin, model_of

DOMAIN = Domain.from_dict(
    {
        "age": {"type": "integer", "min": 0, "max": 99, "bins": 5},
        "sex": ["F", "M"],
        "seen": {"type": "date", "min": "2020-01-01", "max": "2020-12-31", "bins": "quarter"},
    }
)


@pytest.fixture
def model() -> Model:
    return random_model(Structure.chain(DOMAIN), scale=1 / 3)


def seeded(model: Model, count: int, **options) -> pa.Table:
    return model.sample(count, randomness=SeededRandomness(1), **options)


@pytest.mark.parametrize("method", ["independent", "rounded"])
def test_batches_are_what_one_call_gives(model, monkeypatch, method):
    """Row for row while codes are drawn at once; the codes are the same in every form."""
    monkeypatch.setattr(drawing, "_RECORDS_WRITTEN", 7)
    parts = list(model.sample_batches(100, method=method, form="labels", randomness=SeededRandomness(1)))
    assert [part.num_rows for part in parts] == [7] * 14 + [2]
    labels = seeded(model, 100, method=method, form="labels")
    assert pa.concat_tables(parts).combine_chunks().equals(labels)
    values = seeded(model, 100, method=method)  # as a Parquet file of `dpgm sample` has them
    for name in DOMAIN.names:
        codes = [DOMAIN[name].labels.index(label) for label in labels[name].to_pylist()]
        texts = seeded(model, 100, method=method, form="texts")[name].to_pylist()
        assert [DOMAIN[name].code(text) for text in texts] == codes
    assert [field.type for field in values.schema] == [pa.int64(), pa.string(), pa.date32()]


def test_records_drawn_in_batches_have_the_models_law(model, monkeypatch):
    """Where codes are drawn 1,000 at a time too: chi-squared with false alarm 1e-6, seed fixed."""
    monkeypatch.setattr(drawing, "_RECORDS_DRAWN", 1000)
    table = seeded(model, 30_000, form="labels")
    codes = [np.array([one.labels.index(label) for label in table[one.name].to_pylist()]) for one in DOMAIN]
    law = model.marginal(DOMAIN.names)
    seen = np.zeros(law.shape)
    np.add.at(seen, tuple(codes), 1)
    large = 30_000 * law > 5
    assert large.all() and stats.chisquare(seen.reshape(-1), 30_000 * law.reshape(-1)).pvalue > 1e-6


@pytest.mark.parametrize("form", ["labels", "values", "texts"])
def test_given_records_are_of_the_conditional_law(model, form):
    """Given columns hold the label or the very value; the others have p(. | given) (false alarm 1e-6, seed fixed)."""
    table = seeded(model, 20_000, given={"age": "37", "seen": "2020 Q2"}, form=form)
    assert set(table["age"].to_pylist()) == {{"labels": "20-39", "values": 37, "texts": "37"}[form]}
    law = model.marginal("sex", given={"age": "37", "seen": "2020 Q2"})
    labels = ["F", "M", "missing" if form == "labels" else None]
    counts = [table["sex"].to_pylist().count(label) for label in labels]
    assert stats.chisquare(counts, 20_000 * law).pvalue > 1e-6
    if form == "values":
        assert {day.month for day in table["seen"].to_pylist()} == {4, 5, 6}
    assert b'"given": {"age": "20-39", "seen": "2020 Q2"}' in table.schema.metadata[b"dpgm"]


def test_merged_codes_can_be_given():
    """A code of a block, and the others given it: against the table of all records (false alarm 1e-6, seed fixed)."""
    model = model_of(2)
    table = joint(model)
    for method in ("independent", "rounded"):
        drawn = seeded(model, 20_000, given={"a": 3}, method=method)
        assert set(drawn["a"].to_pylist()) == {"3"}
        law = margin(table, ("a", "b", "c"))[3].reshape(-1)
        codes = 4 * np.array(drawn["b"].to_pylist(), int) + np.array(drawn["c"].to_pylist(), int)
        counts = np.bincount(codes, minlength=12)
        if method == "independent":
            assert stats.chisquare(counts, 20_000 * law / law.sum()).pvalue > 1e-6
        assert np.abs(counts / 20_000 - law / law.sum()).max() < 0.02


def test_everything_may_be_given(model):
    """Then all records are that one."""
    given = {"age": "5", "sex": "M", "seen": "2020-02-29"}
    rows = model.sample(3, given=given, form="texts").to_pylist()
    assert rows == [{"age": "5", "sex": "M", "seen": "2020-02-29"}] * 3


def test_impossible_conditions_and_requests_are_refused(model):
    """Probability 0, no form, no number of records; before the first batch."""
    structure = Structure(DOMAIN, [("age", "sex")])
    values = np.zeros((6, 3))
    values[1] = -np.inf
    never = Model(structure, Tables(structure, values.reshape(-1)))
    with pytest.raises(InferenceError, match="probability 0"):
        never.sample(1, given={"age": 30.0})
    with pytest.raises(InferenceError, match="probability 0"):
        never.sample(1, given={"age": 30.0, "sex": "F", "seen": 0})
    with pytest.raises(OptionError, match="can be given as"):
        model.sample_batches(1, form="numbers")
    for count in (-1, True, 1.0, "3", None, float("nan")):
        with pytest.raises(OptionError, match="whole number"):
            model.sample(count)
    assert model.sample(0, form="values").schema.types == [pa.int64(), pa.string(), pa.date32()]


def test_orders_hold_beside_a_given_value():
    """Bins of others that have no value on its right side are not drawn; closed forms of what is left."""
    whole = {"type": "integer", "bins": [0, 10, 20, 30]}
    rules = {"o": {"columns": ["low", "high"], "order": "<"}}
    domain = Domain.from_dict({"attributes": {"low": whole, "high": whole}, "constraints": rules})
    model = uniform_model(Structure(domain, [("low", "high")]))
    table = model.sample(9000, given={"low": "19"}, form="values", randomness=SeededRandomness(1))
    numbers = table["high"].drop_null().to_numpy()
    assert len(set(numbers)) == 11 and numbers.min() == 20  # 20 to 30: no bin below has a value above 19
    assert abs(table["high"].null_count - 4500) < 5 * 48  # as likely as the last bin; false alarm 1e-6, seed fixed


def test_a_missing_value_between_binds_nothing_beside_a_given_value():
    """a <= b <= c and a = 15: with a value b keeps c above it; without one c follows the model (false alarm 1e-6)."""
    bins = {name: {"type": "integer", "bins": [0, 10, 20]} for name in "abc"}
    rules = {pair: {"columns": list(pair), "order": "<="} for pair in ("ab", "bc")}
    domain = Domain.from_dict({"attributes": bins, "constraints": rules})
    model = uniform_model(Structure(domain, [("a",), ("b",), ("c",)]))
    table = seeded(model, 4000, form="values", given={"a": "15"})
    b, c = (np.array(table[name].to_pylist(), float) for name in "bc")
    without = np.isnan(b)
    assert (b[~without] >= 15).all() and not (c[~without] < b[~without]).any()
    # Given a in [10, 20]: b is that or missing; c that or missing beside it, and any of three beside a missing one.
    counts = [(without & (c < 10)).sum(), (without & (c >= 10)).sum(), (without & np.isnan(c)).sum(), (~without).sum()]
    assert stats.chisquare(counts, 4000 * np.array([1, 1, 1, 2]) / 5).pvalue > 1e-6


def test_codes_that_no_values_fit_are_drawn_again(monkeypatch):
    """Where a chain is too large for a table; the others keep their law (false alarm 1e-6, seed fixed)."""
    monkeypatch.setattr("dpgm_core.domain.resolved_constraints._MAX_TABLE_CELLS", 1)
    edges = {"a": [0, 5, 10], "b": [0, 10], "c": [0, 5, 10]}
    bins = {name: {"type": "integer", "bins": own} for name, own in edges.items()}
    rules = {pair: {"columns": list(pair), "order": "<="} for pair in ("ab", "bc")}
    domain = Domain.from_dict({"attributes": bins, "constraints": rules})
    assert len(domain.rules) == 2
    model = uniform_model(Structure(domain, [("a",), ("b",), ("c",)]))
    table = seeded(model, 6000, form="values")
    a, b, c = (np.array(table[name].to_pylist(), float) for name in "abc")
    assert len(a) == 6000 and not (a > b).any() and not (b > c).any()
    kinds = [np.where(np.isnan(one), 2, one >= 5) + 0 for one in (a, c)]
    counts = np.bincount((9 * np.isnan(b) + 3 * kinds[0] + kinds[1]).astype(int), minlength=18)
    assert counts[3] == 0  # [5, 10), a value, [0, 5)
    assert stats.chisquare(np.delete(counts, 3)).pvalue > 1e-6
    monkeypatch.setattr(drawing.Writer, "fit", lambda self, codes, given: np.zeros(len(codes["a"]), bool))
    with pytest.raises(OptionError, match="fewer than one record in a hundred has values that keep the order"):
        seeded(model, 10, form="values")


def lacking_model(lacking: float, null_values: str = "null_values = []") -> dpgm.Model:
    """Two independent columns; of the first a share is missing, and it is never null unless said otherwise."""
    tables = {"a": {"type": "integer", "labels": ["1", "2"]}, "b": {"labels": ["x", "y"]}}
    if null_values:
        tables["a"]["null_values"] = []
    domain = dpgm.Domain.from_dict({"attributes": tables})
    structure = dpgm.Structure(domain, [("a",), ("b",)])
    shares = np.array([(1 - lacking) * 0.25, (1 - lacking) * 0.75, lacking])
    a = np.repeat([0, 1, 2], np.rint(100_000 * shares).astype(int))
    codes = np.stack([a, np.arange(len(a)) % 3], axis=1)
    fitted = dpgm.fit(codes, structure, dpgm.Budget.pure(1000), neighbours="add-remove", randomness=SeededRandomness(1))
    return fitted.model


@pytest.mark.parametrize("lacking", [0.001, 0.5, 0.9])
@pytest.mark.parametrize("form", ["values", "texts"])
def test_no_record_lacks_what_is_never_null(lacking, form):
    """Exactly so many records, of the model's law given that; other columns lack values as they do.

    Shares of 4,000 seeded records are within 0.04 of the truth, 5 standard deviations."""
    found = lacking_model(lacking).sample(4000, form=form, randomness=SeededRandomness(2))
    assert found.num_rows == 4000 and found["a"].null_count == 0
    assert abs(np.mean([str(one) == "1" for one in found["a"].to_pylist()]) - 0.25) < 0.04
    assert abs(found["b"].null_count / 4000 - 1 / 3) < 0.04


def test_labels_rounded_records_and_what_is_given_stay_as_the_model_has_them():
    """They show what there is."""
    half = lacking_model(0.5)
    assert "missing" in half.sample(50, form="labels", randomness=SeededRandomness(2))["a"].to_pylist()
    assert half.sample(50, form="values", method="rounded", randomness=SeededRandomness(2))["a"].null_count > 0
    given = half.sample(50, form="values", given={"a": "missing"}, randomness=SeededRandomness(2))
    assert given["a"].null_count == given.num_rows == 50
    assert lacking_model(0.5, "").sample(50, form="values", randomness=SeededRandomness(2))["a"].null_count > 0
    assert half.sample(0, form="values").num_rows == 0


def test_a_domain_that_does_not_fit_is_refused_and_not_waited_for():
    """Where nearly every record would be drawn again."""
    with pytest.raises(OptionError, match=r"fewer than one record in a hundred has a value in each of a,"):
        lacking_model(0.999).sample(100, form="values", randomness=SeededRandomness(2))

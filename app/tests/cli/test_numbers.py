"""`dpgm query --statistic`."""

import numpy as np
import pytest

import dpgm_core as dpgm

DOMAIN = dpgm.Domain.from_dict(
    {
        "age": {"type": "integer", "min": 0, "max": 99, "bins": 5},
        "seen": {"type": "date", "min": "2020-01-01", "max": "2020-12-31", "bins": "month", "format": "%d.%m.%Y"},
        "sex": ["F", "M"],
    }
)


@pytest.fixture
def numeric(tmp_path):
    structure = dpgm.Structure.chain(DOMAIN)
    theta = np.random.default_rng(0).normal(size=structure.cells)
    model = dpgm.Model(structure, dpgm.Tables(structure, theta))
    refits = (theta + np.random.default_rng(1).normal(size=(4, structure.cells)) / 9).astype(np.float32)
    model.with_replicates(refits).save(tmp_path / "n.dpgm")
    return tmp_path / "n.dpgm"


def test_statistics_are_the_models(numeric, dpgm_command, facts):
    """Each of each attribute; dates as their column writes them; JSON has the numbers."""
    model = dpgm.load_model(numeric)
    words = ("-s", "mean", "-s", "sd", "-s", "median", "-s", "0.9", "-s", "correlation", "-g", "sex=F")
    code, out, _ = dpgm_command("query", numeric, "age", "seen", *words)
    assert code == 0 and "of age, missing and unknown values are left out" in out
    day = DOMAIN["seen"].values.text(model.quantile("seen", 0.9, {"sex": "F"}))
    assert any(line.split()[:3] == ["seen", "0.9", day] for line in out.splitlines())
    said = facts("query", numeric, "age", "seen", *words)
    values = {(*row["attributes"], row["statistic"]): row["value"] for row in said["rows"]}
    assert values["age", "mean"] == pytest.approx(model.mean("age", {"sex": "F"}))
    assert values["age", "sd"] == pytest.approx(model.variance("age", {"sex": "F"}) ** 0.5)
    assert values["age", "median"] == model.quantile("age", 0.5, {"sex": "F"})
    assert values["age", "seen", "correlation"] == pytest.approx(model.correlation("age", "seen", {"sex": "F"}))
    assert len(values) == 9 and said["with_a_number"]["age"] < 1


def test_error_bars_are_those_of_the_replicates(numeric, dpgm_command, facts):
    """With what they do not cover."""
    code, out, _ = dpgm_command("query", numeric, "age", "-s", "mean", "--intervals", "0.9")
    assert code == 0 and "standard error" in out and "not what the structure misses" in out
    said = facts("query", numeric, "age", "-s", "mean", "--intervals", "0.9")
    found = dpgm.load_model(numeric).interval_of(lambda model: model.mean("age"))
    assert said["rows"][0]["low"] == pytest.approx(float(found.low)) and said["replicates"] == 4


def test_values_that_are_given_find_their_bin(numeric, dpgm_command):
    """And stderr says which; out of bounds is refused."""
    assert "age=37 is in the bin 20-39" in dpgm_command("query", numeric, "sex", "-g", "age=37")[2]
    assert "age=37 is in the bin 20-39" in dpgm_command("query", numeric, "seen", "-s", "mean", "-g", "age=37")[2]
    assert "outside of its bins" in dpgm_command("query", numeric, "sex", "-g", "age=137")[2]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("age", "-s", "mode"), "got 'mode'"),
        (("age", "-s", "1.5"), "got '1.5'"),
        (("age", "-s", "nan"), "got 'nan'"),
        (("sex", "-s", "mean"), "has no numbers"),
        (("age", "-s", "correlation"), "name both"),
        (("-s", "mean"), "goes with attributes"),
        (("age", "-s", "mean", "--top", "3"), "goes with attributes"),
        (("age", "-s", "mean", "-g", "age=3"), "both asked for and given"),
    ],
)
def test_what_cannot_be_computed_is_refused(numeric, refused, words, message):
    """One line, exit 2."""
    assert message in refused("query", numeric, *words)

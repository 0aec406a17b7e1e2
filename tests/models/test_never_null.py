"""What the domain says is never null has a value in each record that is sampled."""

import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm_core._util.randomness import SeededRandomness
from dpgm_core.errors import OptionError


def model(lacking: float, null_values: str = "null_values = []") -> dpgm.Model:
    """Two independent columns; of the first a share is missing, and it is never null unless said otherwise."""
    tables = {"a": {"type": "integer", "labels": ["1", "2"]}, "b": {"labels": ["x", "y"]}}
    if null_values:
        tables["a"]["null_values"] = []
    domain = dpgm.Domain.from_dict({"attributes": tables})
    structure = dpgm.Structure(domain, [("a",), ("b",)])
    people = 100_000
    a = np.repeat(
        [0, 1, 2], [round(people * (1 - lacking) * 0.25), round(people * (1 - lacking) * 0.75), round(people * lacking)]
    )
    codes = np.stack([a, np.arange(len(a)) % 3], axis=1)
    fitted = dpgm.fit(codes, structure, dpgm.Budget.pure(1000), neighbours="add-remove", randomness=SeededRandomness(1))
    return fitted.model


@pytest.mark.parametrize("lacking", [0.001, 0.5, 0.9])
@pytest.mark.parametrize("form", ["values", "texts"])
def test_no_record_lacks_what_is_never_null(lacking, form):
    """Exactly so many records, of the model's law given that; other columns lack values as they do.

    Shares of 4,000 seeded records are within 0.04 of the truth, 5 standard deviations."""
    found = model(lacking).sample(4000, form=form, randomness=SeededRandomness(2))
    assert found.num_rows == 4000 and found["a"].null_count == 0
    assert abs(np.mean([str(one) == "1" for one in found["a"].to_pylist()]) - 0.25) < 0.04
    assert abs(found["b"].null_count / 4000 - 1 / 3) < 0.04


def test_labels_rounded_records_and_what_is_given_stay_as_the_model_has_them():
    """They show what there is."""
    half = model(0.5)
    assert "missing" in half.sample(50, form="labels", randomness=SeededRandomness(2))["a"].to_pylist()
    assert half.sample(50, form="values", method="rounded", randomness=SeededRandomness(2))["a"].null_count > 0
    given = half.sample(50, form="values", given={"a": "missing"}, randomness=SeededRandomness(2))
    assert given["a"].null_count == given.num_rows == 50
    assert model(0.5, "").sample(50, form="values", randomness=SeededRandomness(2))["a"].null_count > 0
    assert half.sample(0, form="values").num_rows == 0


def test_a_domain_that_does_not_fit_is_refused_and_not_waited_for():
    """Where nearly every record would be drawn again."""
    with pytest.raises(OptionError, match=r"fewer than one record in a hundred has a value in each of a,"):
        model(0.999).sample(100, form="values", randomness=SeededRandomness(2))

"""What a study may ask, as objects."""

import pytest
from attrs import evolve

from dpgm.study import Study, generated_truth, run
from dpgm_core import Budget, Domain, OptionError, StructureError, Terms


def test_objects_are_checked_too():
    """In Python: no model, another domain, a declared total."""
    truth = generated_truth(Domain.from_sizes({"a": 2, "b": 2}))
    other = generated_truth(Domain.from_sizes({"a": 2, "b": 3}))
    asked = {"budgets": Budget.pure(1), "neighbours": "add-remove"}
    with pytest.raises(OptionError, match="draws its records from a model, got str"):
        Study(truth="health.dpgm", **asked)
    with pytest.raises(StructureError, match="structure and the truth have different"):
        Study(truth=truth, structure=other.structure, **asked)
    with pytest.raises(OptionError, match="learner"):
        Study(truth=truth, learners=[], **asked)
    with pytest.raises(OptionError, match="records = 500 and total = 'public'"):
        Study(truth=truth, budgets=Budget.pure(1), terms=Terms(neighbours="add-remove", total=500))


@pytest.mark.parametrize("value", [[], [1], (), (1, 2), True, float("nan")])
@pytest.mark.parametrize("option", ["repeat", "seed"])
def test_repeats_and_seeds_are_single_numbers(one, option, value):
    """Records may be several; these may not."""
    with pytest.raises(OptionError, match=f"{option} must be a whole number"):
        evolve(one, **{option: value})


def test_what_has_no_name_is_refused(one):
    """Lists where a name or a function belongs."""
    for more in ({"potentials": []}, {"structure": []}):
        with pytest.raises(OptionError, match="a truth has no"):
            generated_truth(one.truth.domain, **more)
    with pytest.raises(OptionError, match="progress must be a function"):
        run(one, progress=3)

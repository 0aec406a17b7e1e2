"""What a study may ask, as objects."""

import pytest

from dpgm_core import Budget, Domain, OptionError, StructureError, Terms
from dpgm_core.study import Study, generated_truth


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

"""What tests of studies share: a tiny truth, a study of it that has been run, and learners of a test."""

import pytest
from attrs import evolve

from dpgm.study import Study, generated_truth, run
from dpgm_core import Budget, Domain

LEARNERS = ("naive-mle", {"name": "naive-mle", "l2": 0.1})


@pytest.fixture(scope="session")
def study() -> Study:
    """Two learners, two budgets, two runs each of 200 records of three binary attributes."""
    truth = generated_truth(Domain.from_sizes({"a": 2, "b": 2, "c": 2}), seed=1)
    budgets = [Budget.pure("0.5"), Budget.pure(2)]
    return Study(
        truth=truth, neighbours="add-remove", budgets=budgets, learners=LEARNERS, records=200, repeat=2, seed=5
    )


@pytest.fixture(scope="session")
def done(study):
    return run(study)


@pytest.fixture
def one(study) -> Study:
    return evolve(study, learners="naive-mle", budgets=Budget.pure(1))


@pytest.fixture(scope="session")
def timeless():
    """Takes from lines what no two runs share."""
    return lambda lines: [{key: value for key, value in line.items() if key != "seconds"} for line in lines]

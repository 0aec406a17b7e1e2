"""Errors: one tree, hints that help, and exact functions of records only where they are asked for."""

import inspect
import pickle

import pytest

from dpgm_core import errors
from dpgm_core.errors import DpgmError, LearningFailed, NonPrivateError, did_you_mean, require_non_private

EVERY = [one for _, one in inspect.getmembers(errors, inspect.isclass) if issubclass(one, Exception)]


@pytest.mark.parametrize("error", EVERY, ids=lambda error: error.__name__)
def test_every_error_is_one_of_dpgm_and_travels(error):
    """It is a DpgmError with its words, between processes too."""
    assert issubclass(error, DpgmError)
    back = pickle.loads(pickle.dumps(error("what would do")))
    assert type(back) is error and str(back) == "what would do"


def test_a_failed_learner_keeps_what_was_paid_for():
    """Through a pickle as well, as work in other processes comes back by one."""
    failed = LearningFailed("no", releases=("one", "two"))
    assert failed.releases == ("one", "two")
    assert pickle.loads(pickle.dumps(failed)).releases == ("one", "two")


def test_hints_name_the_nearest_word_or_all_there_are():
    """And no more than twenty of them."""
    assert did_you_mean("naive_mle", ["cgm-em", "naive-mle"]) == "; did you mean 'naive-mle'?"
    assert did_you_mean("x", []) == "; there are none"
    many = did_you_mean("zzz", [f"word{number}" for number in range(30)])
    assert many.count("word") == 20 and many.endswith("(30 in all)")


@pytest.mark.parametrize("allowed", [False, None, 1, "yes", [True]])
def test_only_true_asks_for_what_is_not_private(allowed):
    """A truthy accident does not."""
    with pytest.raises(NonPrivateError, match="NOT PRIVATE"):
        require_non_private("the score", allowed)
    require_non_private("the score", True)

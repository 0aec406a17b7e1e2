"""A run that takes too long is ended."""

import pytest
from attrs import evolve

from dpgm.study import run
from dpgm_core import OptionError


def test_a_run_has_its_limit(one, registered):
    """A learner that never ends, and that catches every Exception, is ended and named; the next one is run."""

    def learn(curator, inference):
        try:
            while True:
                pass
        except Exception as error:
            raise AssertionError("a component caught it") from error

    rows = run(evolve(one, learners=[registered("endless", learn), "naive-mle"], repeat=1), limit=0.2).rows
    assert rows[0].reasons == (("OutOfTime", "it took longer than 0.2 seconds", 1),)
    assert rows[1].failures == 0
    with pytest.raises(OptionError, match="positive number of seconds"):
        run(one, limit=0)
    with pytest.raises(OptionError, match="at most 100,000,000"):
        run(one, limit=1e300)

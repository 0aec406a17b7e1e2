"""A Progress is a guest: what it raises costs no budget twice and loses no release."""

import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm_core._util.progress import unfailing

STRUCTURE = dpgm.Structure.chain(dpgm.Domain.from_sizes({"a": 2, "b": 2, "c": 2}))
CODES = np.array([[0, 0, 1], [1, 1, 0], [1, 1, 1], [0, 1, 0]] * 50)


class Stop(Exception):
    """What a progress raises, as one that cancels does."""


def raising(task):
    """A Progress that raises once a task is told, and remembers what it was told until then."""
    told = []

    def progress(now, done, total):
        told.append(now)
        if now.startswith(task):
            raise Stop(now)

    return progress, told


@pytest.fixture
def run(tmp_path):
    """A fit that pays a ledger and saves its release, with a progress; what it raised, and what is left behind."""
    ledger = dpgm.Ledger.create(tmp_path / "a.ledger", name="a", budget=dpgm.Budget.pure(3), neighbours="add-remove")

    def fit(progress, **more):
        asked = {"structure": STRUCTURE, "randomness": dpgm.SeededRandomness(1), "neighbours": "add-remove", **more}
        saved = tmp_path / "a.release.dpgm"
        error = None
        try:
            dpgm.fit(CODES, budget=dpgm.Budget.pure(1), ledger=ledger, save_release=saved, progress=progress, **asked)
        except Exception as raised:
            error = raised
        return error, ledger.history(), dpgm.load_release(saved) if saved.exists() else None

    return fit


@pytest.mark.parametrize("task", ["checking", "counting"])
def test_before_the_charge_nothing_is_charged(run, task):
    """As where anything else fails while records are read; of what it raised there nothing is passed on."""
    progress, told = raising(task)
    error, charges, saved = run(progress)
    assert isinstance(error, (Stop, dpgm.DataError)) and told[-1].startswith(task)
    assert not charges and saved is None


def test_between_charge_and_release_it_is_not_heard(run):
    """The noise is paid for: it is drawn, saved and learned from."""
    progress, told = raising("adding noise")
    error, charges, saved = run(progress)
    assert error is None and told.count("adding noise") == 2
    assert [one.status for one in charges] == ["released"] and saved is not None


def test_after_the_release_it_is_kept(run):
    """One charge, in the file and in the error, as for a learner that fails; from there learning is free."""
    progress, _ = raising("learning")
    error, charges, saved = run(progress)
    assert isinstance(error, dpgm.LearningFailed) and isinstance(error.__cause__, Stop)
    assert [one.status for one in charges] == ["released"]
    assert np.array_equal(saved.tables.values, error.releases[0].tables.values)
    assert dpgm.learn(saved).model.cost == dpgm.Budget.pure(1)


def test_in_a_session_the_steps_so_far_are_kept(run):
    """A selector's rounds are paid in one charge, and what they measured until then is in the file."""
    progress, _ = raising("selecting")
    error, charges, saved = run(progress, structure="mst", workload=STRUCTURE.domain)
    assert isinstance(error, dpgm.LearningFailed) and len(charges) == 1
    assert saved is not None and len(saved.steps) == len(error.releases[0].steps) > 0


def test_an_interrupt_is_no_error_to_be_dropped():
    """Ctrl-C can come at any time, also while progress is told."""

    def interrupted(task, done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        unfailing(interrupted)("adding noise", 0, None)


def test_what_is_no_function_is_refused_before_anything(run):
    error, charges, _ = run(5)
    assert isinstance(error, dpgm.OptionError) and "progress must be a function" in str(error) and not charges

"""A fit is told where it is off its own tables, and what its structure misses."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve

import dpgm_core as dpgm
from dpgm_core import Budget, Domain, SeededRandomness, Structure, Tables
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.learning.misfit_notes import goodness_of_fit, with_goodness_of_fit

DOMAIN = Domain.from_sizes(dict.fromkeys("abcd", 3))
CHAIN = Structure.chain(DOMAIN)


class Flat:
    """Learns nothing: the uniform model, whatever the tables."""

    def check(self, structure, inference):
        pass

    def learn(self, curator, inference, *, randomness, progress):
        curator.release()
        return dpgm.Fit(model=dpgm.Model(curator.structure, Tables.zeros(curator.structure)))


def fitted(learner, seed=0, split="even", codes=None, inference="junction-tree"):
    rng = np.random.default_rng(seed)
    a = rng.choice(3, size=(4000, 1), p=[0.6, 0.3, 0.1])
    drawn = np.hstack([a, *[np.where(rng.random((4000, 1)) < 0.5, a, 2 - a) for _ in range(3)]])
    return dpgm.fit(
        drawn if codes is None else codes,
        CHAIN,
        Budget.pure(1),
        learner=learner,
        inference=inference,
        neighbours="add-remove",
        randomness=SeededRandomness(seed),
        split=split,
    )


def test_a_model_that_does_not_fit_its_tables_is_named_with_the_furthest():
    """In the fit's notes and in the model's provenance, so that a file has them."""
    done = fitted(Flat())
    (note,) = done.notes
    worst = max(done.model.misfit().items(), key=lambda one: one[1])
    assert note.startswith(
        f"table ({', '.join(worst[0])}) lies {worst[1]:.1f} standard errors from the model, and 2 more"
    )
    assert done.model.provenance["notes"] == [note]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("learner", ["eb-map", "naive-mle", "cgm-em"])
def test_learners_are_not_accused(learner):
    """Three learners, 4 data sets each: nothing is said; of right models it is in one of 1,000 fits at most."""
    for seed in range(4):
        found = fitted(learner, seed)
        assert goodness_of_fit(found.model) == ([], [])


def test_what_the_structure_misses_is_said_where_it_was_checked():
    """One sentence, with an interval; without a check none."""
    rng = np.random.default_rng(0)
    codes = rng.integers(3, size=(4000, 4))
    codes[:, 2] = np.where(rng.random(4000) < 0.8, codes[:, 0], codes[:, 2])
    done = fitted("naive-mle", split={"holdout": 0.1}, codes=codes)
    found = done.model.structure_error()
    assert done.notes[-1] == (
        f"the structure misses about {float(found.estimate):.3f} TV on pairs it did not measure "
        f"({float(found.low):.3f} to {float(found.high):.3f})"
    )
    assert found.estimate > 0.01  # c is much like a, and b, which lies between them, like neither


def test_a_model_without_a_release_is_not_judged():
    """Nothing is behind it that it could be off."""
    done = dpgm.Fit(model=dpgm.Model(CHAIN, Tables.zeros(CHAIN)))
    assert with_goodness_of_fit(done, dpgm.make("inference", "junction-tree")) is done


def test_what_exact_inference_cannot_hold_is_not_judged():
    """The fit stands as it is; a verdict is not worth an error."""
    done = fitted(Flat())
    small = done.model.using(dpgm.make("inference", {"name": "junction-tree", "max_bytes": 64}))
    bare = evolve(done, model=small, notes=())
    assert with_goodness_of_fit(bare, JunctionTree()) is bare


def test_what_was_learned_with_an_approximate_engine_is_judged_with_it(monkeypatch):
    """No exact engine is compiled for a verdict, which might take longer than the fit."""
    monkeypatch.setattr(JunctionTree, "compile", lambda *_: pytest.fail("an exact engine was compiled"))
    done = fitted(Flat(), inference="loopy-bp")
    assert "standard errors from the model" in done.notes[0]


def test_no_verdict_costs_a_release_that_is_paid_for(monkeypatch):
    """Whatever it refuses to answer: the fit is whole, and says nothing of itself."""

    def refuse(*_):
        raise dpgm.StructureError("no")

    monkeypatch.setattr(dpgm.Model, "misfit", refuse)
    done = fitted(Flat())
    assert not done.notes and done.release is not None

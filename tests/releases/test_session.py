"""All that a session handed out as one release, pooled; and a model of it."""

from fractions import Fraction

import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm_core import Budget, BudgetError, SeededRandomness, Structure, Terms, bootstrap, learn, load_model, release
from dpgm_core.releases.session import score_sensitivity, session_release
from dpgm_core.releases.steps import Choice, SessionTerms
from tests.releases.held import CODES, DOMAIN, WORKLOAD


def test_the_pool_has_every_table_once_and_none_of_the_check(files):
    """`a` was measured twice: the mean by inverse variance; `c` is summed over merged codes."""
    made, _ = files["zcdp"]
    assert made.structure.cliques == (("a",), ("b",), ("c",), ("b", "c"))
    first, last = made.steps[0], made.steps[6]
    precisions = [1 / one.measurement.noise[place].variance for one, place in ((first, 0), (last, 1))]
    mean = sum(w * one.tables["a"] for w, one in zip(precisions, (first, last), strict=True)) / sum(precisions)
    assert made.tables["a"] == pytest.approx(mean)
    assert made.variances[0] == pytest.approx(1 / sum(precisions))
    assert made.tables["c"].tolist() == [first.tables["c"][0], first.tables["c"][1:].sum()]
    assert made.published == (made,) and f"{len(made.steps)} adaptive steps" in made.guarantee()


def test_a_session_is_shown_in_a_line(files):
    """It and its steps; a fit and a selection that hold it stay readable too."""
    made, _ = files["zcdp"]
    assert repr(made).startswith(f"NoisyTables(a session of {len(made.steps)} steps, 4 tables, ")
    assert all(len(repr(one)) < 200 and "array" not in repr(one) for one in (made, *made.steps))
    assert "a holdout" in repr(next(one for one in made.steps if getattr(one, "holdout", False)))
    assert len(repr(learn(made))) < 1000


def test_merged_and_unmerged_tables_are_refused_in_words_that_say_why(files):
    """In either order: the domain file was the same, so "another domain" would puzzle whoever wrote it."""
    made, _ = files["zcdp"]
    plain = release(
        np.zeros((9, 3), int), Structure(DOMAIN, [("c",)]), Budget.zcdp(1), "gaussian", neighbours="add-remove"
    )
    for both in ([made, plain], [plain, made]):
        with pytest.raises(
            dpgm.StructureError, match=r"counted rare labels of 'c' together.*choose with merge = false"
        ):
            learn(both)


def test_a_session_without_tables_is_no_release():
    """Choices alone cannot be learned from."""
    choice = Choice(
        candidates=(("a",),), groups=((0,),), chosen=((0,),), temperature=Fraction(1, 32), grid=1, person=1, kind="pure"
    )
    opened = SessionTerms(workload=WORKLOAD, budget=Budget.pure(1), merges={})
    with pytest.raises(BudgetError, match="measured no table"):
        session_release(
            opened, [choice], Terms(neighbours="add-remove"), cost=Budget.pure(1), private=True, provenance={}
        )


def test_a_model_of_a_session(tmp_path, files):
    """Cost, guarantee, standing, misfit, bootstrap, intervals; saved and loaded; and with another release."""
    made, _ = files["zcdp"]
    done = learn(made, "naive-mle", randomness=SeededRandomness(1))
    model = done.model
    assert model.cost == made.cost and "chosen privately" in model.guarantee()
    model.save(tmp_path / "m.dpgm")
    again = load_model(tmp_path / "m.dpgm")
    assert again.guarantee() == model.guarantee() and again.cost == made.cost
    assert [step.cost for step in again.releases[0].steps] == [step.cost for step in made.steps]
    assert again.marginal(("b", "c")) == pytest.approx(model.marginal(("b", "c")))
    assert set(model.misfit()) == set(made.structure.cliques) and again.misfit() == model.misfit()
    assert model.structure_error().estimate == pytest.approx(again.structure_error().estimate)
    interval = bootstrap(model, 10, randomness=SeededRandomness(2)).intervals(("a",))
    assert (interval.low <= interval.high).all() and interval.high.shape == (3,)
    # Codes of c were merged, so its table with b tells of blocks; that of a and b was for the check alone.
    assert {one.standing(("b", "c")) for one in (model, again)} == {"by structure"}
    assert model.coarse.standing(("b", "c")) == "measured" != model.coarse.standing(("a", "b"))
    coarse = made.structure.domain
    other = release(
        np.minimum(CODES, [9, 9, 1]), Structure(coarse, [("a", "b")]), Budget.zcdp(1), "gaussian",
        neighbours="add-remove",
    )  # fmt: skip
    both = learn([made, other], "naive-mle")
    assert both.model.cost == Budget.zcdp(2) and len(both.releases) == 2
    assert "Assumed public" in both.model.guarantee()
    with pytest.raises(BudgetError, match="given twice"):
        learn([made, made], "naive-mle")


def test_the_sensitivity_of_scores():
    """Each of K moves by D records, all at once."""
    found = score_sensitivity(5, 2)
    assert (found.l0, found.l1, found.l2_squared, found.linf) == (5, 5 * 2048, 5 * 2048**2, 2048)

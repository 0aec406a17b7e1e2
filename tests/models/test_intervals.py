"""Intervals from replicates and from several synthetic data sets: what they cover, and what they refuse."""

import numpy as np
import pytest
from scipy import stats

from dpgm_core import Domain, InferenceError, Model, OptionError, Structure, Tables, combine
from dpgm_core.models.intervals import farthest, interval

TRIALS = 10_000


def analyses(m: int, sampling: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """(m, TRIALS) estimates of a truth at 0 and their variances: the model's error has variance 1, replicates vary
    about the model with variance 1, and each data set adds `sampling`."""
    rng = np.random.default_rng(seed)
    model = rng.normal(size=TRIALS)
    replicates = model + rng.normal(size=(m, TRIALS))
    return replicates + np.sqrt(sampling) * rng.normal(size=(m, TRIALS)), np.full((m, TRIALS), sampling)


@pytest.mark.parametrize(
    ("m", "sampling"), [(2, 0.0), (5, 0.0), (10, 0.05), (20, 0.3), (2, 3.0), (5, 1.0), (10, 3.0), (20, 1.0)]
)
def test_combined_intervals_cover(m, sampling):
    """Of large data sets 90 % of 10,000 independent trials, within 5 sd = .015: a false alarm has probability below
    1e-6. Without taking the synthetic sampling off, (20, .3) covers .94; with it added as for missing data, more. Of
    small ones, with T often negative or near 0, more than promised, never less; and they stay finite."""
    found = combine(*analyses(m, sampling))
    covered = np.mean((found.low <= 0) & (found.high >= 0))
    assert abs(covered - 0.9) < 0.015 if sampling < 1 else covered > 0.9
    assert np.isfinite(found.high).all()


def test_the_rule_is_the_published_one():
    """q, T, t and degrees of freedom by hand; with T negative; and where nothing varies or was sampled."""
    q, u = np.array([1.0, 2.0, 4.0, 5.0]), np.array([0.5, 0.7, 0.6, 0.2])
    found = combine(q, u, level=0.95)
    total = 1.25 * np.var(q, ddof=1) - 0.5
    degrees = 3 * (1 - 4 * 0.5 / (5 * np.var(q, ddof=1))) ** 2
    assert found.estimate == 3.0
    assert found.standard_error == pytest.approx(np.sqrt(total))
    assert found.high == pytest.approx(3 + stats.t.ppf(0.975, degrees) * np.sqrt(total))
    negative = combine(q, 100 * u, level=0.95, ratio=0.25)
    assert negative.standard_error == pytest.approx(np.sqrt(0.25 * 50))
    assert negative.low == pytest.approx(3 - stats.t.ppf(0.975, 3) * np.sqrt(0.25 * 50))
    found = combine([0.5, 0.5], [0.0, 0.0])
    assert (found.low, found.high) == (0.5, 0.5)


@pytest.mark.parametrize(
    ("estimates", "variances", "more", "words"),
    [
        ([1.0], [1.0], {}, "at least 2"),
        (1.0, 1.0, {}, "at least 2"),
        ([1.0, 2.0], [1.0], {}, "as many"),
        ([1.0, np.nan], [1.0, 1.0], {}, "finite"),
        ([1.0, 2.0], [1.0, -1.0], {}, "at least 0"),
        ([1.0, 2.0], [1.0, np.inf], {}, "finite"),
        ([1.0, 2.0], [1.0, 1.0], {"level": 1.0}, "level"),
        *(([1.0, 2.0], [1.0, 1.0], {"ratio": wrong}, "ratio") for wrong in (0, True, "1")),
    ],
)
def test_senseless_input_is_refused(estimates, variances, more, words):
    """One estimate, other lengths, NaN, negative variances, levels and ratios that are none."""
    with pytest.raises(OptionError, match=words):
        combine(estimates, variances, **more)


def test_few_replicates_are_made_up_for():
    """With 3 replicates and no bias the interval still covers 90 %: Student's t, not the normal. 5 sd are .015."""
    rng = np.random.default_rng(1)
    estimate = rng.normal(size=TRIALS)
    found = interval(estimate, estimate + rng.normal(size=(3, TRIALS)), level=0.9)
    assert 0.9 - 0.015 < np.mean((found.low <= 0) & (found.high >= 0)) < 0.96


def noisy_shares(people: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Shares of noisy counts, cut at 0, as a learner makes them of tables; noise of scale 2."""
    counts = np.maximum(people + rng.laplace(scale=2, size=people.shape), 0) + 1e-12
    return counts / counts.sum(axis=-1, keepdims=True)


def test_replicates_without_an_answer_must_not_be_left_out():
    """p(a | g) of 60 records of which 3 have g, in fits some replicate of which has none of them: intervals with
    `farthest` cover 90 % at least, those that leave such replicates out or take the estimate do not. Of about 1,500
    fits 4 standard errors are .03: 3e-5, and the seed is fixed."""
    rng, truth = np.random.default_rng(1), np.array([0.015, 0.035, 0.95])
    fits = noisy_shares(rng.multinomial(60, truth, size=2000), rng)
    refits = noisy_shares(rng.multinomial(60, fits, size=(40, 2000)), rng)
    known = fits[:, :2].sum(axis=-1) > 1e-9
    empty = refits[..., :2].sum(axis=-1) < 1e-9
    at = known & empty.any(axis=0)
    answers = refits[..., 0] / refits[..., :2].sum(axis=-1)
    estimates, answers, empty = (fits[:, 0] / fits[:, :2].sum(axis=-1))[at], answers[:, at], empty[:, at]

    def covered(filled: np.ndarray) -> float:
        found = interval(estimates, np.where(empty, filled, answers), level=0.9, within=(0.0, 1.0))
        return float(((found.low <= 0.3) & (found.high >= 0.3)).mean())

    assert covered(farthest(estimates, (0.0, 1.0))) > 0.9
    assert covered(estimates) < covered(farthest(estimates, (0.0, 1.0))) - 0.03


DOMAIN = Domain.from_dict(
    {"fin": {"labels": ["0", "1"], "unknown": "0"}, "age": {"type": "integer", "bins": [0, 10, 20], "unknown": "?"}}
)


def model_with_an_empty_replicate() -> Model:
    """p(fin = 1) is a third, and 0 in one of three replicates."""
    structure = Structure(DOMAIN, [("fin", "age")])
    theta = np.log(np.array([[2, 2, 0.1], [1, 1, 0.1]])).ravel()
    refits = np.stack([theta, theta + 0.1 * np.arange(6), np.where(np.arange(6) < 3, theta, -np.inf)])
    return Model(structure, Tables(structure, theta)).with_replicates(refits)


def test_a_replicate_without_support_counts_as_the_farther_end():
    """Entry by entry; what it was is said; nothing changes where all replicates have an answer."""
    model = model_with_an_empty_replicate()
    found = model.intervals("age", {"fin": "1"})
    own = model.marginal("age", {"fin": "1"})
    others = [one.marginal("age", {"fin": "1"}) for one in model.replicates[:2]]
    wanted = interval(own, np.stack([*others, (own < 0.5).astype(float)]), level=0.9, within=(0.0, 1.0))
    assert np.allclose(found.low, wanted.low) and np.allclose(found.high, wanted.high) and found.undefined == 1
    assert "in 1 of 3 replicates the answer is undefined" in str(found.note)
    assert "in 1 of 3 replicates" in found._repr_html_()
    whole = model.intervals("age")
    assert whole.undefined == 0 and whole.note is None


def test_an_answer_without_a_range_is_refused_where_a_replicate_has_none():
    """It names what would do; and what the model itself cannot answer stays refused."""
    model = model_with_an_empty_replicate()
    with pytest.raises(InferenceError, match=r"in 1 of 3 replicates .* within=\(low, high\)"):
        model.interval_of(lambda one: one.mean("age", {"fin": "1"}))
    found = model.interval_of(lambda one: one.mean("age", {"fin": "1"}), within=(0.0, 20.0))
    assert found.undefined == 1 and 0 <= found.low < found.estimate < found.high <= 20
    nothing = Model(model.structure, Tables(model.structure, model._refits[2])).with_replicates(model._refits)
    with pytest.raises(InferenceError, match="probability 0"):
        nothing.intervals("age", {"fin": "1"})

"""Means of groups, correlations and two-way tables: values and influence functions on tables of counts."""

import numpy as np
import pytest
from scipy.stats import contingency

from dpgm.formulas import read_formula
from dpgm.moments import Question, correlations, group_means, two_way_table
from dpgm_core import Domain
from dpgm_core.errors import InferenceError, OptionError, TooLarge

pytest.importorskip("formulaic")

DOMAIN = Domain.from_dict(
    {
        "attributes": {
            "ill": {"labels": ["no", "yes"]},
            "sex": {"labels": ["F", "M"], "unknown": "F"},
            "job": {"labels": ["none", "cook", "pilot"]},
            "age": {"type": "integer", "bins": [0, 18, 65, 99]},
            "dose": {"type": "number", "bins": [-1, 0, 1, 4], "unknown": "[-1, 0)"},
        }
    }
)
AGES, DOSES = np.array([8.5, 41.0, 82.0]), np.array([-0.5, 0.5, 2.5])


def counts_of(question: Question, seed: int = 3) -> np.ndarray:
    shape = DOMAIN.shape(question.functional.attributes)
    return np.random.default_rng(seed).integers(5, 90, shape).astype(float)


def values_of(question: Question, counts: np.ndarray) -> np.ndarray:
    table = counts.reshape(-1) / counts.sum()
    values, influence = question.functional.evaluate(table)
    assert np.abs(influence @ table).max() < 1e-12
    step = 1e-6
    for cell in range(0, len(table), max(1, len(table) // 7)):
        toward = (1 - step) * table + step * np.eye(len(table))[cell]
        away = (1 + step) * table - step * np.eye(len(table))[cell]
        slope = (question.functional.evaluate(toward)[0] - question.functional.evaluate(away)[0]) / (2 * step)
        assert np.allclose(slope, influence[:, cell], rtol=1e-5, atol=1e-6)
    return values


def asked(text: str, event: str | None = None, family=None) -> Question:
    formula = read_formula(text, DOMAIN)
    return group_means(formula, formula.response(family, event))


def test_groups_of_an_event_have_risks_differences_risk_ratios_and_odds_ratios():
    """Against statsmodels' two-by-two table; records without an answer are left out."""
    tables = pytest.importorskip("statsmodels.api").stats
    question = asked("ill ~ sex")
    counts = counts_of(question)
    table = tables.Table2x2(counts[:2, :2].T[::-1, ::-1])  # rows M, F; columns yes, no
    values = values_of(question, counts)
    risks = counts[1, :2] / counts[:2, :2].sum(axis=0)
    expected = [*risks, risks[1] - risks[0], table.log_riskratio, table.log_oddsratio]
    assert np.allclose(values, expected, rtol=1e-12)
    assert question.functional.names == (
        "p(yes): sex=F", "p(yes): sex=M", "sex=M - sex=F", "log ratio: sex=M / sex=F", "log odds ratio: sex=M / sex=F",
    )  # fmt: skip
    assert question.logarithms == (False, False, False, True, True)
    assert question.within[:2] == ((0.0, 1.0),) * 2 and question.compared == (False, False, True, True, True)


def test_standard_errors_of_ratios_are_the_classic_ones():
    """By the influence functions, without noise."""
    tables = pytest.importorskip("statsmodels.api").stats
    question = asked("ill ~ sex")
    counts = counts_of(question)
    counts[2] = 0  # nobody without an answer
    table = counts.reshape(-1) / counts.sum()
    _, influence = question.functional.evaluate(table)
    errors = np.sqrt((influence**2) @ table / counts.sum())
    classic = tables.Table2x2(counts[:2, :2].T[::-1, ::-1])
    assert np.allclose(errors[3:], [classic.log_riskratio_se, classic.log_oddsratio_se], rtol=1e-12)


def test_means_of_numbers_by_joined_groups():
    """Representative values of bins; a missing job, age or both leave a record out."""
    question = asked('age ~ C(job, Treatment("cook")):sex')
    counts = counts_of(question)
    values = values_of(question, counts)
    kept = counts[:3, :3]
    means = np.einsum("ajs,a->js", kept, AGES) / kept.sum(axis=0)
    assert np.allclose(values[:6], means[[1, 0, 2]].reshape(-1), rtol=1e-12)
    assert np.allclose(values[6:11], values[1:6] - values[0]) and np.allclose(
        values[11:], np.log(values[1:6] / values[0])
    )
    assert question.functional.names[:2] == ("mean: job=cook, sex=F", "mean: job=cook, sex=M")


def test_numbers_below_zero_have_no_ratios_and_one_side_is_the_whole():
    question = asked("dose ~ I(job == 'cook')")
    assert question.functional.names == (
        "mean: job=not cook", "mean: job=cook", "job=cook - job=not cook"
    )  # fmt: skip
    values_of(question, counts_of(question))
    whole = asked("dose ~ 1")
    counts = counts_of(whole)
    assert np.allclose(values_of(whole, counts), counts @ DOSES / counts.sum()) and whole.functional.names == ("mean",)


def test_correlations_are_those_of_the_model():
    """For each pair of columns, over records with both numbers, with the spread inside bins."""
    from dpgm_core.models.numeric import correlation_of, number_distribution

    domain = Domain.from_dict({"attributes": {**DOMAIN.to_dict()["attributes"], "day": {
        "type": "date", "min": "2020-01-01", "max": "2022-12-31", "bins": 3}}})  # fmt: skip
    question = correlations(read_formula("~ age + dose + day", domain))
    shape = domain.shape(question.functional.attributes)
    counts = np.random.default_rng(3).integers(5, 90, shape).astype(float)
    table = counts / counts.sum()
    values, influence = question.functional.evaluate(table.reshape(-1))
    dists = [number_distribution(domain[name]) for name in ("age", "dose", "day")]
    for at, (one, other) in enumerate([(0, 1), (0, 2), (1, 2)]):
        pair = table.sum(axis=3 - one - other)
        assert values[at] == pytest.approx(correlation_of((dists[one], dists[other]), pair), abs=1e-12)
    assert np.abs(influence @ table.reshape(-1)).max() < 1e-12
    plain = correlations(read_formula("~ age + dose", DOMAIN))
    values_of(plain, counts_of(plain))


def test_two_way_tables_have_shares_and_differences_from_independence():
    """Also where the columns are asked for in another order than the domain's; missing jobs are left out."""
    for text in ("~ sex + job", "~ job + sex"):
        question = two_way_table(read_formula(text, DOMAIN))
        counts = counts_of(question)
        values = values_of(question, counts)
        kept = counts[:2, :3] if text == "~ sex + job" else counts[:3, :2]
        shares = kept / kept.sum()
        assert np.allclose(values[: question.shown], shares.reshape(-1), rtol=1e-12)
        apart = shares - contingency.expected_freq(kept) / kept.sum()
        assert np.allclose(values[question.shown :], apart[1:, 1:].reshape(-1), atol=1e-14)


@pytest.mark.parametrize(
    ("text", "event", "says"),
    [("job ~ sex", None, "'job' have no mean; name an event"), ("ill ~ sex + job", None, "the labels of one column")],
)
def test_groups_that_are_none_are_refused(text, event, says):
    with pytest.raises(OptionError, match=says):
        asked(text, event)


def test_empty_groups_and_large_questions_are_refused():
    question = asked("ill ~ sex")
    counts = counts_of(question)
    counts[:, 1] = 0
    with pytest.raises(InferenceError, match="ask about groups that occur"):
        question.functional.evaluate(counts.reshape(-1) / counts.sum())
    large = Domain.from_sizes({"a": 2, "b": 600, "c": 600})
    with pytest.raises(TooLarge, match="name fewer columns"):
        formula = read_formula("a ~ b:c", large)
        group_means(formula, formula.response())

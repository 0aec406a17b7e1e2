"""Formulas: what is read, what never reaches formulaic, and designs and fits against patsy and statsmodels."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgm.formulas import read_formula
from dpgm_core import Domain
from dpgm_core.errors import DpgmError, OptionError, TooLarge

formulaic = pytest.importorskip("formulaic")

DOMAIN = Domain.from_dict(
    {
        "attributes": {
            "income": {"labels": ["low", "high"]},
            "sex": {"labels": ["F", "M"], "unknown": "F"},
            "job": {"labels": ["none", "cook", "pilot"]},
            "age": {"type": "integer", "bins": [0, 18, 65, 99]},
            "visits": {"type": "integer", "labels": ["0", "1", "2"], "unknown": "0"},
            "hours": {"type": "integer", "bins": [0, 20, "inf"]},
            "education-num": {"labels": ["a", "b"], "unknown": "a"},
            "C": {"labels": ["x", "y"], "unknown": "x"},
        }
    }
)
OF_ROWS = "depends on the rows, which an analysis of a model does not have; use age or C(age)"
#: All that formulaic may see.
OURS = re.compile(r"[01]( \+ f\d+(:f\d+)*)*")


@pytest.fixture
def seen(monkeypatch):
    found, real = [], formulaic.model_matrix

    def sentinel(formula, *arguments, **options):
        found.append(formula)
        return real(formula, *arguments, **options)

    monkeypatch.setattr(formulaic, "model_matrix", sentinel)
    return found


# --- What is read ---


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("income ~ age + sex", ["Intercept", "age", "sex[T.M]"]),
        ("income ~ 1", ["Intercept"]),
        ("income ~ job - 1", ["job[none]", "job[cook]", "job[pilot]"]),
        ("income ~ 0 + age", ["age"]),
        ("income ~ -1 + age", ["age"]),
        ("income ~ `education-num`:age", ["Intercept", "`education-num`[a]:age", "`education-num`[b]:age"]),
        ('income ~ C(job, Treatment("cook"))', ["Intercept", *(f'C(job, Treatment("cook"))[T.{one}]' for one in
                                                              ("none", "pilot"))]),
        ("income ~ I(job == 'cook') + C", ["Intercept", 'I(job == "cook")', "C[T.y]"]),
        ("income ~ C(age)", ["Intercept", "C(age)[T.18-64]", "C(age)[T.65-99]"]),
        ("income ~ sex + C(sex) + sex*sex", ["Intercept", "sex[T.M]"]),
        ("income ~ sex*visits", ["Intercept", "sex[T.M]", "visits", "sex[T.M]:visits"]),
    ],
)  # fmt: skip
def test_coefficients_have_the_names_of_statsmodels(text, names):
    assert list(read_formula(text, DOMAIN).design().names) == names


def test_terms_and_attributes():
    """The outcome first; terms by their number of factors, each with its columns once."""
    formula = read_formula('income ~ age*sex + I(job == "cook"):C(job)', DOMAIN)
    assert formula.attributes == ("income", "age", "sex", "job")
    assert formula.term_attributes == (("age",), ("sex",), ("age", "sex"), ("job",))
    assert read_formula("~ age + visits", DOMAIN).attributes == ("age", "visits")


@pytest.mark.parametrize("text", [
    "age + sex", "sex*job", "sex:job", "0 + sex:job", "0 + job + age:job", "age:sex + job", "sex*job*visits",
    "0 + age*job",
])  # fmt: skip
def test_designs_span_what_patsy_spans(text):
    """Columns may have another order, yet of each term there are as many; cells with a missing value are left out."""
    patsy, pandas = pytest.importorskip("patsy"), pytest.importorskip("pandas")
    formula = read_formula(f"income ~ {text}", DOMAIN)
    design = formula.design()
    labels = [DOMAIN[name].labels for name in formula.covariates]
    frame = pandas.DataFrame(list(itertools.product(*labels)), columns=list(formula.covariates))
    assert design.included.tolist() == (frame != "missing").all(axis=1).tolist()
    frame = frame[design.included]
    for name in formula.covariates:
        numbers = {"age": {"0-17": 8.5, "18-64": 41.0, "65-99": 82.0}, "visits": {"0": 0.0, "1": 1.0, "2": 2.0}}
        kept = [one for one in DOMAIN[name].labels if one != "missing"]
        frame[name] = frame[name].map(numbers[name]) if name in numbers else pandas.Categorical(frame[name], kept)
    expected = np.asarray(patsy.dmatrix(text, frame))
    mine = design.matrix[design.included]
    assert mine.shape == expected.shape and np.linalg.matrix_rank(np.hstack([mine, expected])) == mine.shape[1]
    assert sorted(map(tuple, mine.T.tolist())) == sorted(map(tuple, expected.T.tolist()))
    assert not design.matrix[~design.included].any()


@pytest.mark.parametrize(
    ("text", "options", "family", "event", "values"),
    [
        ("income ~ 1", {}, "logistic", "high", [0, 1, 0]),
        ("income ~ 1", {"event": "low"}, "logistic", "low", [1, 0, 0]),
        ("income ~ 1", {"family": "linear"}, "linear", "high", [0, 1, 0]),
        ("income ~ 1", {"family": "multinomial"}, "multinomial", None, [[0], [1], [0]]),
        ("age ~ 1", {}, "linear", None, [8.5, 41, 82, 0]),
        ("age ~ 1", {"event": "70"}, "logistic", "65-99", [0, 0, 1, 0]),
        ("hours ~ 1", {}, "logistic", "20+", [0, 1, 0]),
        ("visits ~ 1", {"family": "poisson"}, "poisson", None, [0, 1, 2]),
        ("job ~ 1", {}, "multinomial", None, [[0, 0], [1, 0], [0, 1], [0, 0]]),
        ('C(job, Treatment("cook")) ~ 1', {}, "multinomial", None, [[1, 0], [0, 0], [0, 1], [0, 0]]),
        ("C(age) ~ 1", {}, "multinomial", None, [[0, 0], [1, 0], [0, 1], [0, 0]]),
        ('I(job == "cook") ~ 1', {"family": "poisson"}, "poisson", "cook", [0, 1, 0, 0]),
    ],
)
def test_the_outcome_gives_the_family(text, options, family, event, values):
    found = read_formula(text, DOMAIN).response(**options)
    assert (found.family, found.event, found.values.tolist()) == (family, event, values)
    outcome = DOMAIN[read_formula(text, DOMAIN).attributes[0]]
    assert found.included.tolist() == [label != "missing" for label in outcome.labels]


# --- What is refused ---


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("income ~ agee", "income ~ agee: the domain has no column 'agee'; did you mean 'age'?"),
        ("income ~ center(age)", f"center(age) {OF_ROWS}"),
        ("income ~ bs(age, df=3)", f"bs(age, df=3) {OF_ROWS}"),
        ("income ~ np.log(age)", "np.log(age) is no part of a formula; use age or C(age)"),
        ("income ~ __import__('os').system('true')", "__import__('os') is no part of a formula; a formula has"),
        ("income ~ hours", "the bin '20+' of 'hours' has no end, so its values have no mean; use C(hours) or "
         'I(hours == "20+")'),
        ("income ~ job + sex + C(sex, Treatment('M'))", 'singular: sex and C(sex, Treatment("M")) say the same'),
        ("income ~ age + C(age) + sex", "the design is singular: age and C(age) say the same; leave one of them out"),
        ("income ~ age + I(sex == 'M') + visits + sex", 'singular: I(sex == "M") and sex say the same'),
        ("income ~ 0", "the right side is empty"),
        ("income ~ age + income", "'income' stands on both sides"),
        ("income ~ age - sex", "only the intercept can be taken away"),
        ("income", "at its end; a formula is OUTCOME ~ TERM + TERM"),
        ("income ~ age +", "cannot be read at its end"),
        ("income ~ age ~ sex", "cannot be read at '~ sex'"),
        ("income ~ I(age ** 2)", "I(...) compares a column with a label"),
        ("income ~ {age}", "cannot be read at '{age}'"),
        ("income ~ .", "cannot be read at '.'"),
        ("income ~ C(job, Sum)", "Treatment(\"label\"), which names the reference"),
        ("income ~ C(job, Treatment(cook))", "labels stand in quotes"),
        ("income ~ C(job, Treatment('cok'))", "did you mean 'cook'?"),
        ("income ~ I(job == 'missing')", "'missing' stands for missing values of 'job'"),
        ("income ~ " + "*".join(["age", "sex", "job", "visits", "C", *["C(sex)"] * 4]), "* joins at most 8"),
        ("", "a formula is a text"),
        ("income ~ " + "age + " * 2000 + "sex", "has at most 10,000 letters"),
    ],
)  # fmt: skip
def test_refusals_name_what_is_wrong_and_reach_no_formulaic(seen, text, says):
    with pytest.raises(OptionError) as refused:
        read_formula(text, DOMAIN).design()
    assert says in str(refused.value) and "\n" not in str(refused.value)
    # A singular design alone is found in its columns.
    assert all(OURS.fullmatch(one) for one in seen) and (not seen or "singular" in says)


@pytest.mark.parametrize(
    ("text", "options", "says"),
    [
        ("~ age", {}, "needs an outcome before ~"),
        ("hours ~ 1", {"family": "linear"}, "the bin '20+' of 'hours' has no end"),
        ("age ~ 1", {"family": "logistic"}, "name the event of a logistic regression"),
        ("job ~ 1", {"family": "poisson"}, "'job' has no numbers for the poisson family; name an event"),
        ("job ~ 1", {"family": "multinomial", "event": "cook"}, "a multinomial regression has no event"),
        ("job ~ 1", {"event": "missing"}, "stands for missing values"),
        ("job ~ 1", {"family": "gamma"}, "the family is one of linear, logistic, poisson, multinomial"),
        ("I(job == 'cook') ~ 1", {"event": "pilot"}, "names its event itself"),
    ],
)
def test_families_that_do_not_fit_are_refused(text, options, says):
    with pytest.raises(OptionError, match=re.escape(says)):
        read_formula(text, DOMAIN).response(**options)


def test_sizes_are_refused_before_anything_is_made(seen):
    large = Domain.from_dict({"attributes": {f"x{one}": {"size": 200, "unknown": 0} for one in range(4)}})
    with pytest.raises(TooLarge, match=r"columns have 8,000,000 combinations, more than 1,048,576; leave some out"):
        read_formula("x0 ~ x1 + x2", large)
    with pytest.raises(TooLarge, match="leave terms out"):
        read_formula("~ x1:x2", large).design()
    with pytest.raises(OptionError, match="has 6 coefficients, but its columns only 4 combinations"):
        read_formula("income ~ sex*C + I(sex == 'M') + C(sex, Treatment('M'))", DOMAIN).design()
    assert not seen


WORDS = st.sampled_from(
    [*DOMAIN.names, "`age`", "C(", "I(", ")", "(", "~", "+", "-", ":", "*", "1", "0", "2", "==", '"cook"', "'M'", ",",
     "Treatment(", "center(", "__import__", "os", ".", "eval(", "lambda", "[", "{", "@", "\\", "`", "'", "é", "\n"]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(max_size=40), st.lists(WORDS, max_size=12).map(" ".join)))
def test_whatever_the_text_formulaic_sees_only_numbered_columns(text):
    """It is read or refused in one line."""
    found = []

    def sentinel(formula, *_, **__):
        found.append(formula)
        raise OptionError("seen")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(formulaic, "model_matrix", sentinel)
        for start in ("", "income ~ "):
            try:
                read_formula(start + text, DOMAIN).design()
            except DpgmError as error:
                assert "\n" not in str(error)
    assert all(OURS.fullmatch(one) for one in found)


# --- Fits ---


@pytest.mark.parametrize(
    ("text", "options", "family"),
    [
        ("income ~ age + sex*job", {}, "Binomial"),
        ("age ~ C(visits) + job", {}, "Gaussian"),
        ("visits ~ age + job", {"family": "poisson"}, "Poisson"),
    ],
)
def test_regressions_are_those_of_statsmodels_on_weighted_cells(text, options, family):
    """To 1e-8, whatever the table."""
    statsmodels = pytest.importorskip("statsmodels.api")
    regression = read_formula(text, DOMAIN).regression(**options)
    table = np.random.default_rng(5).dirichlet(np.ones(len(regression.design)))
    values, _ = regression.evaluate(table)
    keep = regression.included
    fitted = statsmodels.GLM(
        regression.outcome[keep, 0],
        regression.design[keep],
        family=getattr(statsmodels.families, family)(),
        freq_weights=table[keep] * 1e5,
    ).fit(tol=1e-14, maxiter=100)
    assert np.abs(values - fitted.params).max() <= 1e-8 * max(1.0, np.abs(fitted.params).max())


def test_a_multinomial_regression_is_that_of_statsmodels():
    """MNLogit takes no weights, so cells are repeated; equations come one after another."""
    statsmodels = pytest.importorskip("statsmodels.api")
    regression = read_formula("job ~ age + sex", DOMAIN).regression()
    counts = np.random.default_rng(5).integers(1, 40, len(regression.design)) * regression.included
    values, _ = regression.evaluate(counts / counts.sum())
    classes = np.where(regression.outcome[:, 0] == 1, 1, np.where(regression.outcome[:, 1] == 1, 2, 0))
    fitted = statsmodels.MNLogit(np.repeat(classes, counts), np.repeat(regression.design, counts, axis=0)).fit(
        method="newton", tol=1e-14, disp=False
    )
    assert np.abs(values - np.asarray(fitted.params).T.reshape(-1)).max() <= 1e-8
    assert regression.names[:4] == (
        "job=cook: Intercept",
        "job=cook: age",
        "job=cook: sex[T.M]",
        "job=pilot: Intercept",
    )

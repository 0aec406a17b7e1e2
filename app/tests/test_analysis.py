"""Analyses of a model: with exact tables they are those of the records, and what no table holds is named."""

import json

import numpy as np
import pytest
from attrs import evolve

import dpgm
from dpgm import Budget, Domain, SeededRandomness, Structure
from dpgm.analysis import Analysis, analyse
from dpgm_core.errors import DataError, DpgmError, OptionError

pytest.importorskip("formulaic")

DOMAIN = Domain.from_dict(
    {
        "attributes": {
            "income": {"labels": ["low", "high"], "unknown": "low"},
            "sex": {"labels": ["F", "M"], "unknown": "F"},
            "job": {"labels": ["none", "cook", "pilot"], "unknown": "none"},
            "age": {"type": "integer", "bins": [0, 18, 65, 99]},
            "town": {"labels": ["A", "B"], "unknown": "A"},
        }
    }
)
#: So much budget that discrete noise is 0 in all draws.
EXACT = Budget.pure(10_000)


def records(count: int = 4000) -> np.ndarray:
    """Codes of records in which all columns but town depend on each other; 4 % have no age."""
    rng = np.random.default_rng(7)
    sex, job = rng.integers(0, 2, count), rng.choice(3, count, p=[0.5, 0.3, 0.2])
    age = np.where(rng.random(count) < 0.04, 3, np.clip(rng.integers(0, 3, count) + (job == 2), 0, 2))
    income = rng.random(count) < 1 / (1 + np.exp(0.4 - 0.5 * sex - 0.6 * (job == 2)))
    return np.stack([income, sex, job, age, rng.integers(0, 2, count)], axis=1).astype(int)


def learned(cliques, budget=EXACT, seed: int = 1, options: dict | None = None) -> dpgm.Model:
    release = dpgm.release(
        records(), Structure(DOMAIN, cliques), budget, neighbours="add-remove", randomness=SeededRandomness(seed)
    )
    return dpgm.learn(release, {"name": "eb-map", **(options or {})}).model


@pytest.fixture(scope="module")
def exact() -> dpgm.Model:
    return learned([("income", "sex", "job", "age"), ("town",)])


@pytest.fixture(scope="module")
def chain() -> dpgm.Model:
    return learned([("income", "sex"), ("sex", "job"), ("job", "age"), ("town",)], Budget.pure(1))


@pytest.mark.parametrize(
    ("text", "options", "family"),
    [
        ("income ~ age + C(job)*sex", {}, "Binomial"),
        ("income ~ age + job", {"event": "low"}, "Binomial"),
        ("age ~ job + sex", {}, "Gaussian"),
        ("I(job == 'pilot') ~ sex", {"family": "poisson"}, "Poisson"),
    ],
)
def test_without_noise_a_regression_is_that_of_the_records(exact, text, options, family):
    """Of statsmodels on the rows without a missing value, to 1e-8, although the learner shrinks."""
    statsmodels = pytest.importorskip("statsmodels.api")
    found = analyse(exact, text, **options)
    regression = dpgm.formulas.read_formula(text, DOMAIN).regression(**options)
    cells = np.ravel_multi_index(
        tuple(records()[:, DOMAIN.names.index(name)] for name in regression.attributes),
        DOMAIN.shape(regression.attributes),
    )
    cells = cells[regression.included[cells]]
    fitted = statsmodels.GLM(
        regression.outcome[cells, 0], regression.design[cells], family=getattr(statsmodels.families, family)()
    ).fit(tol=1e-14, maxiter=100, cov_type="HC0")
    assert np.abs(found.estimates.estimate - fitted.params).max() < 1e-8
    assert np.allclose(found.estimates.standard_error, fitted.bse, rtol=0.05)
    assert found.family == regression.family and not found.not_promised


def test_without_noise_groups_tables_and_correlations_are_those_of_the_records(exact):
    """The independence test is near scipy's, which takes its variance from independence itself."""
    from scipy.stats import chi2_contingency

    codes = records()
    means = analyse(exact, "income ~ sex", groups=True)
    shares = [codes[codes[:, 1] == sex, 0].mean() for sex in (0, 1)]
    # One step from the learner's table, whose shrinkage here is small.
    assert np.allclose(means.estimates.estimate[:3], [*shares, shares[1] - shares[0]], atol=1e-6)
    table = analyse(exact, "~ income + job")
    counts = np.array([[((codes[:, 0] == i) & (codes[:, 2] == j)).sum() for j in range(3)] for i in range(2)])
    assert np.allclose(table.estimates.estimate[:6], counts.reshape(-1) / len(codes), atol=1e-6)
    assert table.names[0] == "income=low, job=none" and len(table.names) == 6
    assert table.test.degrees == 2 and table.test.statistic == pytest.approx(chi2_contingency(counts)[0], rel=0.1)


def test_numbers_of_wide_bins_are_those_of_the_model():
    """Without noise: means of all and of a group, with 2 % in a bin 47 times as wide, near its low end."""
    domain = Domain.from_dict({"w": {"type": "number", "bins": [0, 10, 20, 30, 500]}, "sex": ["F", "M"]})
    codes = np.stack([np.repeat([0, 1, 2, 3], [900, 800, 260, 40]), np.arange(2000) % 2], axis=1)
    release = dpgm.release(
        codes, Structure(domain, [("w", "sex")]), EXACT, neighbours="add-remove", randomness=SeededRandomness(1)
    )
    model = dpgm.learn(release, {"name": "eb-map"}).model
    assert model.mean("w") < 13
    assert analyse(model, "w ~ sex").estimates.estimate[0] == pytest.approx(model.mean("w", {"sex": "F"}), rel=1e-3)
    found = analyse(model, "w ~ 1", groups=True).estimates
    assert found.estimate[0] == pytest.approx(model.mean("w"), rel=1e-3)


@pytest.mark.landing
def test_independent_columns_pass_the_test_of_independence(exact):
    """At its level, over tables whose counts are Poisson: the rate of p < .1 is within four standard errors of .1."""
    rng, low, repeats = np.random.default_rng(2), 0, 120
    domain = Domain.from_sizes({"a": 2, "b": 3})
    for seed in range(repeats):
        codes = np.stack([rng.integers(0, 2, 800), rng.choice(3, 800, p=[0.5, 0.3, 0.2])], axis=1)
        release = dpgm.release(
            codes, Structure(domain, [("a", "b")]), Budget.pure(1), neighbours="add-remove",
            randomness=SeededRandomness(seed), terms=None,
        )  # fmt: skip
        low += analyse(dpgm.learn(release).model, "~ a + b").test.p_value < 0.1
    assert abs(low / repeats - 0.1) < 4 * np.sqrt(0.1 * 0.9 / repeats)


def test_what_no_table_holds_is_named_and_not_promised(chain):
    """With its table, in text and in plain values; an answer inside a table is measured."""
    found = analyse(chain, "income ~ job")
    assert set(found.not_promised) >= {"job[T.cook]"} and "Their intervals are not promised" in str(found)
    assert "income x job" in str(found) and "(not promised)" in str(found)
    plain = {one["name"]: one for one in found.to_dict()["estimates"]}["job[T.cook]"]
    assert (
        plain["promised"] is False and "p_value" not in plain and plain["missing"][0]["attributes"] == ["income", "job"]
    )
    assert plain["exp_low"] < plain["exp_estimate"] < plain["exp_high"]
    measured = analyse(chain, "income ~ sex")
    assert not measured.not_promised and "All coefficients are measured" in str(measured)
    assert sum(measured.to_dict()["estimates"][0]["variance_shares"].values()) == pytest.approx(1)
    untested = analyse(chain, "~ income + job")
    assert untested.test is None and "no test of independence" in str(untested)


def test_an_unstable_regression_promises_nothing(chain):
    """Where the corrected equation has no root near, whatever the tables hold."""
    found = analyse(chain, "income ~ sex")
    unstable = evolve(found, estimates=evolve(found.estimates, unstable=np.ones(2, dtype=bool)))
    assert not found.not_promised and unstable.not_promised == unstable.names
    assert "measured, unstable (not promised)" in str(unstable) and "p_value" not in unstable.to_dict()["estimates"][0]


def test_a_label_that_nobody_has_spoils_no_analysis():
    """As `other` of a domain that was found: its coefficient is not defined, and would make the others unstable.

    Over 20 seeds no number is unstable, and each is within five standard errors of that without noise: 1e-4 for all.
    """
    every = [*DOMAIN][1:]
    sex, job = (evolve(DOMAIN[name], labels=(*DOMAIN[name].labels, "other")) for name in ("sex", "job"))
    domain = Domain([DOMAIN["income"], sex, job, *every[2:]])
    truth = {}
    for seed, budget in enumerate([EXACT, *[Budget.pure(1)] * 20]):
        release = dpgm.release(
            records(), Structure(domain, [("income", "sex", "job"), ("age",), ("town",)]), budget,
            neighbours="add-remove", randomness=SeededRandomness(seed), terms=None,
        )  # fmt: skip
        model = dpgm.learn(release).model
        for text in ("income ~ sex + C(job)", "~ sex + job", "job ~ sex"):
            found = analyse(model, text)
            assert not found.not_promised and not any("other" in name for name in found.names)
            if budget is EXACT:
                truth[text] = found.estimates.estimate
            error = np.abs(found.estimates.estimate - truth[text])
            assert (error <= 5 * found.estimates.standard_error + 1e-9).all()
            assert any("labels that nobody has: 'other' of" in note for note in found.notes)
            assert found.test is not None if text[0] == "~" else True
    named = analyse(model, 'income ~ C(job, Treatment("other"))')
    assert named.not_promised == named.names and not any("nobody" in note for note in named.notes)
    event = analyse(model, "sex ~ income", event="other", groups=True)
    assert event.names[0] == "p(other): income=low" and not any("nobody" in note for note in event.notes)
    codes = records()
    codes[:, 1], codes[:, 0] = 0, np.where(codes[:, 2] == 0, 0, codes[:, 0])
    release = dpgm.release(
        codes, Structure(domain, [("income", "sex", "job"), ("age",), ("town",)]), EXACT, neighbours="add-remove",
        randomness=SeededRandomness(1), terms=None,
    )  # fmt: skip
    model = dpgm.learn(release).model
    with pytest.raises(OptionError, match="'sex' has no two labels to compare, but for labels that nobody has"):
        analyse(model, "income ~ sex")
    with pytest.raises(OptionError, match="'income' has one label only, as far as the tables tell"):
        analyse(model, "income ~ age", given={"job": "none"})


def test_text_says_what_enters_and_what_is_left_out(chain):
    shown = str(analyse(chain, "age ~ job", level=0.9))
    assert "A record counts with the mean of its bin in age." in shown and "[0.05" in shown and "0.95]" in shown
    assert "Records with a missing value in age are left out." in shown
    assert "exp(coef)" not in shown and "exp(coef)" in str(analyse(chain, "income ~ sex"))
    assert "mean of its bin" not in str(analyse(chain, "income ~ C(age)"))
    assert repr(analyse(chain, "income ~ sex")) == "Analysis('income ~ sex', 2 numbers)"


def test_what_has_no_error_or_no_promise_has_no_p_value(chain):
    """A correlation with a constant has none; a table of one column is refused; `p_values` are those printed."""
    domain = Domain.from_dict({"x": ["u", "v"], "k": {"bins": [0, 10], "null_values": []}, "one": ["only"]})
    codes = np.stack([np.arange(200) % 2, np.zeros(200), np.zeros(200)], axis=1).astype(int)
    model = dpgm.learn(
        dpgm.release(codes, Structure(domain, [("x", "k"), ("one",)]), EXACT, neighbours="add-remove"), "eb-map"
    ).model
    constant = analyse(model, "k ~ 1")
    assert np.isnan(constant.p_values).all() and "p_value" not in constant.to_dict()["estimates"][0]
    json.dumps(constant.to_dict(), allow_nan=False)
    for text in ("~ x + k", '~ x + I(one == "only")'):
        with pytest.raises(OptionError, match="has no two labels to compare"):
            analyse(model, text)
    found = analyse(chain, "income ~ sex + age", groups=False)
    assert np.isnan(found.p_values).tolist() == [not row[4] for row in found.rows()]
    assert np.isnan(found.p_values).any()


def test_probabilities_lie_between_0_and_1_as_the_ends_of_their_intervals_do(chain):
    """Claim: a corrected share below 0 is printed and written as 0; differences keep their sign."""
    for text, options in (("~ income + sex", {}), ("income ~ sex", {"groups": True})):
        found = analyse(chain, text, **options)
        low = evolve(found, estimates=evolve(found.estimates, estimate=found.estimates.estimate - 2))
        plain = [one["estimate"] for one in low.to_dict()["estimates"]]
        shares = slice(0, 4 if "~ income" in text else 2)
        assert plain[shares] == [0] * len(plain[shares]) and all(row[1] == "0.0000" for row in low.rows()[shares])
        assert all(one < 0 for one in plain[shares.stop :])


def test_an_event_that_one_group_rules_out_leaves_the_means_of_all():
    """Claim: only what divides by 0 is left out, by name."""
    rule = {"x": {"columns": ["ill", "job"], "impossible": [["yes", "cook"]]}}
    labels = {"ill": ["no", "yes"], "job": ["none", "cook", "pilot"]}
    attributes = {name: {"labels": one, "unknown": one[0]} for name, one in labels.items()}
    domain = Domain.from_dict({"attributes": attributes, "constraints": rule})
    job = np.arange(900) % 3
    rows = np.stack([(np.arange(900) % 2) * (job != 1), job], axis=1)
    structure, terms = Structure(domain, [("ill", "job")]), {"neighbours": "add-remove"}
    release = dpgm.release(rows, structure, Budget.pure(1), **terms, randomness=SeededRandomness(1))
    model = dpgm.learn(release, "eb-map").model
    found = analyse(model, "ill ~ job", groups=True)
    assert found.names[:3] == ("p(yes): job=none", "p(yes): job=cook", "p(yes): job=pilot") and len(found.names) == 7
    assert found.names[5:] == ("log ratio: job=pilot / job=none", "log odds ratio: job=pilot / job=none")
    assert "Not given, as the model has probability 0 for what it divides by: log ratio: job=cook" in str(found)
    assert found.estimates.estimate[1] == pytest.approx(0, abs=0.05)


def test_conditions(chain):
    """Of records with a label; its attribute is not in the formula."""
    whole, part = analyse(chain, "income ~ 1"), analyse(chain, "income ~ 1", given={"sex": "M"})
    assert part.estimates.estimate[0] > whole.estimates.estimate[0]
    with pytest.raises(DpgmError, match="both asked for and given"):
        analyse(chain, "income ~ sex", given={"sex": "M"})


def test_rows_of_unknown_origin_are_refused(chain):
    """Arrays, tables without a stamp or of another model, and rows under a condition may be of people."""
    drawn = chain.sample(50, randomness=SeededRandomness(4))
    for rows in (records(), drawn.replace_schema_metadata(None), drawn.to_pydict()):
        with pytest.raises(DataError, match="rows without a stamp may hold records of people"):
            analyse(chain, "income ~ sex", rows=rows)
    stamp = json.loads(drawn.schema.metadata[b"dpgm"])
    for change, message in (
        ({"guarantee": "none"}, "drawn from another model"),
        ({"given": {"sex": "F"}}, "condition"),
    ):
        other = drawn.replace_schema_metadata({"dpgm": json.dumps(stamp | change)})
        with pytest.raises(DataError, match=message):
            analyse(chain, "income ~ sex", rows=other)


def test_rows_of_the_model_give_its_answer(chain, tmp_path):
    """As far as tables hold it, whatever the rows' chance; a file, or rows in memory."""
    model = analyse(chain, "income ~ sex")
    assert isinstance(model, Analysis)
    rows = chain.sample(3000, randomness=SeededRandomness(4))
    found = analyse(chain, "income ~ sex", rows=rows)
    errors = model.estimates.standard_error
    assert (np.abs(found.estimates.estimate - model.estimates.estimate) < 0.2 * errors).all()
    assert (found.estimates.uncorrected != model.estimates.uncorrected).any()
    with pytest.raises(OptionError, match="leave the condition out"):
        analyse(chain, "income ~ 1", rows=rows, given={"sex": "M"})
    plain = tmp_path / "rows.csv"
    plain.write_text("income,sex\nlow,F\n")
    with pytest.raises(DataError, match="no stamp of dpgm sample"):
        analyse(chain, "income ~ sex", rows=plain)


@pytest.mark.parametrize(
    ("text", "options", "says"),
    [
        ("~ age", {}, "lists columns, as in"),
        ("~ sex + C(sex)", {}, "lists columns, as in"),
        ("~ sex + I(sex == 'M')", {}, "names each column once"),
        ("~ sex + job + age", {}, "a two-way table has two columns"),
        ("~ sex + job", {"groups": True}, "go with an outcome"),
        ("income ~ sex", {"groups": True, "family": "linear"}, "groups have means, and no family"),
        ("income ~ sex", {"level": 95}, "level"),
    ],
)
def test_questions_that_fit_nothing_are_refused(chain, text, options, says):
    with pytest.raises(OptionError, match=says):
        analyse(chain, text, **options)


def test_a_model_without_a_release_is_refused():
    structure = Structure(DOMAIN, [("income", "sex")])
    with pytest.raises(OptionError, match="the model carries no release, so nothing is known of its noise"):
        analyse(dpgm.Model(structure, dpgm.Tables.zeros(structure)), "income ~ sex")
    assert dpgm.analyse is analyse


def test_rows_of_a_person_are_said_to_count_as_independent(exact):
    """A note where a person may have several rows, with the factor of the worst case; none where each has one."""
    assert not any("rows" in note for note in analyse(exact, "income ~ sex").notes)
    release = learned([("income", "sex")]).releases[0]
    several = evolve(release, terms=evolve(release.terms, person="id", rows_per_person=9))
    notes = analyse(dpgm.learn(several, "eb-map").model, "income ~ sex").notes
    assert any("rows as independent" in note and "up to 3 times too narrow" in note for note in notes)

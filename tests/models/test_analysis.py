"""Analyses: what the correction removes, what its errors are, and what it says no table tells."""

import itertools

import numpy as np
import pytest
from attrs import evolve, frozen

import dpgm_core as dpgm
from dpgm_core import Budget, Domain, Model, OptionError, SeededRandomness, Structure, StructureError, Tables, TooLarge
from dpgm_core.models import analysis, effects
from dpgm_core.models.analysis import estimate
from dpgm_core.models.corrections import correct_shares
from dpgm_core.models.functionals import Moments, Regression
from tests.fixtures import seeded
from tests.models.enumerated import cells_of, coded_regression, merged_session, uniform_model

SIZES = {"a": 3, "b": 2, "c": 2, "y": 2}
DOMAIN = Domain.from_sizes(SIZES)
NAMES = DOMAIN.names
SHAPE = tuple(SIZES.values())
CODES = np.indices(SHAPE).reshape(4, -1).astype(float)
PAIRS = Structure(DOMAIN, list(itertools.combinations(NAMES, 2)))
TRIPLES = Structure(DOMAIN, list(itertools.combinations(NAMES, 3)))


def loglinear(sizes, order, scale, seed):
    """A distribution with effects of up to `order` attributes."""
    rng, logs = np.random.default_rng(seed), np.zeros(sizes)
    for size in range(1, order + 1):
        for axes in itertools.combinations(range(len(sizes)), size):
            logs = logs + scale * rng.normal(size=[one if at in axes else 1 for at, one in enumerate(sizes)])
    return np.exp(logs) / np.exp(logs).sum()


TRUTH = loglinear(SHAPE, 3, 0.4, 5)
LOGISTIC = coded_regression(DOMAIN, NAMES)
SHARE = Moments(
    attributes=("a", "y"),
    names=("y among a=0",),
    features=np.stack([(np.indices((3, 2))[0] == 0) & (np.indices((3, 2))[1] == 1), np.indices((3, 2))[0] == 0])
    .reshape(2, -1)
    .astype(float),
    function=lambda m: ([m[0] / m[1]], [[1 / m[1], -m[0] / m[1] ** 2]]),
)


def model_of(structure, counts, shares, *, budget="1", **facts):
    """A model with these shares and a release of these counts, whose noise is only stated."""
    domain = structure.domain
    noisy = dpgm.release(np.zeros((1, len(domain)), int), structure, Budget.pure(budget), **seeded())
    tables = [np.einsum(counts, range(counts.ndim), [domain.names.index(n) for n in c]) for c in structure.cliques]
    values = np.concatenate([table.reshape(-1) for table in tables])
    noisy = evolve(noisy, tables=Tables(structure, values), total=float(counts.sum()), total_variance=0.0, **facts)
    whole = Structure(domain, [domain.names])
    return Model(whole, Tables(whole, np.log(shares.reshape(-1))), releases=[noisy])


def tempered(power):
    """The truth flattened, as a learner shrinks it."""
    return TRUTH**power / (TRUTH**power).sum()


def test_without_noise_the_full_table_gives_the_records_answer_whatever_the_model():
    """Estimate and error on the corrected table are those of the records; all is measured, and nothing is noise."""
    model = model_of(Structure(DOMAIN, [NAMES]), 10_000 * TRUTH, tempered(0.3), budget="10000000")
    found = estimate(model, LOGISTIC)
    np.testing.assert_allclose(found.estimate, LOGISTIC.evaluate(TRUTH.reshape(-1))[0], atol=1e-8)
    assert set(found.standing) == {"measured"} and not found.unstable.any() and found.missing == ((),) * 4
    influence = LOGISTIC.evaluate(TRUTH.reshape(-1))[1]
    expected = np.sqrt(influence**2 @ TRUTH.reshape(-1) / 10_000)
    np.testing.assert_allclose(found.standard_error, expected, rtol=1e-3)


def test_the_bias_of_a_flattened_model_is_removed_where_triples_are_known():
    """At most a twentieth of a regression's is left; with the sign of the correction swapped there is more of it."""
    truth = LOGISTIC.evaluate(TRUTH.reshape(-1))[0]
    found = estimate(model_of(TRIPLES, 10_000 * TRUTH, tempered(0.7), budget="10000"), LOGISTIC)
    bias, left = np.abs(found.uncorrected - truth), np.abs(found.estimate - truth)
    assert left.sum() < 0.05 * bias.sum()
    assert np.abs(2 * found.uncorrected - found.estimate - truth).sum() > 1.5 * bias.sum()


@pytest.mark.landing
def test_standard_errors_are_those_of_redrawn_noise_and_of_redrawn_records():
    """250 draws of either alone: a standard deviation of 250 is within 18 % of the truth but for once in 10,000."""
    rng, one = np.random.default_rng(8), model_of(PAIRS, 20_000 * TRUTH, TRUTH, budget="2")
    found, release = estimate(one, LOGISTIC), one.releases[0]
    noise = release.noise[0].draw((250, len(release.tables.values)), SeededRandomness(1))
    drawn = []
    for row in noise:
        tables = Tables(PAIRS, release.tables.values + row)
        drawn.append(estimate(model_from(one, evolve(release, tables=tables)), LOGISTIC).estimate)
    np.testing.assert_allclose(np.std(drawn, axis=0), np.sqrt(np.diag(found.noise)), rtol=0.18)
    drawn = []
    for _ in range(250):
        counts = rng.multinomial(20_000, TRUTH.reshape(-1)).reshape(SHAPE)
        drawn.append(estimate(model_of(PAIRS, counts.astype(float), TRUTH, budget="2"), LOGISTIC).estimate)
    np.testing.assert_allclose(np.std(drawn, axis=0), np.sqrt(np.diag(found.sampling)), rtol=0.18)


def at_the_model(functional, counts, start):
    """The root with errors at the model's coefficients and curvature."""
    return functional.solve(counts, start, 20), functional.evaluate(tempered(0.4).reshape(-1))[1]


@pytest.mark.landing
def test_intervals_hold_where_noise_is_as_large_as_the_curvature(monkeypatch):
    """250 releases and a flattened model, 95 % intervals of four coefficients: none misses .95 by more than .06, which
    happens once in 10,000; with errors at the model fewer than .9 of some coefficient's hold."""
    rng, truth, held, before = np.random.default_rng(12), LOGISTIC.evaluate(TRUTH.reshape(-1))[0], [], []
    release = model_of(TRIPLES, 3_000 * TRUTH, tempered(0.4), budget="0.08").releases[0]
    noise = np.sqrt(release.variances[0]) * rng.normal(size=(250, len(release.tables.values)))
    for row in noise:
        records = rng.multinomial(3_000, TRUTH.reshape(-1)).reshape(SHAPE).astype(float)
        one = model_of(TRIPLES, records, tempered(0.4), budget="0.08")
        drawn = evolve(one.releases[0], tables=Tables(TRIPLES, one.releases[0].tables.values + row))
        found = estimate(model_from(one, drawn), LOGISTIC)
        if found.unstable.any():
            continue
        held.append((found.low <= truth) & (truth <= found.high))
        with monkeypatch.context() as patch:
            patch.setattr(analysis, "_at_counts", at_the_model)
            found = estimate(model_from(one, drawn), LOGISTIC)
        before.append((found.low <= truth) & (truth <= found.high))
    assert len(held) > 200
    assert np.abs(np.mean(held, axis=0) - 0.95).max() < 0.06
    assert np.mean(before, axis=0).min() < 0.9


def model_from(model, release):
    """The same model with another release."""
    return Model(model.structure, model.potentials, releases=[release])


def test_what_a_chain_cannot_tell_is_said_by_name():
    """The truth has more edges: every coefficient is by structure, and the tables that are missing come first."""
    chain = Structure(DOMAIN, list(itertools.pairwise(NAMES)))
    shares = np.einsum("ab,bc,cy->abcy", TRUTH.sum((2, 3)), *conditionals())
    found = estimate(model_of(chain, 10_000 * TRUTH, shares), LOGISTIC)
    assert set(found.standing[1:3]) == {"by structure"}
    assert ("a", "y") in [names for names, _ in found.missing[1]] and ("b", "y") in [
        names for names, _ in found.missing[2]
    ]
    assert all(share > 0.005 for one in found.missing for _, share in one)
    # A pair that the chain holds is measured all the same.
    odds = Moments(
        attributes=("c", "y"), names=("both",), features=(CODES[2] * CODES[3])[None, :4], function=lambda m: (m, [[1]])
    )
    assert estimate(model_of(chain, 10_000 * TRUTH, shares), odds).standing == ("measured",)


def conditionals():
    """p(c | b) and p(y | c) of the truth."""
    bc, cy = TRUTH.sum((0, 3)), TRUTH.sum((0, 1))
    return bc / bc.sum(1, keepdims=True), cy / cy.sum(1, keepdims=True)


def test_a_model_alone_cannot_vouch_for_itself():
    """At an independent model the influence function of a ratio loses the effect that would show its error."""
    singles = Structure(DOMAIN, [("a",), ("y",)])
    shares = np.einsum("a,b,c,y->abcy", TRUTH.sum((1, 2, 3)), np.full(2, 0.5), np.full(2, 0.5), TRUTH.sum((0, 1, 2)))
    found = estimate(model_of(singles, 10_000 * TRUTH, shares).using(unmeasured="uniform"), SHARE)
    assert found.standing == ("by structure",) and found.missing[0][0][0] == ("a", "y")


def test_covariates_that_nobody_tabulated_together_are_no_detail():
    """Claim: where the outcome depends weakly on one covariate and this one strongly on another, tables of the outcome
    with each give a coefficient of the other that is far off, although most of its influence function is told. The
    interval is promised only where a selector weighed the pair."""
    sizes = {"x": 2, "z": 2, "y": 2}
    x, z, y = np.indices((2, 2, 2))
    mean = 1 / (1 + np.exp(0.5 - 0.3 * z))
    truth = np.where(x == z, 0.475, 0.025) * np.where(y == 1, mean, 1 - mean)
    px, pz, py = (np.einsum(truth, range(3), kept) for kept in ([0, 2], [1, 2], [2]))
    shares = px[:, None] * pz[None] / py
    star = Structure(Domain.from_sizes(sizes), [("x", "y"), ("z", "y")])
    line = coded_regression(star.domain, ("x", "z", "y"))
    found = estimate(model_of(star, 20_000 * truth, shares), line)
    assert abs(found.estimate[1]) > 5 * found.standard_error[1]  # 0 in truth
    assert found.unsupported.max() < 0.1 and found.unweighed.min() > 0.02
    assert set(found.standing) == {"by structure"}
    codes = np.stack(np.unravel_index(np.random.default_rng(0).choice(8, 2000, p=truth.reshape(-1)), (2, 2, 2)), axis=1)
    fitted = dpgm.fit(codes, "mst", Budget.pure(5), workload=star.domain, **seeded()).model
    assert not estimate(fitted, line).unweighed.any()


def test_a_rare_code_does_not_spoil_what_pairs_tell():
    """A logistic regression leaves out records with a third label, of which there are hardly any: pairs with the
    outcome and a table of covariates tell nearly all of it, as without that label; with equal weights of codes they do
    not."""
    domain = Domain.from_sizes({"a": 3, "b": 3, "y": 3})
    rare = np.array([0.55, 0.44, 0.01])
    p = np.einsum("a,b,y->aby", rare, rare, rare)
    p[1, :, 1] *= 1.5
    p[:, 1, 1] *= 0.7
    p /= p.sum()
    cells = cells_of(domain, ("a", "b", "y"))
    included = (cells < 2).all(axis=1)
    regression = Regression(
        attributes=("a", "b", "y"),
        names=("1", "a", "b"),
        family="logistic",
        design=np.column_stack([np.ones(27), cells[:, :2]]) * included[:, None],
        outcome=(cells[:, 2] == 1).astype(float),
        included=included,
    )
    structure = Structure(domain, [("a", "y"), ("b", "y"), ("a", "b")])
    model = model_of(structure, 5000 * p, p)
    found = estimate(model, regression)
    assert found.unsupported.max() < 0.1
    truth, influence = regression.evaluate(p.reshape(-1))
    np.testing.assert_allclose(found.estimate, truth, atol=1e-3)
    np.testing.assert_allclose(np.diag(found.sampling), influence**2 @ p.reshape(-1) / 5000, rtol=0.03)


def test_one_set_of_rows_is_as_good_as_the_model():
    """Where tables tell the answer the chance of the rows cancels: sets of 20,000 and a million agree."""
    model = model_of(TRIPLES, 10_000 * TRUTH, tempered(0.8))
    rng, here = np.random.default_rng(2), estimate(model, LOGISTIC)
    for count in (20_000, 1_000_000):
        rows = rng.multinomial(count, tempered(0.8).reshape(-1)).astype(float)
        found = estimate(model, LOGISTIC, rows=rows)
        assert (np.abs(found.estimate - here.estimate) < 0.1 * here.standard_error).all()
        np.testing.assert_allclose(found.standard_error, here.standard_error, rtol=0.05)


def test_a_condition_is_the_regression_of_the_records_it_keeps():
    """Of the estimate, its covariance and its standing."""
    model = model_of(PAIRS, 10_000 * TRUTH, tempered(0.9))
    inner, cells = coded_regression(DOMAIN, ("b", "y")), cells_of(DOMAIN, ("a", "b", "y"))
    kept = Regression(
        attributes=("a", "b", "y"),
        names=("1", "b"),
        family="logistic",
        design=np.stack([np.ones(12), cells[:, 1]], axis=1),
        outcome=cells[:, 2],
        included=cells[:, 0] == 1,
    )
    found, same = estimate(model, inner, given={"a": "1"}), estimate(model, kept)
    np.testing.assert_allclose(found.estimate, same.estimate)
    np.testing.assert_allclose(found.covariance, same.covariance)
    assert found.standing == same.standing == ("by structure",) * 2


def test_a_column_that_another_determines_rests_on_the_tables_of_that_one():
    """It is that of a function of its source, in estimate, covariance and standing, as a condition and on rows."""
    rule = {"where": {"columns": ["town", "land"], "map": [["0", "0"], ["1", "0"], ["2", "1"]]}}
    domain = Domain.from_dict({"attributes": {"town": sized(3), "land": sized(2), "y": sized(2)}, "constraints": rule})
    structure, rng = Structure(domain, [("town", "y")]), np.random.default_rng(3)
    town, y = rng.integers(0, 3, 3000), rng.integers(0, 2, 3000)
    rows = np.stack([town, np.where(town == 2, 1, 0), np.maximum(y, town == 2)], axis=1)
    model = dpgm.learn(dpgm.release(rows, structure, Budget.pure("0.1"), **seeded()), "eb-map").model
    lands, towns = np.indices((2, 2)).reshape(2, -1), np.indices((3, 2)).reshape(2, -1)

    def line(names, x, outcome, included=None):
        design = np.stack([np.ones(len(x)), x], axis=1)
        return Regression(
            attributes=names, names=("1", "x"), family="linear", design=design, outcome=outcome, included=included
        )

    pairs = [
        (estimate(model, line(("land", "y"), *lands)), estimate(model, line(("town", "y"), towns[0] == 2, towns[1]))),
        (
            estimate(model, line(("town", "y"), *towns), given={"land": "0"}),
            estimate(model, line(("town", "y"), *towns, towns[0] < 2)),
        ),
    ]
    for found, same in pairs:
        np.testing.assert_allclose(found.estimate, same.estimate)
        np.testing.assert_allclose(found.covariance, same.covariance)
        assert found.standing == same.standing == ("measured",) * 2
    assert model.standing(("land", "y")) == "measured" and pairs[1][0].attributes == ("town", "y", "land")
    drawn = rng.multinomial(100_000, np.asarray(model.marginal(("land", "y"))).reshape(-1)).astype(float)
    there = estimate(model, line(("land", "y"), *lands), rows=drawn)
    assert (np.abs(there.estimate - pairs[0][0].estimate) < 0.1 * there.standard_error).all()
    np.testing.assert_allclose(there.covariance, pairs[0][0].covariance, rtol=0.05)


def sized(count):
    """An attribute of so many labels."""
    return {"size": count, "unknown": 0}


def test_a_holdout_widens_what_no_table_tells():
    """By the error it measured on the pairs of the question, and nothing that tables tell."""
    rng = np.random.default_rng(0)
    rows = np.stack(np.unravel_index(rng.choice(24, size=2500, p=TRUTH.reshape(-1)), SHAPE), axis=1)
    run = {"workload": DOMAIN, "split": {"holdout": 0.2}} | seeded(4)
    model = dpgm.fit(rows, "mst", Budget.approx(2, "1e-6"), **run).model
    assert model.checked
    found = estimate(model, LOGISTIC)
    assert (np.diag(found.structure) > 0).all() and np.allclose(
        found.covariance, found.sampling + found.noise + found.structure
    )


def test_refusals():
    """A model without a release, too large a question, what no release measured, and rows that are none."""
    model = model_of(PAIRS, 1000 * TRUTH, TRUTH)
    bare = Model(model.structure, model.potentials)
    with pytest.raises(OptionError, match="the model carries no release, so nothing is known of its noise"):
        estimate(bare, LOGISTIC)
    for rows in (np.ones(5), -np.ones(24), np.zeros(24)):
        with pytest.raises(OptionError, match="rows"):
            estimate(model, LOGISTIC, rows=rows)
    with pytest.raises(OptionError, match="level of an interval"):
        estimate(model, LOGISTIC, level=2)
    some = model_of(Structure(DOMAIN, [("a", "b")]), 1000 * TRUTH, TRUTH)
    with pytest.raises(StructureError, match="no release behind the model measured 'c', 'y'"):
        estimate(some, LOGISTIC)
    wide = Domain.from_sizes({f"x{at}": 2 for at in range(21)})
    one = Structure(wide, [("x0",)])
    large = uniform_model(one, releases=[dpgm.release(np.zeros((1, 21), int), one, Budget.pure(1), **seeded())])
    question = Moments(attributes=wide.names, names=("x",), features=np.zeros((1, 1)), function=lambda m: (m, [[1]]))
    with pytest.raises(TooLarge, match="2,097,152 combinations, more than 1,048,576; leave some attributes out"):
        estimate(large, question)


# --- merged codes ---------------------------------------------------------------------------------

MERGES = {"a": (0, 1, 1, 2, 0, 2), "b": (0, 1, 0, 1)}
FINE = Domain.from_sizes({"a": 6, "b": 4, "y": 2})
MERGED = FINE.coarsened(MERGES)
ALONE, TOGETHER = Structure(FINE, [("a",), ("b",), ("y",)]), Structure(MERGED, [("a", "y"), ("b", "y"), ("a", "b")])
BLOCKS = loglinear((3, 2, 2), 2, 0.4, 3)
SPLIT_A, SPLIT_B = np.array([0.7, 0.4, 0.6, 0.8, 0.3, 0.2]), np.array([0.9, 0.35, 0.1, 0.65])
SPLIT = BLOCKS[np.ix_(MERGES["a"], MERGES["b"])] * SPLIT_A[:, None, None] * SPLIT_B[:, None]


def session_model(alone, together, *, records, shares=BLOCKS, budgets=("1", "1")):
    """A model of a session that merged codes after its one-way tables; counts of both steps, their noise as stated."""
    steps = []
    for structure, counts, budget in zip((ALONE, TOGETHER), (alone, together), budgets, strict=True):
        one = dpgm.release(np.zeros((1, 3), int), structure, Budget.pure(budget), **seeded())
        steps.append(evolve(one, tables=Tables(structure, counts), total=records, total_variance=1e-6))
    whole = Structure(MERGED, [("a", "b", "y")])
    potentials = Tables(whole, np.log(shares.reshape(-1)))
    return Model(whole, potentials, releases=[merged_session(FINE, MERGES, steps)])


def session_counts(table):
    """The counts of both steps, of a table over all codes."""
    coarse = np.zeros(BLOCKS.shape)
    np.add.at(coarse, np.ix_(MERGES["a"], MERGES["b"]), table)
    alone, together = (
        np.concatenate(
            [np.einsum(whole, range(3), ["aby".index(name) for name in clique]).reshape(-1) for clique in one.cliques]
        )
        for one, whole in ((ALONE, table), (TOGETHER, coarse))
    )
    return alone, together


FINE_LOGISTIC = coded_regression(FINE, FINE.names)


def corrected_of(model, names, given):
    """Corrected probabilities, and their variance less that of sampling."""
    grid = model._grid(names, given)
    table, answer = np.asarray(model.marginal(grid.attributes)).reshape(-1), np.asarray(model.marginal(names, given))
    corrected, variance = correct_shares(grid, grid.effects(model.learned), model.domain, table, answer)
    share = float(np.prod(np.asarray(model.marginal(list(given)))[tuple(given.values())])) if given else 1.0
    return corrected.reshape(-1), (variance - answer * (1 - answer) / (share * model.learned[0].total)).reshape(-1)


def answers(model):
    """Estimates of several questions and the variance of their noise."""
    found = estimate(model, FINE_LOGISTIC)
    asked = [(("a", "y"), {}), (("y", "a", "b"), {}), (("a",), {"b": 2}), (("y",), {"a": 4})]
    parts = [(found.estimate, np.diag(found.noise)), *(corrected_of(model, *one) for one in asked)]
    return [np.concatenate(one) for one in zip(*parts, strict=True)]


@pytest.mark.landing
def test_noise_is_that_of_every_count_also_of_those_that_split_merged_codes():
    """Claim: at counts without noise the variance of an answer is the sum over all counts of the released tables of
    their noise variance by the square of the answer's derivative; what moves the split of a block is among them."""
    records, step = 1e9, 1e3
    counts = session_counts(records * SPLIT)
    model = session_model(*counts, records=records)
    (here, stated), variance = answers(model), 0.0
    for number, part in enumerate(model.learned[0].steps):
        of_cells = np.repeat(part.variances.tolist(), [np.prod(shape) for shape in part.structure.shapes])
        for at, noise in enumerate(of_cells):
            moved = [one.copy() for one in counts]
            moved[number][at] += step
            variance = variance + noise * ((answers(session_model(*moved, records=records))[0] - here) / step) ** 2
    np.testing.assert_allclose(stated, variance, rtol=1e-3)


def test_rows_of_merged_codes_leave_no_chance_where_tables_tell_the_codes():
    """Claim: a mean of codes that one-way tables tell is the same from the model and from any rows, which differ from
    its split of blocks; it is measured, although the table of its question is over merged codes."""
    counts = session_counts(20_000 * SPLIT)
    model = session_model(*counts, records=20_000.0, shares=BLOCKS**0.8)
    codes = np.indices((6, 4)).reshape(2, -1).astype(float)
    mean = Moments(attributes=("a", "b"), names=("sum",), features=codes.sum(0)[None], function=lambda m: (m, [[1]]))
    rows = np.random.default_rng(0).integers(0, 50, 24).astype(float)
    found, drawn = estimate(model, mean), estimate(model, mean, rows=rows)
    np.testing.assert_allclose([found.estimate, drawn.estimate], codes.sum(0) @ SPLIT.sum(2).reshape(-1), rtol=1e-9)
    np.testing.assert_allclose(drawn.noise, found.noise, rtol=1e-9)
    assert found.standing == drawn.standing == ("measured",)


@pytest.mark.landing
def test_intervals_hold_what_splits_merged_codes():
    """250 tables of records with noise, of which that of the one-way tables is the larger part: 95 % intervals of
    coefficients miss .95 by more than .07 once in a million, 90 % intervals of cells reach to the model's answer.
    Without the noise of the split .72 to .90 of the coefficients' intervals hold."""
    rng, held, cells = np.random.default_rng(11), [], []
    truth = FINE_LOGISTIC.evaluate(SPLIT.reshape(-1))[0]
    deviations = [2**0.5 * 3 / budget for budget in (0.01, 1)]
    for _ in range(250):
        counts = session_counts(rng.multinomial(20_000, SPLIT.reshape(-1)).reshape(SPLIT.shape).astype(float))
        counts = [one + sd * rng.normal(size=one.shape) for one, sd in zip(counts, deviations, strict=True)]
        model = session_model(*counts, records=20_000.0, shares=BLOCKS**0.8, budgets=("0.01", "1"))
        found, pair = estimate(model, FINE_LOGISTIC), model.intervals(("a", "y"))
        held.append((found.low <= truth) & (truth <= found.high))
        cells.append(np.mean((pair.low <= SPLIT.sum(1)) & (SPLIT.sum(1) <= pair.high)))
    assert np.abs(np.mean(held, axis=0) - 0.95).max() < 0.07
    assert 0.88 < np.mean(cells) < 0.97


# --- intervals of probabilities -------------------------------------------------------------------


@frozen
class OneStep:
    """A functional that is corrected by one step from the model, as answers of queries are."""

    attributes = property(lambda self: self.of.attributes)
    names = property(lambda self: self.of.names)
    of: Moments

    def evaluate(self, table):
        return self.of.evaluate(table)


def indicators(names, given):
    """p(names | given) as a functional, cell by cell."""
    cells = int(np.prod([SIZES[name] for name in names]))
    return Moments(
        attributes=tuple(names),
        names=tuple(map(str, range(cells))),
        features=np.eye(cells),
        function=lambda m: (m, np.eye(cells)),
    )


@pytest.mark.parametrize("structure", [PAIRS, TRIPLES, Structure(DOMAIN, [("a", "b"), ("b", "y"), ("c",)])])
@pytest.mark.parametrize(
    ("names", "given"), [(("a",), {}), (("y", "a"), {}), (("a", "y"), {"b": 1}), (("y",), {"c": 0})]
)
def test_intervals_of_probabilities_are_those_of_the_functional(structure, names, given, monkeypatch):
    """The closed form gives the corrected answer and its noise, with equal weights of codes."""
    monkeypatch.setattr(analysis, "code_weights", lambda table: [np.full(size, 1 / size) for size in table.shape])
    rng = np.random.default_rng(4)
    counts = 5000 * TRUTH + rng.normal(scale=30, size=SHAPE)
    model = model_of(structure, counts, tempered(0.8))
    found = estimate(model, OneStep(indicators(names, given)), given=given)
    answer = np.asarray(model.marginal(names, given))
    grid = model._grid(names, {name: int(code) for name, code in given.items()})
    table = np.asarray(model.marginal(grid.attributes)).reshape(-1)
    corrected, variance = correct_shares(grid, grid.effects(model.learned), model.domain, table, answer)
    np.testing.assert_allclose(corrected.reshape(-1), found.estimate, atol=1e-12)
    share = float(np.prod(np.asarray(model.marginal(list(given)))[tuple(given.values())])) if given else 1.0
    sampling = (answer * (1 - answer)).reshape(-1) / (share * found.total)
    np.testing.assert_allclose(variance.reshape(-1), np.diag(found.noise) + sampling, rtol=1e-9)
    interval = model.intervals(names, given, level=0.9)
    assert ((interval.low <= interval.estimate) & (interval.estimate <= interval.high)).all()
    assert ((interval.low <= corrected.clip(0, 1)) & (corrected.clip(0, 1) <= interval.high)).all()
    np.testing.assert_allclose(interval.standard_error**2, variance)


@pytest.mark.landing
def test_intervals_of_a_shrunken_model_cover():
    """200 releases, 90 % intervals of a pair's cells, though the model is flattened by far more than its errors.

    As an interval reaches to the model's answer it misses on the other side only, so that .95 is expected; the mean of
    1,200 dependent cells is out by more than .03 with probability below 1e-4. Without the correction less than half are
    covered.
    """
    rng, truth, held, own = np.random.default_rng(6), TRUTH.sum((1, 2)), [], []
    for seed in range(200):
        counts = rng.multinomial(5000, TRUTH.reshape(-1)).reshape(SHAPE).astype(float)
        model = model_of(PAIRS, counts, tempered(0.5), budget="4")
        release = model.releases[0]
        noise = release.noise[0].draw((PAIRS.cells,), SeededRandomness(seed))
        model = model_from(model, evolve(release, tables=Tables(PAIRS, release.tables.values + noise)))
        found = model.intervals(("a", "y"))
        width = 1.645 * found.standard_error
        inside = (found.low <= truth) & (truth <= found.high)
        held.append(inside.mean())
        own.append((np.abs(found.estimate - truth) <= width).mean())
    assert abs(np.mean(held) - 0.95) < 0.03 and np.mean(own) < 0.5


def test_a_condition_beyond_all_numbers_leaves_an_answer_unknown():
    """Claim: of p(y | a) where p(a) is so small that its square is 0, the interval is [0, 1], without a warning."""
    shares = TRUTH.copy()
    shares[2] *= 1e-160
    found = model_of(PAIRS, 10_000 * TRUTH, shares / shares.sum()).intervals("y", {"a": 2})
    assert (found.low.tolist(), found.high.tolist()) == ([0, 0], [1, 1])


def test_what_constraints_rule_out_is_certain():
    """A cell that no record can be in has no interval, whatever its noisy count."""
    rule = {"x": {"columns": ["a", "b"], "impossible": [["1", "1"]]}}
    domain = Domain.from_dict(
        {"attributes": {"a": {"size": 2, "unknown": 0}, "b": {"size": 2, "unknown": 0}}, "constraints": rule}
    )
    structure = Structure(domain, [("a", "b")])
    rows = np.array([[0, 0]] * 30 + [[0, 1]] * 20 + [[1, 0]] * 50)
    release = dpgm.release(rows, structure, Budget.pure("0.1"), **seeded(3))
    assert release.tables["a", "b"][1, 1] != 0
    found = dpgm.learn(release, "eb-map").model.intervals(("a", "b"))
    assert found.low[1, 1] == found.high[1, 1] == found.standard_error[1, 1] == 0
    assert (found.high > found.low).sum() == 3


def test_tables_that_tell_no_attribute_by_itself_leave_intervals_to_replicates():
    """Tied cliques: their table is a sum."""
    structure = Structure(DOMAIN, [("a",)], tied=[[("b",), ("c",)], [("b", "y"), ("c", "y")]])
    release = dpgm.release(np.zeros((50, 4), int), structure, Budget.pure(1), **seeded())
    model = dpgm.learn(release, "naive-mle").model
    assert model.intervals("a").replicates == 0
    with pytest.raises(OptionError, match="no replicates to tell errors from"):
        model.intervals("b")
    assert dpgm.bootstrap(model, 3).intervals("b").replicates == 3


def test_tables_with_too_many_effects_leave_intervals_to_replicates(monkeypatch):
    """A table of seventeen binary attributes has more than are computed one by one, as this one has here."""
    model = dpgm.bootstrap(model_of(TRIPLES, 10_000 * TRUTH, TRUTH), 3, learner="naive-mle", inference="junction-tree")
    names = ("a", "b", "y")
    assert model.intervals(names).replicates == 0 and not model.needs_replicates(names)
    monkeypatch.setattr(effects, "_MAX_EFFECTS", 7)
    assert model.needs_replicates(names) and model.intervals(names).replicates == 3
    with pytest.raises(TooLarge, match="ask about fewer attributes"):
        estimate(model, LOGISTIC)

"""What releases find beyond noise, against closed forms and generated tables."""

import itertools
import math
import time

import numpy as np
import pyarrow as pa
import pytest
from attrs import evolve
from scipy.special import ndtri
from scipy.stats import binom, chi2_contingency, chisquare, spearmanr

from dpgm_core import (
    Attribute,
    Budget,
    Domain,
    Model,
    SeededRandomness,
    Structure,
    Tables,
    Terms,
    Workload,
    fit,
    load_model,
    release,
)
from dpgm_core.models.corrections import effects_of_each
from dpgm_core.models.effects import combine_tables, tables_of
from dpgm_core.models.findings import (
    Finding,
    _compare,
    _effects_of_pairs,
    _find,
    _Score,
    measure_findings,
    say_errors,
)
from dpgm_core.releases.totals import counted
from tests.fixtures import seeded

#: Random draws here have fixed seeds; each statistical claim states its false-alarm probability.
FALSE_ALARM = 1e-6
TABLES = 15


def model_of(codes, cliques, budget, seed=0, **facts):
    """A model that carries a release of these cliques, without learning."""
    sizes = {name: int(size) for name, size in facts.pop("sizes").items()}
    structure = Structure(Domain.from_sizes(sizes), cliques)
    noise = "laplace" if budget.kind == "pure" else "gaussian"
    made = release(codes, structure, budget, noise, **seeded(seed), **facts)
    return Model(structure, Tables.zeros(structure), releases=[made])


def generated(seed, records, share=0.0):
    """Codes of five columns, the last two of which depend on the ones before in a share of the records."""
    rng, sizes = np.random.default_rng(seed), (2, 3, 4, 2, 8)
    codes = np.stack([rng.choice(size, records, p=rng.dirichlet(np.ones(size))) for size in sizes], axis=1)
    for child, parent in ((3, 0), (4, 1)):
        same = rng.random(records) < share
        codes[same, child] = codes[same, parent]
    return codes, {f"x{at}": size for at, size in enumerate(sizes)}


@pytest.mark.parametrize("shape", [(2, 2), (3, 4)])
def test_without_noise_it_is_pearsons_test(shape):
    """Of a table that noise leaves alone, Q is Pearson's chi-square, and its chance that of the textbook."""
    counts = np.random.default_rng(3).multinomial(5000, np.full(math.prod(shape), 1 / math.prod(shape)))
    counts = counts.reshape(shape).astype(float)
    effects = combine_tables(("a", "b"), shape, [(("a", "b"), counts, 1e-9, True)], (counts.sum(), 0.0))
    score = _Score.of(effects)
    right = chi2_contingency(counts, correction=False)
    assert np.sum(score.z**2 / score.variance) == pytest.approx(right.statistic, rel=1e-6)
    assert score.chance(False) == pytest.approx(right.pvalue, rel=1e-6)


def test_a_column_without_noise_is_held_against_even_shares():
    counts = np.array([1020.0, 980.0, 1050.0, 950.0])
    effects = combine_tables(("a",), (4,), [(("a",), counts, 1e-9, True)], (counts.sum(), 0.0))
    assert _Score.of(effects).chance(False) == pytest.approx(chisquare(counts).pvalue, rel=1e-6)


def test_the_variance_of_the_sums_is_that_of_drawn_tables():
    """Independent codes and noise drawn again and again: each sum has the variance that the formula states."""
    rng, shape = np.random.default_rng(5), (2, 3)
    shares = np.outer([0.3, 0.7], [0.5, 0.3, 0.2])
    squares, stated = [], []
    for _ in range(2000):
        counts = rng.multinomial(2000, shares.reshape(-1)).reshape(shape) + rng.normal(scale=12.0, size=shape)
        one = combine_tables(("a", "b"), shape, [(("a", "b"), counts, 144.0, True)], (2000.0, 0.0))
        score = _Score.of(one)
        squares.append(np.sum(score.z**2 / score.variance))
        stated.append(score.z.size)
    # the mean of 2,000 sums of two squared deviates has a standard error of .045; five of them are false-alarm 6e-7
    assert np.mean(squares) == pytest.approx(np.mean(stated), abs=0.22)


@pytest.mark.parametrize("budget", [Budget.pure("0.3"), Budget.approx("0.3", "1e-6"), Budget.pure(5)], ids=str)
def test_chances_of_independent_pairs_are_not_too_small(budget):
    """Of 150 pairs that are independent at most as many have a chance below c as c says, and few are found."""
    chances, found = [], 0
    cliques = list(itertools.combinations(["x0", "x1", "x2", "x3", "x4"], 2))
    for seed in range(TABLES):
        codes, sizes = generated(seed, 3000)
        told = measure_findings(model_of(codes, cliques, budget, seed, sizes=sizes))
        chances += [one.chance for one in told.pairs]
        found += sum(one.found for one in told.pairs)
    for limit in (0.05, 0.01):
        most = binom.isf(FALSE_ALARM, len(chances), 1.2 * limit)  # moments are matched, not the whole distribution
        assert np.sum(np.array(chances) < limit) <= most
    assert found <= binom.isf(FALSE_ALARM, TABLES, 0.005)  # of tables where nothing depends, 1 in 200 has a finding


@pytest.mark.parametrize("budget", [Budget.pure(1), Budget.approx(1, "1e-6")], ids=str)
def test_what_depends_is_found_and_what_does_not_is_not(budget):
    """Of pairs 6 standard errors off at most 1 in 100 is missed; of what is found at most 1 in 100 is noise."""
    missed = strong = false = found = 0
    for seed in range(TABLES):
        codes, sizes = generated(seed, 20_000, 0.1 * (1 + seed % 4))
        model = model_of(codes, list(itertools.combinations(sizes, 2)), budget, seed, sizes=sizes)
        for one in measure_findings(model).pairs:
            depends = one.names in {("x0", "x3"), ("x1", "x4")}
            found += one.found
            false += one.found and not depends
            if depends and strength(model, one.names, codes) > 6:
                strong += 1
                missed += not one.found
    assert strong > TABLES
    assert missed <= binom.isf(FALSE_ALARM, strong, 0.01)
    assert false <= binom.isf(FALSE_ALARM, found, 0.01)


def strength(model, names, codes):
    """How many standard errors the true counts of a pair lie from independence."""
    effects = effects_of_each(model._grid(names, {}), model.learned)
    places = [model.domain.names.index(name) for name in names]
    cells = np.ravel_multi_index([codes[:, at] for at in places], effects.shape)
    table = np.bincount(cells, minlength=math.prod(effects.shape)).reshape(effects.shape)
    score = _Score.of(evolve(effects, table=table.astype(float)))
    weights = score.weights
    return (np.sum(weights * score.z**2 / score.variance) - weights.sum()) / math.sqrt(2 * np.sum(weights**2))


def test_laplace_noise_of_a_rare_cell_is_not_taken_for_a_normal_deviate():
    """Drawn again and again, independent tables exceed a score as often as stated; by moments alone too often."""
    rng, scale, shares = np.random.default_rng(7), 300.0, np.array([0.6, 0.2, 0.1, 0.08, 0.02])
    counts, scores = 20_000 * np.outer(shares, shares), []
    margins = [((name,), 20_000 * shares, 1.0, True) for name in ("a", "b")]
    for _ in range(1500):
        noisy = counts + rng.laplace(scale=scale, size=counts.shape)
        tables = [*margins, (("a", "b"), noisy, 2 * scale**2, True)]
        scores.append(_Score.of(combine_tables(("a", "b"), counts.shape, tables, (20_000.0, 0.0))))
    moments, drawn = (np.array([one.chance(heavy) for one in scores]) for heavy in (False, True))
    limit = 0.001
    assert np.sum(moments < limit) > binom.isf(1e-3, len(scores), limit)
    assert np.sum(drawn < limit) <= binom.isf(FALSE_ALARM, len(scores), limit)


def test_rule_of_benjamini_and_hochberg():
    chances = [0.0001, 0.002, 0.0024, 0.5]  # 4 tests: limits .00125, .0025, .00375, .005
    found = _find([Finding(names=(str(one),), cells=2, chance=one, error=0.1) for one in chances])
    assert [one.found for one in found] == [True, True, True, False]
    assert _find([]) == ()


def test_pairs_that_no_table_holds_are_unchecked():
    codes, sizes = generated(1, 5000, 0.9)
    told = measure_findings(model_of(codes, [("x0", "x3"), ("x1",), ("x2",), ("x4",)], Budget.pure(5), sizes=sizes))
    assert [one.names for one in told.pairs] == [("x0", "x3")]
    assert told.unchecked == 9
    words = told.sentences()
    assert words[1] == "1 of 1 measured pairs found to depend; 9 more follow from the structure, which no table checks"


@pytest.mark.parametrize(("limit", "large"), [(10, (("a", "b"),)), (100, ())])
def test_pairs_that_were_no_candidates_for_their_size_make_green_amber(limit, large, tmp_path):
    """Named from the release alone, also read from its file; codes that are merged count as they are measured."""
    rng = np.random.default_rng(5)
    first = rng.integers(0, 4, 20_000)
    codes = np.stack([first, (first + (rng.random(20_000) < 0.2)) % 4, first // 2], axis=1)
    domain = Domain.from_sizes({"a": 4, "b": 4, "c": 2})
    workload = Workload.all(domain, 2, max_cells=limit)
    model = fit(
        codes, "auto", Budget.zcdp(1), workload=workload, terms=Terms(neighbours="add-remove"),
        randomness=SeededRandomness(1),
    ).model  # fmt: skip
    model.save(tmp_path / "x.dpgm")
    for findings in (measure_findings(model), measure_findings(load_model(tmp_path / "x.dpgm"))):
        assert findings.large == large
        assert findings.colour == ("amber" if large else "green")
        named = "not measured, as a table would have more than max_cells cells: a and b"
        assert (named in findings.sentences()) is bool(large)
        assert findings.to_dict().get("pairs_too_large", []) == [list(pair) for pair in large]


def test_errors_are_those_of_intervals():
    """The half widths are those of `Model.intervals`, but for the shares at which sampling is taken."""
    codes, sizes = generated(2, 20_000, 0.3)
    structure = Structure(Domain.from_sizes(sizes), [("x0", "x3"), ("x1", "x4"), ("x2",)])
    model = fit(codes, structure, Budget.approx(1, "1e-6"), mechanism="gaussian", neighbours="add-remove").model
    found = measure_findings(model)
    for one in (*found.columns, *found.pairs):
        error = model.intervals(one.names).standard_error
        assert one.error == pytest.approx(ndtri(0.95) * float(error.mean()), rel=0.05)


def test_pairs_from_tables_summed_once_are_those_of_all_tables():
    """Estimates and variances are those of the least squares over all tables, with larger tables among them."""
    codes, sizes = generated(3, 5000, 0.3)
    cliques = [("x0", "x3", "x4"), ("x1", "x4"), ("x0", "x1"), ("x2",), ("x4", "x2", "x0")]
    model = model_of(codes, cliques, Budget.approx(1, "1e-6"), sizes=sizes)
    names = model.domain.names
    grid = model._grid(names, {})
    tables = list(tables_of(model.learned[0], names, grid.blocks, grid.merges))
    effects = dict(_effects_of_pairs(names, grid.blocks, tables, counted(model.learned[0])))
    assert len(effects) == 7
    for pair, one in effects.items():
        whole = effects_of_each(model._grid(pair, {}), model.learned)
        np.testing.assert_allclose(one.table, whole.table)
        assert one.variances == pytest.approx(whole.variances)


def test_nothing_is_said_without_tables_of_counts():
    structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    assert measure_findings(Model(structure, Tables.zeros(structure))) is None


def test_columns_of_many_labels_take_no_time_that_grows_with_their_cube():
    """A postal code: 20,000 labels, in groups; the column itself is judged over all of them."""
    rng, sizes = np.random.default_rng(1), {"code": 20_000, "sex": 2}
    sex = rng.integers(0, 2, 100_000)
    codes = np.stack([rng.integers(0, 10_000, 100_000) + 10_000 * sex, sex], axis=1)
    begun = time.process_time()
    findings = measure_findings(model_of(codes, [("code", "sex")], Budget.zcdp(1), sizes=sizes))
    assert time.process_time() - begun < 20
    assert [one.found for one in findings.pairs] == [True]
    counts = rng.poisson(40, 3000).astype(float)
    effects = combine_tables(("a",), (3000,), [(("a",), counts, 1e-9, True)], (counts.sum(), 0.0))
    assert _Score.of(effects).chance(False) == pytest.approx(chisquare(counts).pvalue, rel=1e-6)


@pytest.mark.parametrize("heavy", [False, True])
def test_independent_columns_of_many_labels_are_not_found(heavy):
    """Of 60 tables at most 11 have a chance below 5 %: more are as likely as 1e-4 if chances are exact."""
    rng, shape, below = np.random.default_rng(2), (1000, 2), 0
    for _ in range(60):
        table = np.multiply.outer(*(rng.dirichlet(np.full(size, 0.7)) for size in shape))
        noise = rng.laplace(scale=2.0, size=shape) if heavy else rng.normal(scale=math.sqrt(8), size=shape)
        counts = rng.multinomial(20_000, table.ravel()).reshape(shape) + noise
        effects = combine_tables(("a", "b"), shape, [(("a", "b"), counts, 8.0, True)], (20_000.0, 0.0))
        below += _Score.of(effects).chance(heavy) < 0.05
    assert below <= 11


def test_a_column_of_one_label_depends_on_nothing():
    """So its pairs are not among those that no table checks, and no verdict is worse for them."""
    codes = np.stack([np.zeros(1000), np.arange(1000) % 10 == 0], axis=1).astype(int)
    findings = measure_findings(model_of(codes, [("one", "x")], Budget.zcdp(1), sizes={"one": 1, "x": 2}))
    assert findings.unchecked == 0 and findings.colour == "green"


def test_a_column_whose_values_are_unknown_tells_nothing():
    """A search finds no label of texts that differ: the column is all `other`, uneven and yet no finding."""
    rng = np.random.default_rng(4)
    ward = rng.integers(0, 2, 4000)
    table = pa.table({"note": [f"text {number}" for number in range(4000)], "ward": np.array(["eye", "ear"])[ward]})
    open_columns = [Attribute.from_dict(name, {"private": True}) for name in ("note", "ward")]
    structure = Structure(Domain(open_columns), [("note",), ("ward",)])
    model = fit(table, structure, Budget.approx(8, "1e-6"), "gaussian", **seeded(1)).model
    found = measure_findings(model)
    assert [one.found for one in found.columns] == [False, True] and found.colour == "amber"
    assert [one.get("unknown") for one in found.to_dict()["columns"]] == [True, None]
    assert found.sentences()[:2] == [
        "1 of 2 columns tell nothing: nearly all values of note are unknown",
        "1 of 2 columns are told apart from even shares",
    ]
    alone = evolve(found, columns=found.columns[:1])
    assert alone.colour == "red" and "even shares" not in " ".join(alone.sentences())


def test_errors_as_large_as_all_shares_are_said_in_digits():
    assert "about 100 percentage points" in say_errors([1.0], []) and "e+" not in say_errors([0.9951], [0.999])


def test_rank_correlations_are_those_of_the_textbook():
    """Without noise Spearman's, with ties, and its noise in a table has the deviation that is stated, also where codes
    are missing or in any order."""
    rng, shape = np.random.default_rng(6), (4, 5)
    counts = rng.integers(5, 200, size=shape).astype(float)
    places = [np.array([0.0, 1.0, 2.0, 2.0]), np.array([3.0, 1.0, math.nan, 2.0, 9.0])]
    present = np.isfinite(places[1])
    rows, columns = np.nonzero(counts[:, present])
    times = counts[:, present].astype(int).ravel()
    expected = spearmanr(np.repeat(places[0][rows], times), np.repeat(places[1][present][columns], times)).statistic

    def compared(noise, variance):
        made = [(("a", "b"), (counts * present + noise), variance, True)]
        return _compare(combine_tables(("a", "b"), shape, made, (made[0][1].sum(), 0.0)), counts / counts.sum(), places)

    assert compared(0.0, 1e-9).tables == pytest.approx(expected, rel=1e-3)
    drawn = [compared(rng.normal(scale=3.0, size=shape), 9.0) for _ in range(400)]
    # the deviation of 400 normal deviates has a standard error of 3.5 %; five of them are a false alarm of 6e-7
    assert np.std([one.tables for one in drawn]) == pytest.approx(drawn[0].deviation, rel=0.25)
    assert (
        _compare(
            combine_tables(("a", "b"), shape, [(("a", "b"), counts, 1.0, True)], (1.0, 0.0)),
            counts,
            [np.zeros(4), places[1]],
        )
        is None
    )


def test_a_model_that_lost_a_correlation_is_no_success():
    """Tables of two numbers with a correlation of .8: a model without it is amber, and says so; the right one green."""
    rng, edges = np.random.default_rng(7), [-math.inf, -1, 0, 1, math.inf]
    one = rng.normal(size=4000)
    codes = np.stack([np.digitize(x, edges) - 1 for x in (one, 0.8 * one + 0.6 * rng.normal(size=4000))], axis=1)
    structure = Structure(Domain(Attribute.of_bins(name, edges, unknown="?") for name in "ab"), [("a", "b")])
    right = fit(codes, structure, Budget.zcdp(1), mechanism="gaussian", **seeded(1)).model
    found = measure_findings(right)
    assert found.colour == "green" and found.pairs[0].correlation.tables == pytest.approx(0.75, abs=0.05)
    lost = measure_findings(Model(structure, Tables.zeros(structure), releases=right.releases))
    assert lost.colour == "amber" and lost.to_dict()["pairs"][0]["rank_correlation"]["model"] == pytest.approx(
        0, abs=0.01
    )
    assert "the model has other rank correlations than its tables: a and b (0.00, not 0.7" in " ".join(lost.sentences())

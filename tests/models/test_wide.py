"""Numbers in bins many times wider than a neighbour: the exponential fit, against closed forms and what is drawn."""

import math

import numpy as np
import pytest
from scipy import stats

from dpgm_core import Attribute, Domain, Model, SeededRandomness, Structure, Tables
from dpgm_core.models.orders import orders_among
from dpgm_core.models.within_bins import bin_distribution, decoder, fit_wide_bins, wide_bins, wide_note

VISITS = [0, 1, 2, 3, 5, 9, 366]


def column(edges, kind="integer", **more):
    return Attribute.from_dict("x", {"type": kind, "bins": list(edges), **more})


def table_of(one, cdf):
    """The marginal of a column whose values have this distribution function, over its bins and missing values."""
    law = bin_distribution(one)
    bins = len(one.edges) - 1
    before = law.low if law.lattice is None else law.lattice.place(law.low - 1)
    masses = (cdf(law.placed(law.high)) - cdf(before))[:bins]
    return np.append(masses / masses.sum(), np.zeros(one.size - bins))


def mean_of(one, table, law):
    return float(table[law.present] @ law.moments()[0][law.present])


@pytest.mark.parametrize("kind", ["integer", "date"])
def test_the_mean_of_geometric_numbers_is_exact(kind):
    """The two counts give the rate of a geometric distribution without error, at whichever end the wide bin is."""
    truth = stats.geom(0.3, loc=-1)
    assert math.isclose(
        fit_wide_bins(column(VISITS, kind), table_of(column(VISITS, kind), truth.cdf)).rates[5], -math.log(0.7)
    )
    for edges, cdf, where in (
        (VISITS, truth.cdf, 5),
        ([-400, -9, -5, 0], lambda x: 1 - truth.cdf(-np.asarray(x) - 1), 0),
        ([-400, -9, -5, 0, 1], lambda x: 1 - truth.cdf(-np.asarray(x) - 1), 0),
    ):
        one = column(edges, kind)
        mean = fit_wide_bins(one, table_of(one, cdf)).moments()[0][where]
        wanted = 9 + 7 / 3 if where else -10 - 7 / 3  # memoryless: the bin's near end, and the mean of the distribution
        assert math.isclose(mean, wanted, rel_tol=1e-9), edges


def test_the_mean_of_exponential_numbers_is_exact():
    """Of real numbers, in the last bin and in the first one, and the variance too."""
    for sign in (1, -1):
        edges = sorted(sign * edge for edge in (0, 1, 3, 500))
        one = column(edges, "number")
        law = fit_wide_bins(one, table_of(one, lambda x, sign=sign: np.exp(x / 2) if sign < 0 else 1 - np.exp(-x / 2)))
        where = 2 if sign > 0 else 0
        assert math.isclose(law.moments()[0][where], sign * 5) and math.isclose(law.moments()[1][where], 4)


LAWS = [
    (VISITS, "integer", {}),
    ([-400, -9, -5, 0], "integer", {}),
    ([0, 1, 3, 500], "number", {}),
    ([-500, -3, -1, 0], "number", {}),
    ([0, 1, 3, 50], "number", {"decimals": 1}),
    ([0, 1, 10, 100, 1000], "number", {}),
    ([0, 60, 180, 86400], "time", {"format": "%H:%M"}),
]


@pytest.mark.parametrize("scale", [0.3, 3.0, 1e4])
@pytest.mark.parametrize(("edges", "kind", "more"), LAWS, ids=str)
def test_moments_and_quantiles_are_those_of_what_is_drawn(edges, kind, more, scale):
    """At 20,001 evenly spaced places of the law, for steep, ordinary and nearly even ones: no chance in it."""
    one = column(edges, kind, **more)
    scale *= 60 if kind == "time" else 1
    table = table_of(one, lambda x: stats.expon.cdf(np.abs(x), scale=scale) * np.sign(x))
    law = fit_wide_bins(one, table)
    wide = [code for code in wide_bins(one) if table[code] > 0]
    assert wide and (law.rates[wide] != 0).all()
    means, variances = law.moments()
    at = (np.arange(20_001) + 0.5) / 20_001
    for code in wide:
        drawn = law.draw(np.full(len(at), code), at)
        ends = law.placed(law.low)[code], law.placed(law.high)[code]
        assert (ends[0] <= drawn).all() and (drawn <= ends[1]).all() and (np.diff(drawn) >= 0).all()
        sd = math.sqrt(variances[code])
        assert abs(drawn.mean() - means[code]) < 2e-3 * sd + 1e-9
        assert math.isclose(drawn.var(), variances[code], rel_tol=2e-2, abs_tol=1e-9)
        for share in (0.0, 0.1, 0.5, 0.9, 1.0):
            found = law.quantile(code, share)
            assert ends[0] <= found <= ends[1] and (drawn <= found + 1e-9 * abs(found)).mean() >= share - 1e-3


def test_a_bin_as_dense_as_its_neighbour_stays_even():
    """Uniform numbers have rate 0; so have denser bins, empty ones and those beside an empty one."""
    one = column([0, 5, 9, 366], "number")
    assert fit_wide_bins(one, table_of(one, lambda x: x / 366)).rates[2] < 1e-12
    for masses in ([0.1, 0.001, 0.899, 0], [0.5, 0.5, 0, 0], [1, 0, 0, 0], [0.5, 0, 0.5, 0]):
        law = fit_wide_bins(one, np.array(masses, float))
        assert not law.rates.any() and law.moments()[0][2] == 187.5


def test_which_bins_are_wide():
    """Four times as wide as the narrower neighbour that has an end and a value; inner ones too."""
    assert wide_bins(column([0, 10, 48])) == {} and wide_bins(column([0, 10, 49.5, 50])) == {1: 2}
    assert wide_bins(column([0, 10, 50], "number")) == {1: 0}
    assert wide_bins(column([0, 1, 100, 102, 104])) == {1: 0}
    assert wide_bins(column([-math.inf, 0, 18, 65, math.inf])) == {}
    assert wide_bins(column([0, 366])) == {}
    for shape in ("uniform", "lower", "log"):
        assert wide_bins(column(VISITS, shape=shape)) == {}
    assert wide_bins(Attribute.from_dict("x", {"labels": ["1", "2", "90"], "type": "integer"})) == {}
    assert wide_bins(Attribute.of_size("x", 3)) == {}


UNLIKE = {  # on 0 .. 366; others than the rule was chosen on
    "logarithmic series": stats.logser(0.8, loc=-1),
    "Poisson mixture": stats.nbinom(0.3, 0.1),
    "Zipf": stats.zipf(2.2, loc=-1),
    "beta-binomial": stats.betabinom(366, 1, 60),
}


@pytest.mark.parametrize("name", UNLIKE)
def test_the_mean_of_unlike_numbers_is_off_by_a_quarter_of_what_even_bins_are_off_by(name):
    """At 10,000 records and noise of a standard deviation of 10 a cell; the seed is fixed, so no chance is left."""
    one, truth, draws = column(VISITS), UNLIKE[name], np.random.default_rng(1)
    numbers = np.arange(367)
    mean = (numbers * truth.pmf(numbers)).sum() / truth.pmf(numbers).sum()
    counts = draws.multinomial(10_000, table_of(one, truth.cdf)) + 10 * draws.normal(size=7)
    table = np.maximum(counts * (np.arange(7) < 6), 0.0)
    table /= table.sum()
    even, bent = (abs(mean_of(one, table, law) - mean) for law in (bin_distribution(one), fit_wide_bins(one, table)))
    assert bent < even / 4


DOMAIN = Domain.from_dict(
    {"x": {"type": "integer", "bins": VISITS}, "sex": {"labels": ["F", "M"], "unknown": "F"}, "y": ["p", "q"]}
)


def model_of_visits():
    structure = Structure(DOMAIN, [("x", "sex"), ("y",)])
    masses = table_of(DOMAIN["x"], stats.geom(0.3, loc=-1).cdf) + 0.02 * (np.arange(7) == 6)
    tables = {("x", "sex"): np.log(np.outer(masses, [0.5, 0.5]) * [1, 2]), ("y",): np.zeros(3)}
    tables[("x", "sex")][5] += [1.0, -1.0]  # the wide bin is commoner among F
    return Model(structure, Tables.from_arrays(structure, tables))


def test_samples_means_quantiles_and_completed_rows_share_one_law():
    """Whatever is given; records within 5 standard errors of the exact answers (false alarm 1e-6 each, seed fixed)."""
    model = model_of_visits()
    for given in (None, {"sex": "F"}):
        table = model.sample(20_000, given=given, form="values", randomness=SeededRandomness(1))
        numbers = table["x"].drop_null().to_numpy()
        sd = math.sqrt(model.variance("x", given))
        assert abs(numbers.mean() - model.mean("x", given)) < 5 * sd / math.sqrt(len(numbers))
        for share in (0.5, 0.9, 0.99):
            found = model.quantile("x", share, given)
            error = 5 * math.sqrt(share * (1 - share) / len(numbers))
            assert (numbers <= found).mean() >= share - error and (numbers < found).mean() <= share + error
    filled = (
        model.complete(table.select(["sex"]).slice(0, 5000), randomness=SeededRandomness(2))["x"].drop_null().to_numpy()
    )
    assert abs(filled.mean() - model.mean("x", {"sex": "F"})) < 5 * sd / math.sqrt(len(filled))
    assert filled.max() < 120  # evenly, 19 in 20 of the bin would be beyond


def test_each_replicate_has_its_own_rate():
    """So an interval of a mean holds what noise does to the rate."""
    model = model_of_visits()
    theta = model.potentials.values + np.random.default_rng(0).normal(size=(4, model.structure.cells)) * 0.1
    rates = {one._numbers_of("x").rates[5] for one in model.with_replicates(theta).replicates}
    assert len(rates) == 4


def test_an_order_keeps_a_part_of_the_law():
    """Of x above y = 100 in one bin: memoryless, so 100 and the same mean again (5 standard errors, seed fixed)."""
    pair = Domain.from_dict(
        {
            "attributes": {name: {"type": "integer", "bins": [0, 10, 1000]} for name in ("a", "b")},
            "constraints": {"later": {"columns": ["a", "b"], "order": "<="}},
        }
    )
    table = np.array([1 - math.exp(-0.2), math.exp(-0.2), 0.0])
    decoders = {name: decoder(pair[name], table) for name in ("a", "b")}
    codes = {name: np.ones(4000, np.int64) for name in ("a", "b")}
    places = orders_among(pair.constraints, decoders).places(codes, {"a": 100.0}, np.random.default_rng(1))
    rate = decoders["b"].dist.rates[1]
    wanted = 100 + 1 / math.expm1(rate)
    assert 0.019 < rate < 0.021
    assert places["b"].min() >= 100 and abs(places["b"].mean() - wanted) < 5 / rate / math.sqrt(4000)


def test_old_files_are_fitted_and_an_even_shape_can_be_stated():
    """The table of a domain file says nothing of the usual shape, as before there was one; it keeps another."""
    assert "shape" not in column(VISITS).to_dict()
    even = column(VISITS, shape="uniform")
    assert even.to_dict()["shape"] == "uniform" and Attribute.from_dict("x", even.to_dict()) == even
    assert fit_wide_bins(even, np.ones(7) / 7).rates is None


def test_the_note_names_the_bins():
    """None without any; of private bins, whose edges are not known, none yet."""
    note = wide_note([column(VISITS), column([0, 18, 65])])
    assert note is not None and "'x' (9-366)" in note and "shape = 'uniform'" in note
    assert "'x' (100-1000 and 2 more)" in str(wide_note([column([0, 1, 10, 100, 1000])]))
    private = Attribute.from_dict("p", {"type": "number", "min": 0, "max": 9, "bins": {"private": 4}})
    assert wide_note([column([0, 18, 65]), private]) is None

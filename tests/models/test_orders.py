"""Numbers that keep an order inside overlapping bins: always, and by the law inside the bins given the order."""

import itertools

import numpy as np
import pytest
from scipy import stats

from dpgm_core import Domain
from dpgm_core.domain import Ordered
from dpgm_core.models.orders import orders_among
from dpgm_core.models.within_bins import decoder, ordered_bin_distribution

WHOLE = {"type": "integer", "bins": [0, 10, 20, 40]}
TABLES = {
    "whole": dict.fromkeys("abc", WHOLE),
    "shifted": {"a": {"type": "number", "bins": [0, 9, 100]}, "b": {"type": "number", "bins": [0, 10, 95]}},
    "decimals": {
        "a": {"type": "number", "bins": [0, 0.1, 3], "decimals": 2},
        "b": {"type": "number", "bins": [0, 0.3, 3]},
    },
    "lower": {
        "a": {"type": "number", "bins": [0, 5, 10], "shape": "lower"},
        "b": {"type": "number", "bins": [0, 7, 10]},
    },
    "open": {
        "a": {"type": "integer", "bins": ["-inf", 0, 70, 80]},
        "b": {"type": "number", "bins": ["-inf", 0, 65, "inf"]},
        "c": {"type": "number", "bins": [-50, 30, 90, "inf"], "decimals": 1},
    },
    "labels": {"a": {"type": "integer", "bins": [0, 10, 20]}, "b": {"labels": ["3", "12", "19"]}},
    "dates": {
        "a": {"type": "date", "min": "2020-01-01", "max": "2020-12-31", "bins": "quarter"},
        "b": {"type": "datetime", "min": "2020-01-01", "max": "2020-12-31", "bins": "month"},
    },
}


def made(tables, strict=False, missing=True):
    domain = Domain.from_dict(tables)
    names = domain.names
    pairs = [Ordered(name=f"o{at}", columns=(names[at], names[at + 1]), strict=strict) for at in range(len(names) - 1)]
    decoders = {one.name: decoder(one) for one in domain}
    return domain, orders_among(pairs, decoders), decoders


def feasible(domain, decoders, strict, count, seed):
    """Codes of records that some ordered values have; a tenth of them lack a value."""
    rng = np.random.default_rng(seed)
    codes = {one.name: rng.integers(0, one.size, count) for one in domain}
    laws = {name: ordered_bin_distribution(one.attribute) for name, one in decoders.items()}
    units = {name: 86_400 if law.values.kind == "date" else 1 for name, law in laws.items()}
    keep = np.ones(count, bool)
    least = np.full(count, -np.inf)
    for name, law in laws.items():
        here, edges = codes[name], domain[name].edges
        low, high = (law.placed(end)[here] * units[name] for end in (law.low, law.high))
        if edges is not None:
            low = np.where(np.isinf(edges[0]) & (here == 0), -np.inf, low)
            high = np.where(np.isinf(edges[-1]) & (here == len(edges) - 2), np.inf, high)
        present = law.present[here]
        keep &= ~present | (high >= least + strict)
        least = np.where(present, np.maximum(least + strict, low), least)
    return {name: column[keep] for name, column in codes.items()}, units


@pytest.mark.sampled(4)
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", TABLES)
def test_no_record_breaks_an_order(name, strict):
    """30,000 records of bins in any combination that ordered values have; codes stay, missing values bind nothing."""
    domain, orders, decoders = made(TABLES[name], strict)
    codes, units = feasible(domain, decoders, strict, 30_000, 1)
    places = orders.places(codes, {}, np.random.default_rng(2))
    names = domain.names
    for low, high in itertools.pairwise(names):
        one, other = places[low] * units[low], places[high] * units[high]
        assert not (one >= other if strict else one > other).any()
    for column in names:
        back = np.array([domain[column].null if np.isnan(place) else -1 for place in places[column]])
        present = back < 0
        if name != "lower" and domain[column].edges is not None:
            back[present] = domain[column].bin_codes(places[column][present])
            np.testing.assert_array_equal(back, codes[column])


def test_the_law_is_that_of_the_bins_given_the_order():
    """Two whole numbers of 0 .. 9: each of the 55 ordered pairs as likely; three in strict order: each of 120 triples
    (false alarm 1e-6 each, seed fixed)."""
    _, orders, _ = made({"a": WHOLE, "b": WHOLE})
    places = orders.places({"a": np.zeros(50_000, int), "b": np.zeros(50_000, int)}, {}, np.random.default_rng(3))
    counts = np.unique(10 * places["a"] + places["b"], return_counts=True)[1]
    assert len(counts) == 55 and stats.chisquare(counts).pvalue > 1e-6
    _, orders, _ = made(TABLES["whole"], strict=True)
    places = orders.places({name: np.zeros(60_000, int) for name in "abc"}, {}, np.random.default_rng(3))
    counts = np.unique(100 * places["a"] + 10 * places["b"] + places["c"], return_counts=True)[1]
    assert len(counts) == 120 and stats.chisquare(counts).pvalue > 1e-6


def test_what_is_given_stays():
    """A fixed value on either side; and in rows with gaps those that were given, even where they break the order."""
    _, orders, _ = made({"a": WHOLE, "b": WHOLE})
    codes = {"a": np.zeros(1000, int), "b": np.zeros(1000, int)}
    assert (orders.places(codes, {"a": 8.0}, np.random.default_rng(0))["b"] >= 8).all()
    assert (orders.places(codes, {"b": 1.0}, np.random.default_rng(0))["a"] <= 1).all()
    given = {"a": np.full(1000, 9.0), "b": np.full(1000, 3.0)}
    gaps = {"a": np.zeros(1000, bool), "b": np.arange(1000) % 2 == 0}
    found = orders.complete(codes, given, gaps, np.random.default_rng(0))
    assert (found["a"] == 9).all() and (found["b"][1::2] == 3).all() and (found["b"][::2] == 9).all()


def test_where_rounds_run_out_the_order_holds(monkeypatch):
    """The lower first, the upper above it."""
    monkeypatch.setattr("dpgm_core.models.orders._MAX_ROUNDS", 0)
    _, orders, _ = made(TABLES["whole"], strict=True)
    places = orders.places({name: np.zeros(2000, int) for name in "abc"}, {}, np.random.default_rng(3))
    assert (places["a"] < places["b"]).all() and (places["b"] < places["c"]).all()


def test_given_values_rule_out_bins_on_their_wrong_side():
    """By enumeration of whole numbers: a code is left if some value of it is on the right side; c leaves b room."""
    domain, orders, decoders = made(TABLES["whole"], strict=True)
    places = np.arange(0.0, 41)
    given = {"a": places, "b": np.full(41, np.nan), "c": np.full(41, np.nan)}
    gaps = {name: np.full(41, name != "a") for name in "abc"}
    law = decoders["a"].dist
    found = {names[0]: table[state] for names, table, state in orders.ruled_out(given, gaps)}
    assert set(found) == {"b", "c"}
    for name, table in found.items():
        for place, left in zip(places + (name == "c"), table, strict=True):
            wanted = [not law.present[code] or law.high[code] > place for code in range(domain["a"].size)]
            assert (left == 0).tolist() == wanted


def ascends(record, strict):
    return all(None in (x, y) or (x < y if strict else x <= y) for x, y in itertools.pairwise(record))


@pytest.mark.parametrize("strict", [False, True])
def test_codes_fit_where_values_ascend(strict):
    """By enumeration of whole numbers; a column without a value binds nothing, one that is given does."""
    tables = {"a": [0, 2, 7], "b": [1, 4, 6], "c": [0, 3, 7]}
    domain, orders, decoders = made({n: {"type": "integer", "bins": edges} for n, edges in tables.items()}, strict)
    codes = dict(zip("abc", np.indices([3, 3, 3]).reshape(3, -1), strict=True))
    values = []
    for name, edges in tables.items():
        bins = dict(enumerate(domain[name].bin_codes(np.arange(8.0)).tolist()))
        values.append([[n for n in bins if bins[n] == code and edges[0] <= n <= edges[-1]] for code in (0, 1)])
        values[-1].append([None])
    wanted = []
    for record in zip(*codes.values(), strict=True):
        choices = [own[code] for own, code in zip(values, record, strict=True)]
        wanted.append(any(ascends(made_of, strict) for made_of in itertools.product(*choices)))
    assert orders.fit(codes, {}).tolist() == wanted and not all(wanted)
    assert not orders.fit({"a": np.array([1]), "b": np.array([1]), "c": np.array([1])}, {"a": 7.0})[0]
    assert decoders.keys() == codes.keys()

"""The benchmark of private bins: what it compares is what the definition says, and its parts run."""

import numpy as np
import pytest

from benchmarks.cases.binned import HAND, JUDGES, WAYS, binned, exact, off_numbers, spread, tenths
from benchmarks.cases.coded import Coded
from benchmarks.table import bins_found
from dpgm_core import Attribute, Domain, Model, Structure, Tables

SIZES = {"age": 85, "fnlwgt": 100, "capital-gain": 100, "capital-loss": 100, "hours-per-week": 99, "sex": 2}


def test_bins_are_spread_evenly_over_their_numbers():
    """Each label's share of the numbers sums to one, that of missing values to none; the last bin is closed."""
    age = Attribute.from_dict("age", {"type": "integer", "bins": [0, 2, 5]})
    assert spread(age, 6).tolist() == [
        [0.5, 0.5, 0, 0, 0, 0], [0, 0, 0.25, 0.25, 0.25, 0.25], [0] * 6
    ]  # fmt: skip


def test_a_model_of_uniform_records_is_near_them_and_of_others_is_not():
    """Uniform potentials beside records of every pair of numbers once; all on one number is as far as can be."""
    codes = Domain.from_sizes({"age": 85, "hours-per-week": 99})
    everyone = np.stack(np.meshgrid(np.arange(85), np.arange(99)), axis=-1).reshape(-1, 2)
    domain = binned(codes, "by hand")
    assert domain["age"].edges[-1] == 84 and not domain.undetermined
    structure = Structure(domain, [domain.names])
    weights = [np.log(np.diff([*HAND[one.name][:-1], HAND[one.name][-1] + 1])) for one in domain]
    table = np.full(domain.shape(domain.names), -50.0)
    table[:-1, :-1] = np.add.outer(*weights)
    model = Model(structure, Tables(structure, table.reshape(-1)))
    near = off_numbers(Coded(domain=codes, codes=everyone), domain, model.marginals_of)
    assert near == pytest.approx(dict.fromkeys(JUDGES, 0), abs=1e-9)
    far = off_numbers(Coded(domain=codes, codes=np.full((10, 2), 3)), domain, model.marginals_of)
    assert far["numbers"] == pytest.approx(1 - 1 / (85 * 99)) and 0.5 < far["tenths"] < 1
    assert 0.9 < far["bins by hand"] == far["own bins"] < 1


def test_bins_hide_what_is_inside_them():
    """All on 3: in bins of four numbers (age, 0 to 3) and of nine (hours, 0 to 8), even inside both."""
    table = Coded(domain=Domain.from_sizes({"age": 85, "hours-per-week": 99}), codes=np.full((10, 2), 3))
    domain = binned(table.domain, "by hand")
    found = off_numbers(table, domain, exact(table, domain))
    assert found["numbers"] == pytest.approx(1 - 1 / 36) and found["bins by hand"] == pytest.approx(0)
    assert found["own bins"] == pytest.approx(0)


def test_tenths_are_of_the_records():
    """Ten of 0, five of 1, five of 3: middles in the 3rd, 7th and 9th tenth, of 2, nobody's, in the 8th."""
    cells = tenths(np.repeat([0, 1, 3], [10, 5, 5]), 4)
    assert (cells.sum(axis=0) == 1).all()
    assert cells.argmax(axis=0).tolist() == [0, 1, 2, 3]
    cells = tenths(np.repeat(np.arange(100), 3), 100)
    assert (cells.sum(axis=1) == 10).all()


@pytest.mark.parametrize("way", WAYS)
def test_each_way_to_cut_is_a_domain(way):
    """As many bins as its name says, where it says a number, and a label for missing values."""
    domain = binned(Domain.from_sizes(SIZES), way)
    if way[0].isdigit():
        assert all(domain[name].size == int(way[:2]) + 1 for name in HAND)


def test_private_bins_leave_the_labels_of_other_columns():
    """As many bins as asked for at most, to be found; a column of labels is as it is."""
    domain = binned(Domain.from_sizes(SIZES), "16 private")
    assert domain.undetermined == tuple(HAND) and domain["age"].size == 17 and domain["sex"].size == 2


def test_private_bins_are_found_and_timed():
    """One column of a thousand records."""
    assert set(bins_found(1000, 1, "pure")) == {"public", "private", "public CPU", "private CPU", "peak"}

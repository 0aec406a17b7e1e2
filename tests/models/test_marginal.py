"""A marginal is an array in all but what a notebook shows of it."""

import copy
import pickle

import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm_core.models.notebook import Marginal


@pytest.fixture(scope="module")
def marginal():
    """p(sex, smoker) of a model by definition."""
    domain = dpgm.Domain.from_dict({"sex": {"labels": ["F", "M"], "unknown": "F"}, "smoker": {"size": 2, "unknown": 0}})
    structure = dpgm.Structure(domain, [("sex", "smoker")])
    table = np.log(np.array([[0.125, 0.25], [0.5, 0.125]]))
    return dpgm.Model(structure, dpgm.Tables.from_arrays(structure, {("sex", "smoker"): table})).marginal(
        ("sex", "smoker")
    )


def test_it_prints_as_an_array(marginal):
    """Nothing that was written for arrays reads anything else."""
    plain = np.asarray(marginal)
    assert type(plain) is np.ndarray and (repr(marginal), str(marginal)) == (repr(plain), str(plain))


def test_what_is_computed_from_it_is_plain(marginal):
    """Sums, products and functions are numbers and arrays of numpy's own: their labels would be others."""
    for found in (2 * marginal, marginal + marginal, np.log(marginal), marginal.sum(axis=0), np.stack([marginal])):
        assert type(found) is np.ndarray
    for number in (marginal.sum(), marginal.max(), np.vdot(marginal, marginal)):
        assert isinstance(number, float)


def test_parts_of_it_have_no_labels(marginal):
    """A slice, a transpose and a copy of other shape would stand beside wrong ones."""
    for part in (marginal[0], marginal.T, marginal.reshape(-1), marginal.copy(), copy.deepcopy(marginal)):
        assert getattr(part, "_repr_html_", lambda: None)() is None
        assert repr(part) == repr(np.asarray(part))


def test_a_file_of_it_needs_no_dpgm(marginal):
    """Pickled, it is an array."""
    assert b"dpgm" not in pickle.dumps(marginal) and np.array_equal(pickle.loads(pickle.dumps(marginal)), marginal)


def test_a_notebook_shows_labels_standing_and_stamps(marginal):
    """Each label beside its number; a model of no release says that nothing is known."""
    shown = marginal._repr_html_()
    assert '<td>M</td><td>0</td><td style="text-align:right">0.5</td><td>by definition</td>' in shown
    assert "nothing is known about the privacy" in shown
    assert "UNSAFE" in Marginal.of(np.ones(1), ("a",), (("x",),), "measured", ["UNSAFE: textbook"])._repr_html_()

"""The matrix of measured pairs."""

import numpy as np

import dpgm_core as dpgm
from dpgm.report.noise import measured_tables, noise_matrix

DOMAIN = dpgm.Domain.from_sizes({"a": 2, "b": 3, "c": 2})
CODES = np.array([[0, 0, 0], [1, 2, 1], [1, 1, 0]] * 100)


def test_the_matrix_shows_each_pair_once():
    """A table of three attributes holds three pairs; of none there is no matrix."""
    structure = dpgm.Structure(DOMAIN, [("a", "b", "c")])
    noisy = dpgm.release(CODES, structure, dpgm.Budget.pure(1), neighbours="add-remove")
    drawn = noise_matrix(DOMAIN.names, measured_tables([noisy]))
    assert drawn is not None
    assert "3 pairs of attributes lie in a released table" in drawn
    singles = dpgm.Structure(DOMAIN, [("a",)])
    alone = dpgm.release(CODES, singles, dpgm.Budget.pure(1), neighbours="add-remove")
    assert noise_matrix(DOMAIN.names, measured_tables([alone])) is None

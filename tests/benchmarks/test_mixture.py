"""The benchmark of latent classes runs, and its errors are distances of what it names."""

import numpy as np

from benchmarks import mixture
from benchmarks.harness.main import main


def test_the_smallest_run_measures_each_kind_of_answer(capsys):
    """A row for each table that is made up; the one that needs data is left out."""
    main(mixture.MEASUREMENT, ["--smoke"])
    rows = [line.strip("|").split("|") for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    measured = [[float(cell) for cell in row] for row in rows if row[0].strip().isdigit()]
    assert len(measured) == 2 and all(0 < error < 0.5 for row in measured for error in row[2:6])


def test_the_dense_table_is_that_of_one_factor():
    """Labels have equal counts; the correlation of scores is .48, as ten labels blur .5, to six standard errors."""
    case = mixture.one_factor(4, 20_000)
    assert (np.bincount(case.codes[:, 0]) == 2000).all()
    correlations = np.corrcoef(case.codes.T.astype(float))[np.triu_indices(4, 1)]
    assert np.abs(correlations - 0.48).max() < 6 * 0.77 / np.sqrt(20_000)

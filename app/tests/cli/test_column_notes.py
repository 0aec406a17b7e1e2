"""Notes on columns, of shares alone."""

import numpy as np
import pytest

from dpgm.cli.column_notes import unknown_notes
from dpgm_core.domain.attribute import Attribute

NAMES = ("a", "b", "c")
COLUMNS = [Attribute.of_labels(name, ["x", "y"], unknown="other", null="missing") for name in NAMES]


@pytest.mark.parametrize(
    ("unknown", "missing", "searched", "said"),
    [
        (0.03, 0.03, NAMES, True),
        (0.03, 0.01, NAMES, False),
        (0.3, 0.3, NAMES[:2], False),
    ],
)
def test_unknown_values_in_every_column(unknown, missing, searched, said):
    """Both labels together, in three columns that were searched; one column below 5 % is enough for no note."""
    tables = [(one, np.array([0.5, 0.5 - unknown - missing, unknown, missing])) for one in COLUMNS]
    assert bool(unknown_notes(tables, set(searched))) is said
    tables[2] = COLUMNS[2], np.array([0.5, 0.46, 0.02, 0.02])
    assert not unknown_notes(tables, set(searched))

"""Notes on columns, of shares alone."""

import numpy as np
import pytest

from dpgm.cli.column_notes import unknown_notes
from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.domain import Domain

NAMES = ("a", "b", "c")
DOMAIN = Domain(Attribute.of_labels(name, ["x", "y"], unknown="other", null="missing") for name in NAMES)


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
    table = np.array([0.5, 0.5 - unknown - missing, unknown, missing])
    shares = dict.fromkeys(NAMES, table)
    assert bool(unknown_notes(DOMAIN, shares, set(searched))) is said
    shares["c"] = np.array([0.5, 0.46, 0.02, 0.02])
    assert not unknown_notes(DOMAIN, shares, set(searched))

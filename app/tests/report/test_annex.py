"""The owner's annex: exact, so asked for by name, and stamped on every section."""

import numpy as np
import pytest

from app.tests.made import uniform
from dpgm.report import make_annex
from dpgm_core.errors import NonPrivateError


def test_it_is_refused_without_consent_and_stamped_on_every_section(model, codes, parsed):
    """As `evaluate` is; NOT PRIVATE, in words; and it says of itself what it is."""
    with pytest.raises(NonPrivateError, match="annex"):
        make_annex(model, codes)
    seen = parsed(make_annex(model, codes, allow_non_private=True))
    assert seen.sections == ["summary", "tables", "pairs", "marginals"]
    assert all("NOT PRIVATE" in text for text in seen.texts.values())
    assert len(seen.inside["script"]) == 1


def test_distances_are_those_of_the_true_table(parsed):
    """By hand: a uniform model against records of which three quarters have one label."""
    flat = uniform({"a": 2, "b": 2}, ("a",), ("b",))
    codes = np.array([[0, 0], [0, 0], [0, 0], [1, 1]])
    seen = parsed(make_annex(flat, codes, allow_non_private=True))
    assert "Against 4 records" in seen.texts["summary"]
    assert "a × b0.5000" in seen.texts["pairs"]
    assert "075.00 %50.00 %-25.00" in seen.texts["marginals"]

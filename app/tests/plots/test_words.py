"""What stands under a picture."""

import pytest

from app.tests.plots.shown import hostile, released
from dpgm.plots.functions import intervals_of, notes_of
from dpgm_core.models.queries import BY_DEFINITION, BY_STRUCTURE, MEASURED, NOT_MEASURED


@pytest.mark.parametrize("standing", [BY_DEFINITION, BY_STRUCTURE, MEASURED, NOT_MEASURED])
def test_every_standing_is_a_sentence(standing):
    """It starts with the word that `Model.standing` uses; warnings come last."""
    notes = notes_of(released(), standing, "", "More.")
    assert notes[0][0].lower().startswith(standing) and notes[0][0].endswith(".")
    assert [warns for _, warns in notes] == [False, False, True] and notes[1] == ("More.", False)


def test_a_model_of_no_release_warns():
    """Nothing is known of its privacy."""
    assert [text for text, warns in notes_of(hostile(), BY_DEFINITION) if warns] == [
        "This model carries no release, so nothing is known about the privacy of what it was made from."
    ]


def test_intervals_are_said():
    """Level and number of refits, or that there are none."""
    assert intervals_of(released(), 0.9) == "Intervals: 90 %, from 6 refits."
    assert "no replicates" in intervals_of(released(), None)

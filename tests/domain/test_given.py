"""Values as users name them."""

from __future__ import annotations

from datetime import date, datetime, time

import numpy as np
import pytest

from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.labels import EXACT, Matching, find_alike, place_of
from dpgm_core.domain.values import Values
from dpgm_core.errors import DomainError


@pytest.mark.parametrize(
    ("values", "value", "place"),
    [
        (Values(kind="integer"), "37", 37.0),
        (Values(kind="integer"), np.float64(37), 37.0),
        (Values(kind="integer"), 37.5, None),
        (Values(kind="number"), "37.5", 37.5),
        (Values(), "1e3", 1000.0),
        (Values(kind="number"), "old", None),
        (Values(kind="number"), float("nan"), None),
        (Values(kind="number"), 37, None),  # a code, where users name labels
        (Values(kind="number"), date(1970, 1, 2), None),
        (Values(kind="date", format="%d.%m.%Y"), "02.01.1970", 1.0),
        (Values(kind="date", format="%d.%m.%Y"), "1970-01-02", None),
        (Values(kind="date"), date(1970, 1, 2), 1.0),
        (Values(kind="date"), 1.0, None),
        (Values(kind="datetime"), datetime(1970, 1, 1, 0, 0, 1), 1.0),
        (Values(kind="time"), time(1), 3600.0),
        (Values(kind="date"), time(1), None),
    ],
)
def test_values_have_places(values, value, place):
    """Texts in the column's format, floats and dates; what is none of its type has no place."""
    assert place_of(values, EXACT, value) == place


def test_numbers_are_written_as_their_country_does():
    """The rules of matching hold for texts alone."""
    german = Matching(thousands=".", decimal=",")
    assert (
        place_of(Values(kind="number"), german, "1.250,5") == place_of(Values(kind="number"), german, 1250.5) == 1250.5
    )


def test_labels_are_named_as_the_column_writes_them():
    """By the rules under which its values match: case, blanks, the form of numbers; never by two labels at once."""
    loose = Matching(case=False, blanks="strip", numbers=True)
    attribute = Attribute.of_labels("smoker", ["0", "Ja"], unknown="?", matching=loose)
    assert [attribute.label_code(one) for one in ("0.0", " JA", "ja", "?")] == [0, 1, 1, 2]
    with pytest.raises(DomainError, match="has no label 'nein'"):
        attribute.label_code("nein")
    assert find_alike(["a", "A"], loose, "a") is None
    with pytest.raises(DomainError, match="has no label 'ja'"):
        Attribute.of_labels("smoker", ["0", "Ja"], unknown="?").label_code("ja")


def test_a_date_in_another_format_is_told_the_column_s():
    """The bins of a month are called as ISO 8601 has it, which would otherwise mislead."""
    table = {"type": "date", "format": "%d.%m.%Y", "min": "1970-01-01", "max": "1970-03-31", "bins": "month"}
    day = Attribute.from_dict("day", table)
    assert day.label_code("03.02.1970") == day.label_code("1970-02") == 1
    with pytest.raises(DomainError, match=r"has no label '1970-02-03', nor is it a date as '%d\.%m\.%Y'"):
        day.label_code("1970-02-03")

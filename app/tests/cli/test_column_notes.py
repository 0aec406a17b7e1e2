"""Notes on columns, of shares and of released counts alone."""

from fractions import Fraction

import numpy as np
import pytest

from dpgm.cli.column_notes import missing_notes, unknown_notes
from dpgm_core import Budget, SeededRandomness
from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.shapes import SHAPES, cell_of, shape_of
from dpgm_core.privacy.columns import ColumnsPlan
from dpgm_core.releases.labels import draw_columns

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


def test_texts_of_few_persons_are_not_mentioned():
    """Noise of texts is nobody; words count with texts, and texts of a column of labels are labels."""
    plan = ColumnsPlan(
        columns=("few", "some", "words", "labels"), whole=Budget.approx(3, "1e-6"), share=Fraction(1, 20), labels=1,
        neighbours="add-remove",
    )  # fmt: skip
    declared = [Attribute.from_dict(name, {"private": True}) for name in plan.columns]
    some = [{"few": 10}, {"some": 1}, {"no": 90}, {"cook": 5000}]
    none = dict.fromkeys(SHAPES, 0)
    shapes = [none | {"integer 2^6": 5000, "text": few, "word": 2 * few} for few in (2, 90)]
    shapes += [none | {"date 2015": 5000, "word": 200}, none | {"text": 5000}]
    notes = missing_notes(draw_columns(plan, declared, some, shapes, [{}] * 4, SeededRandomness(3)))
    assert notes.keys() == {"some", "words"} and all("taken as missing, of about " in note for note in notes.values())


def test_times_of_day_that_are_lost_are_mentioned():
    """Of dates with times; dates alone have none."""
    plan = ColumnsPlan(
        columns=("day", "moment"), whole=Budget.approx(3, "1e-6"), share=Fraction(1, 20), labels=1,
        neighbours="add-remove",
    )  # fmt: skip
    declared = [Attribute.from_dict(name, {"private": True}) for name in plan.columns]
    shapes = [dict.fromkeys(SHAPES, 0) | {f"{kind} 2015": 5000} for kind in ("date", "datetime")]
    notes = missing_notes(draw_columns(plan, declared, [{}] * 2, shapes, [{"2015-03": 5000}] * 2, SeededRandomness(3)))
    assert notes == {"moment": "times of day are drawn evenly; to keep them, give dates and times in two columns"}


def test_codes_far_from_other_values_are_mentioned():
    """Beyond a gap; 99 of numbers up to 99, and of dates, is none."""
    plan = ColumnsPlan(
        columns=("high", "low", "near"), whole=Budget.approx(3, "1e-6"), share=Fraction(1, 20), labels=1,
        neighbours="add-remove",
    )  # fmt: skip
    declared = [Attribute.from_dict(name, {"private": True}) for name in plan.columns]
    shapes = [dict.fromkeys(SHAPES, 0) | {"integer 2^5": 5000} for _ in declared]
    cells = [{cell_of(b"%d" % number): 200 for number in range(32, 64)} for _ in declared]
    for at, code in enumerate((999, -9, 99)):
        shapes[at][shape_of(b"%d" % code)] = 400
        cells[at][cell_of(b"%d" % code)] = 400
    found = draw_columns(plan, declared, [{}] * 3, shapes, cells, SeededRandomness(3))
    notes = missing_notes(found)
    assert notes.keys() == {"high", "low"}
    assert notes["high"].startswith("999 is far from other values") and 'null_values = ["-9"]' in notes["low"]

"""The owner's check names every fault with its line, its values and what would help."""

import numpy as np
import pyarrow as pa
import pytest

from dpgm.validation import ColumnReport, PersonReport, explained, validate
from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import BudgetError, DataError
from dpgm_core.sources.csv import CsvSource

DOMAIN = Domain(
    [
        Attribute.of_labels("sex", ["F", "M"], unknown="F", null="?"),
        Attribute.of_bins("age", [0, 18, 99], unknown="?"),
        Attribute.of_labels("town", ["A", "B"], unknown="B"),
    ]
)


def report(tmp_path, content: bytes, **options: object):  # type: ignore[no-untyped-def]
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    terms = {"person": options.pop("person", None), "rows_per_person": options.pop("rows_per_person", 1)}
    return validate(CsvSource(path=path, **options), DOMAIN, **terms)


def test_unknown_values_are_counted_and_shown_most_frequent_first(tmp_path):
    """Also where unknown shares the code of a label; known values are no fault."""
    found = report(tmp_path, b"sex,age,town\nF,17,A\nM,,B\n?,40,B\n")
    assert found.ok and found.records == 3 and str(found).endswith("ok")
    assert [column.null for column in found.columns] == [0, 1, 0]
    found = report(tmp_path, b"sex,age,town\nF,old,A\nX,-1,B\nX,120,A\nY,old,A\n")
    assert not found.ok
    values = (("X", 2), ("Y", 1))
    assert found.columns[0] == ColumnReport(name="sex", unknown=3, null=0, unknown_values=values, hints=())
    assert found.columns[1].unknown_values == (("old", 2), ("-1", 1), ("120", 1))


def test_malformed_lines_carry_their_numbers_and_reasons(tmp_path):
    """Numbers as an editor shows them, the header being line 1."""
    content = b"sex,age,town\nF,1,A\nF,1\n\nF,1,A\0\nF,\r1,A\nF,1,\xff\nF,1,A,\nM,2,B\n"
    found = report(tmp_path, content)
    assert found.records == 8 and found.malformed_lines == 6
    assert found.malformed == (
        (3, "has 2 fields instead of 3"),
        (4, "has 1 fields instead of 3"),
        (5, "holds a NUL byte"),
        (6, "holds a carriage return"),
        (7, "is not UTF-8"),
    )
    assert "line 5: holds a NUL byte" in str(found) and "..." in str(found)


def test_misquoted_lines_are_malformed_when_quoting(tmp_path):
    """A quote left open is explained."""
    found = report(tmp_path, b'sex,age,town\n"F",1,"A\n"M",2,B\n')
    assert "if quotes are letters in this file, and no field stands in quotes, say quoting = false" in found.hints
    assert found.malformed == ((2, "has quotes out of order; a quoted field must end on its line"),)
    assert all(not column.unknown for column in found.columns)


def test_a_missing_column_is_named_beside_those_that_are_there(tmp_path):
    """The rest is checked all the same."""
    found = report(tmp_path, b"sex,city,town\nX,1,A\n")
    assert found.missing == ("age",) and found.present == ("sex", "city", "town")
    assert [column.name for column in found.columns] == ["sex", "town"]
    assert "missing column 'age'; the data have: sex, city, town" in str(found)


@pytest.mark.parametrize(
    ("value", "hint"), [(b'"F"', "quoting = true"), (b"1", "coded = true"), (b" F", "blanks"), (b"f", "case")]
)
def test_hints_name_the_likely_cause(tmp_path, value, hint):
    found = report(tmp_path, b"sex,age,town\n" + value + b",1,A\n", quoting=False)
    assert len(found.columns[0].hints) == 1 and hint in found.columns[0].hints[0]
    assert not found.columns[2].hints


def test_persons_with_too_many_rows(tmp_path):
    """Rows without a key, malformed lines among them, are one person."""
    content = b"id,sex,age,town\n1,F,1,A\n1,F,1,A\n1,F,1,A\n2,F,1,A\n,F,1,A\nbroken\n"
    found = report(tmp_path, content, person="id", rows_per_person=2)
    counts = {"persons": 3, "null_rows": 2, "truncated_persons": 1, "dropped_rows": 1, "most_rows": 3}
    assert found.person == PersonReport(key="id", **counts)
    assert "1 persons have more rows than are kept; 1 rows go" in str(found)


def test_frames_and_codes_are_checked_too():
    """Arrow data by its values; code arrays by position, labels or not."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"sex": ["F", "X"], "age": [3.0, np.nan], "town": ["A", "A"]})
    assert [(column.unknown, column.null) for column in validate(frame, DOMAIN).columns] == [(1, 0), (0, 1), (0, 0)]
    codes = np.array([[0, 1, 1], [5, 2, -1]])
    assert [column.unknown for column in validate(codes, DOMAIN).columns] == [1, 0, 1]
    assert validate({"sex": codes[:, 0], "id": codes[:, 1]}, DOMAIN, person="id").missing == ("age", "town")
    listed = {"a": [0, np.int8(1), 2, True, 1.0, "1", None], "id": ["x"] * 7}
    (column,) = validate(listed, Domain.from_sizes({"a": 2}), person="id").columns
    assert (column.unknown, column.null) == (4, 1)  # a list has no type, so what is no whole number is no code
    assert dict(column.unknown_values) == {"2": 1, "True": 1, "1.0": 1, "'1'": 1}


def test_what_cannot_be_checked_is_refused(tmp_path):
    with pytest.raises(DataError, match="No such file"):
        validate(tmp_path / "no.csv", DOMAIN)

    class Plain:
        def batches(self, domain, columns):  # type: ignore[no-untyped-def]
            raise AssertionError

    with pytest.raises(DataError, match="no raw values"):
        validate(Plain(), DOMAIN)
    with pytest.raises(BudgetError, match="rows_per_person"):
        validate(tmp_path / "no.csv", DOMAIN, rows_per_person=0)


def test_a_long_quoted_field_is_no_obstacle(tmp_path):
    """One longer than Python's csv module takes, beside a line that is explained."""
    path = tmp_path / "x.csv"
    path.write_text('sex,town\n"' + "x,y" * 50_000 + '",A\n"F,M",A,B\n"F"\n')
    found = list(explained(CsvSource(path=path, quoting=True)))
    assert found == [(3, "has 3 fields instead of 2"), (4, "has 1 fields instead of 2")]


def test_another_dialect_is_named_with_the_line_to_write(tmp_path):
    """As `fit` does; where only some of the columns are there, as a hint."""
    with pytest.raises(DataError, match=r"with ';' between fields, the first line .* delimiter = \";\" }"):
        report(tmp_path, b"sex;age;town\nF;1;A\n")
    found = report(tmp_path, b"sex;age\nF;1\n")
    assert found.missing == ("sex", "age", "town") and len(found.hints) == 1
    assert "the first line names 'sex'" in found.hints[0] and 'delimiter = ";"' in str(found)


def test_lines_of_another_encoding_are_explained(tmp_path):
    """The records say so, not the header; lines of other lengths are told what becomes of them."""
    found = report(tmp_path, b"sex,age,town\nF,1,\xe4\nF,1\n")
    assert found.malformed == ((2, "is not UTF-8"), (3, "has 2 fields instead of 3"))
    assert "encoding = 'cp1252' or 'latin-1'" in found.hints[0] and "unknown in every column" in found.hints[1]
    found = report(tmp_path, b"sex,age,town\nF,1,\x81\n", encoding="cp1252")
    assert found.malformed == ((2, "is not CP1252"),) and not found.hints
    assert report(tmp_path, b'sex, age, town\nF, 1, "A"\n', skip_blanks=True, quoting=True).ok


def test_shares_hopeless_columns_and_broken_constraints_are_told(tmp_path):
    """Shares are rounded up; records that break a constraint are counted as a release would count them."""
    attributes = {
        name: {"labels": own, "unknown": "?"} for name, own in (("sex", ["F", "M"]), ("pregnant", ["yes", "no"]))
    }
    rules = {"men": {"columns": ["sex", "pregnant"], "impossible": [["M", "yes"]]}}
    domain = Domain.from_dict({"attributes": attributes, "constraints": rules})
    path = tmp_path / "x.csv"
    path.write_text("sex,pregnant\n" + "M,yes\n" * 2 + "F,yes\n" * 1997 + "X,no\n")
    found = validate(path, domain)
    assert found.broken == {"men": 2} and not found.ok
    assert "constraint men: 2 (0.1 %) records break it" in str(found) and "sex: 1 (0.1 %) unknown" in str(found)
    assert "nearly all" not in str(found)
    path.write_text("sex,pregnant\n" + "1,yes\n" * 10 + "M,no\n")
    assert "nearly all values are unknown: does the domain describe this column?" in str(validate(path, domain))
    path.write_text("sex\nM\n")  # without one of its columns nothing is said of a constraint
    assert not validate(path, domain).broken


def test_values_of_an_open_column_are_not_unknown():
    """Which of them are labels is found by the release; nulls are told."""
    domain = Domain.from_dict({"attributes": {"a": {"labels": {"private": True, "keep": 3}}}})
    (column,) = validate(pa.table({"a": ["x", "y", None, ""]}), domain).columns
    assert (column.unknown, column.null, column.unknown_values) == (0, 2, ())

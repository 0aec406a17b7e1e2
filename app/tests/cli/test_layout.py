"""Fields of lines: cut and joined again they are the same bytes; an independent reader finds the same texts."""

import csv
import random
from pathlib import Path

import pytest

from dpgm.cli.records import DELIMITERS, Layout, bare, line_end, quoted
from dpgm_core.errors import DataError


def test_lines_come_together_again():
    """Any texts, in quotes where they need them and sometimes elsewhere; Python's own reader finds them too."""
    layout, pick = Layout(b"x;y;z\r\n", ["y"], Path("r.csv"), DELIMITERS), random.Random(0)
    for _ in range(300):
        texts = ["".join(pick.choices('a;" ,', k=pick.randrange(5))) for _ in range(3)]
        fields = [quoted(text.encode(), b";") for text in texts]
        fields = [field if field[:1] == b'"' or pick.random() < 0.7 else b'"' + field + b'"' for field in fields]
        line = b";".join(fields) + pick.choice([b"\n", b"\r\n", b""])
        found = layout.fields(line, 1)
        assert found == fields and b";".join(found) + line_end(line) == line
        assert [bare(field).decode() for field in found] == texts == next(csv.reader([line.decode()], delimiter=";"))


def test_the_sign_that_tells_the_most_columns_apart_is_taken():
    """Of those that may be; the first line keeps its bytes and gets what is added."""
    line = b'\xef\xbb\xbf"a";b,c;d\n'
    layout = Layout(line, ["a", "d", "new;"], Path("r.csv"), DELIMITERS)
    assert (layout.delimiter, layout.names, layout.added) == (b";", ["a", "b,c", "d"], ["new;"])
    assert layout.header() == line[:-1] + b';"new;"\n'
    with pytest.raises(DataError, match="names no attribute of the model, which has a, d"):
        Layout(line, ["a", "d"], Path("r.csv"), b",")

"""What the commands share: aligned tables and JSON for machines."""

import json

import pytest

from dpgm.cli.common import print_json, print_table


def test_numbers_stand_right_and_texts_left(capsys):
    """A column is numeric if all of its cells are; shares in per cent are numbers."""
    print_table(("name", "rows", "share"), [("a", 5, "1.5%"), ("long name", 12345, "20%")])
    assert capsys.readouterr().out.splitlines() == [
        "name        rows  share",
        "---------  -----  -----",
        "a              5   1.5%",
        "long name  12345    20%",
    ]


@pytest.mark.parametrize(("value", "written"), [(float("inf"), "inf"), (float("-inf"), "-inf"), (0.1, 0.1), ("ü", "ü")])
def test_json_is_json(capsys, value, written):
    """Infinity, which JSON lacks, is a text; letters stay letters."""
    print_json({"value": value})
    out = capsys.readouterr().out
    assert json.loads(out, parse_constant=pytest.fail) == {"value": written}
    assert "\\u" not in out

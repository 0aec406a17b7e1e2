"""What the commands share: aligned tables, JSON for machines, progress only on a terminal."""

import io
import json
import sys

import pytest

from dpgm_core.cli.common import print_json, print_table, progress_bar
from dpgm_core.progress import silent


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


def test_progress_is_silent_where_nobody_looks(capsys):
    """Away from a terminal nothing is written."""
    with progress_bar() as report:
        assert report is silent
        report("counting", 1, 2)
    assert capsys.readouterr() == ("", "")


def test_one_line_for_each_kind_of_work(monkeypatch):
    """What stands behind a colon, such as the table that was chosen, changes in its line; other work has its own."""
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    with progress_bar() as report:
        report("choosing: a x b", 1, 9)
        report("choosing: b x c", 2, 9)
        report("learning", 1, None)
    last = terminal.getvalue().rsplit("learning", 1)[0].rsplit("choosing", 1)[1]
    assert last.startswith(": b x c") and "\n" in last  # the frame's line just above
    assert "\x1b[2A" not in terminal.getvalue()  # never three lines

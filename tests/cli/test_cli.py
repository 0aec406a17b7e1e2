"""The command itself: usage errors are one line, help is no failure."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("words", [["fti"], ["fit"], ["fit", "--no-such"], ["query"], ["ledger", "burn"]])
def test_usage_errors_are_one_line(refused, words):
    """Unknown commands and flags, missing arguments."""
    refused(*words)


def test_help_is_no_failure(dpgm_command):
    """dpgm --help, of each command, and --version."""
    for words in (["--help"], ["fit", "--help"], ["ledger", "create", "-h"], ["--version"]):
        code, out, _ = dpgm_command(*words)
        assert code == 0
        assert out

"""`--progress` on the commands that may take long; standard output is the same either way."""

import pytest

from app.tests.made import uniform
from dpgm.cli import cli

#: Commands that can take over a second.
LONG = ["fit", "release", "learn", "plan", "query", "sample", "complete", "check", "report", "compare", "study"]


@pytest.mark.parametrize("command", LONG)
def test_long_commands_have_it(command):
    """Each names the three ways."""
    (option,) = [one for one in cli.get_command(None, command).params if one.name == "progress"]
    assert list(option.type.choices) == ["plain", "bar", "none"] and not option.expose_value


def test_plain_lines_on_stderr(spec, dpgm_command):
    """A fit in a log: its steps in order, of counting no time; the result on stdout is that of a silent one."""
    code, out, err = dpgm_command("fit", spec, "--progress", "plain")
    steps = [line for line in err.splitlines() if line.startswith("dpgm: counting") or "learning" in line]
    assert code == 0 and steps[0] == "dpgm: counting" and steps[1].startswith("dpgm: learning")
    assert "model:" in out and "learning" not in out


@pytest.mark.parametrize("words", [(), ("--progress", "none")])
def test_short_runs_are_silent(spec, dpgm_command, words):
    """Without a terminal nothing is said of steps under five seconds, and nothing at all where that is asked for."""
    code, _, err = dpgm_command("fit", spec, *words)
    assert code == 0 and "counting" not in err and "learning" not in err


def test_sampling_says_how_many_of_those_asked_for(spec, dpgm_command, tmp_path):
    """Synthetic records are as many as the user says, so their number is told."""
    uniform({"a": 2}).save(tmp_path / "a.dpgm")
    code, _, err = dpgm_command(
        "sample", tmp_path / "a.dpgm", "-n", 100, "-o", tmp_path / "a.csv", "--progress", "plain"
    )
    assert code == 0 and "dpgm: sampling: 0 of 100" in err

"""The command itself: usage errors are one line, help is no failure."""

import os
import subprocess
import sys

import click
import pytest

from dpgm.cli import cli


@pytest.mark.parametrize("words", [["fti"], ["fit"], ["fit", "--no-such"], ["query"], ["ledger", "burn"]])
def test_usage_errors_are_one_line(refused, words):
    """Unknown commands and flags, missing arguments."""
    refused(*words)


@pytest.mark.parametrize("flag", ["-v", "--debug"])
def test_a_flag_of_the_whole_command_says_where_it_goes(refused, flag):
    """`dpgm fit SPEC -v` is what people type first."""
    assert f"it goes before the command: dpgm {flag} fit" in refused("fit", "spec.toml", flag)


def test_help_is_no_failure(ran):
    """dpgm --help, of each command, and --version."""
    for words in (["--help"], ["fit", "--help"], ["ledger", "create", "-h"], ["--version"]):
        out, _ = ran(*words)
        assert out


@pytest.mark.parametrize(("asked", "expected"), [(None, "1"), ("3", "3")])
def test_linear_algebra_has_one_thread_unless_asked_for_more(asked, expected):
    """Said before numpy is imported, which reads it once; what the user has set stands. Threads that waited for each
    other made the first intervals of a health model cost 18 CPU seconds instead of half of one."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    if asked is not None:
        environment |= dict.fromkeys(names, asked)
    program = (
        "import os, sys, dpgm.cli as cli\n"
        "assert 'numpy' not in sys.modules\n"
        "try:\n    cli.main(['--version'])\n"
        f"except SystemExit:\n    pass\nprint(*(os.environ[name] for name in {names!r}))"
    )
    found = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.split()[-4:] == [expected] * 4


@pytest.mark.parametrize(
    ("former", "now"),
    [(["show", "source", "csv"], ["plugins", "source", "csv"]), (["select", "-h"], ["release", "-h"])],
)
def test_former_names_still_work(dpgm_command, former, now):
    """The same result, and one line on stderr that says the name of today; --help knows them no more."""
    code, out, err = dpgm_command(*former)
    assert (code, err) == (0, f"dpgm: dpgm {former[0]} is dpgm {now[0]} now\n")
    assert out == dpgm_command(*now)[1]
    assert f"  {former[0]} " not in dpgm_command("--help")[1]


def test_there_are_at_most_twenty_commands():
    """Those of groups counted one by one: nobody finds their way among more."""
    context = click.Context(cli)
    found = [cli.get_command(context, name) for name in cli.list_commands(context)]
    assert sum(len(one.commands) if isinstance(one, click.Group) else 1 for one in found) <= 20

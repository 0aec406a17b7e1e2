"""What the commands share: usage errors, help, tables, JSON, progress, and fields of lines."""

import csv
import json
import os
import random
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from app.tests.made import uniform
from dpgm.cli import cli
from dpgm.cli.common import learn_again, print_json, print_table, selector_of
from dpgm.cli.records import DELIMITERS, Layout, bare, line_end, quoted
from dpgm.spec import load_spec
from dpgm_core.components.registry import default_registry
from dpgm_core.errors import DataError


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


def test_a_run_asks_for_its_structure_or_for_one_to_be_chosen(spec):
    """A workload goes along with a selector only."""
    named = load_spec(spec)
    assert named.to_run().target == named.structure and selector_of(named) is None and named.to_run().workload is None
    chosen = load_spec(spec, ["structure={select={name='mst', x=1}}"])
    assert selector_of(chosen) == "mst"
    automatic = load_spec(spec, ["structure={select='auto'}"])
    run = automatic.to_run()
    assert run.workload == automatic.workload and selector_of(automatic) == "auto"
    assert default_registry().name_of("selector", run.target) == "auto"


def test_the_last_word_can_be_typed():
    """Names with blanks are quoted, and a check's release goes along."""
    said = learn_again([Path("a b.dpgm"), Path("check.dpgm")], [Path("check.dpgm")])
    assert shlex.split(said.split("with: ")[1]) == ["dpgm", "learn", "a b.dpgm", "check.dpgm"]


NET = """network n { }
variable sex { type discrete [ 2 ] { F, M }; }
variable age { type discrete [ 2 ] { 30, 50 }; }
probability ( sex ) { table 0.5, 0.5; }
probability ( age | sex ) { default 0.5, 0.5; }
"""
REMARKS = (
    "the probabilities in net.bif are ignored: what is learned comes from the records alone",
    "2 of 2 attributes have a label more than in net.bif, 'unknown', for values that are none of its labels: sex, age",
)


@pytest.mark.parametrize(
    "command", ["fit", "release", "plan", "release of a selection", "plan of a selection", "validate"]
)
def test_every_command_says_what_was_made_of_a_spec(command, spec, dpgm_command):
    """A BIF file's remarks, each once, on standard error; among the notes of JSON where there are notes."""
    (spec.parent / "net.bif").write_text(NET)
    chosen = command.endswith("of a selection")
    settings = ["budget.epsilon=0.5", "domain=net.bif"]
    settings.append("structure={select='mst'}" if chosen else "structure={bif='net.bif'}")
    words = [command.split()[0], spec]
    if command == "validate":
        spec.write_text(spec.read_text().replace('"domain.toml"', '"net.bif"'))
    else:
        words += [word for setting in settings for word in ("--set", setting)] + ["--json"]
    code, out, err = dpgm_command(*words)
    assert code == (command == "validate"), err  # 1 of a file that is not as its domain says
    for remark in REMARKS:
        assert err.count(f"dpgm: {remark}") == 1
    if command not in ("release", "validate"):
        notes = json.loads(out)["notes"]
        assert notes[0] == REMARKS[0] and notes[1].startswith(REMARKS[1])


@pytest.mark.parametrize("words", [["fti"], ["fit"], ["fit", "--no-such"], ["query"], ["ledger", "burn"]])
def test_usage_errors_are_one_line(refused, words):
    refused(*words)


@pytest.mark.parametrize("flag", ["-v", "--debug"])
def test_a_flag_of_the_whole_command_says_where_it_goes(refused, flag):
    assert f"it goes before the command: dpgm {flag} fit" in refused("fit", "spec.toml", flag)


def test_help_is_no_failure(ran):
    for words in (["--help"], ["fit", "--help"], ["ledger", "create", "-h"], ["--version"]):
        out, _ = ran(*words)
        assert out


@pytest.mark.parametrize(("asked", "expected"), [(None, "1"), ("3", "3")])
def test_linear_algebra_has_one_thread_unless_asked_for_more(asked, expected):
    """The variables are set before numpy is imported, which reads them once; what the user has set stays."""
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


#: Commands that can take over a second.
LONG = ["fit", "release", "learn", "plan", "query", "sample", "complete", "check", "report", "compare", "study"]


@pytest.mark.parametrize("command", LONG)
def test_long_commands_have_it(command):
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

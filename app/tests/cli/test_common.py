"""What the commands share: aligned tables, JSON for machines, what a run asks for, and its last word."""

import json
import shlex
from pathlib import Path

import pytest

from dpgm.cli.common import learn_again, print_json, print_table, selector_of
from dpgm.spec import load_spec
from dpgm_core.components.registry import default_registry


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

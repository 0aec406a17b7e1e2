"""What the commands that pay share: what a run asks for, and the last word of one that failed."""

from __future__ import annotations

import shlex
from pathlib import Path

from dpgm_core.cli.run import learn_again, selector_of, terms_of, wanted
from dpgm_core.spec import load_spec


def test_a_run_asks_for_its_structure_or_for_one_to_be_chosen(spec):
    """A workload goes along with a selector only."""
    named = load_spec(spec)
    assert wanted(named) == named.structure and selector_of(named) is None and "workload" not in terms_of(named)
    chosen = load_spec(spec, ["structure={select={name='mst', x=1}}"])
    assert wanted(chosen) == {"name": "mst", "x": 1} and selector_of(chosen) == "mst"
    assert terms_of(chosen)["workload"] == chosen.workload
    assert selector_of(load_spec(spec, ["structure={select='auto'}"])) == "auto"


def test_the_last_word_can_be_typed():
    """Names with blanks are quoted, and a check's release goes along."""
    said = learn_again([Path("a b.dpgm"), Path("check.dpgm")], [Path("check.dpgm")])
    assert shlex.split(said.split("with: ")[1]) == ["dpgm", "learn", "a b.dpgm", "check.dpgm"]

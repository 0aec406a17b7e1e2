"""The papers' one command, and what a claim is."""

import pytest

pytest.importorskip("joblib")

from benchmarks import paper
from benchmarks.papers.claims import STATUSES, Claim, claim, report

LINE = {"cell": "c", "trial": 0, "method": "m", "cpu": 1800.0, "by": "dpgm 1 +abc"}


def test_a_claim_has_one_of_four_statuses():
    """Another word is refused; a claim without runs is not attempted."""
    with pytest.raises(ValueError, match="status"):
        Claim(name="B1", says="x", status="perhaps", found="y")
    judged = [claim("B1", "x", lines, lambda some: (STATUSES[0], f"{len(some)} runs")) for lines in ([], [LINE])]
    assert [one.status for one in judged] == ["not attempted", "reproduced"] and judged[1].found == "1 runs"


def test_the_page_of_a_paper():
    """Its snippets hold the runs with the commit that made them, and a row for each claim."""
    text = report("A paper", [Claim(name="B1", says="x", status="contradicted", found="2 of 3")], [LINE], "## More")
    assert "1 runs, 0.50 CPU hours, made by dpgm 1 +abc." in text and "1 contradicted." in text
    assert "[start:claims]" in text and "| **contradicted** | 2 of 3" in text and text.endswith("## More")


def test_what_is_refused(capsys, monkeypatch):
    """An unknown paper, and a machine without matplotlib: one line, exit code 2."""
    monkeypatch.setattr(paper, "find_spec", lambda name: None)
    for given in (["newton"], ["bernstein", "--report"]):
        with pytest.raises(SystemExit) as left:
            paper.main(given)
        assert left.value.code == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2 and "bernstein" in said[0] and "dpgm[plots]" in said[1]

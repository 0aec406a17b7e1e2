"""`dpgm plan`: needs no data, writes nothing, refuses what a fit would."""

from __future__ import annotations

import json
from pathlib import Path


def files(folder: Path) -> set[str]:
    return {one.relative_to(folder).as_posix() for one in folder.rglob("*") if not one.name.endswith(("-wal", "-shm"))}


def test_plan_needs_no_data_and_writes_nothing(spec, dpgm_command):
    """The data file may be absent; text and JSON agree."""
    (spec.parent / "visits.csv").unlink()
    before = files(spec.parent)
    code, out, _ = dpgm_command("plan", spec, "--records", "1000")
    assert code == 0
    assert "noise scale 1 records" in out
    code, out, _ = dpgm_command("plan", spec, "--records", "1000", "--json")
    assert json.loads(out)["scale"] == 1.0
    assert files(spec.parent) == before


def test_planning_the_impossible_is_one_line_and_fast(spec, refused):
    """All pairs of 200 attributes: TooLarge with sizes, at once."""
    domain = "".join(f"[attributes.x{i}]\nsize = 10\n" for i in range(200))
    (spec.parent / "domain.toml").write_text(domain)
    assert "treewidth 199" in refused("plan", spec, "--set", "structure.graph=complete")


def test_plan_refuses_what_fit_would(spec, refused):
    """A plan of a run that cannot be made is no plan."""
    assert "tolerance" in refused("plan", spec, "--set", "learner.tolerance=nan")
    assert "nobody" in refused("plan", spec, "--set", "learner=nobody")
    assert "total" in refused("plan", spec, "--set", "total=-5")

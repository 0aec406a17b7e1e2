"""Runs write whole files, never each other's, and find out early that they cannot."""

from __future__ import annotations

from pathlib import Path

from dpgm_core.cli.output import reserved
from dpgm_core.errors import ModelFileError
from dpgm_core.spec import load_spec


def files(folder: Path) -> set[str]:
    return {one.relative_to(folder).as_posix() for one in folder.rglob("*") if not one.name.endswith(("-wal", "-shm"))}


def test_a_model_that_cannot_be_written_leaves_the_paid_release(spec, dpgm_command, monkeypatch):
    """Exit 1, for the work failed after the charge; the release is saved and stderr says how to learn from it."""

    def full(self, path):
        raise ModelFileError(f"cannot write {path}: the disk is full")

    monkeypatch.setattr("dpgm_core.models.model.Model.save", full)
    code, out, err = dpgm_command("fit", spec)
    assert (code, out) == (1, "")
    assert "the disk is full" in err
    monkeypatch.undo()
    hint = next(line for line in err.splitlines() if "dpgm learn " in line)
    assert dpgm_command("learn", hint.split("dpgm learn ")[1])[0] == 0


def test_an_unwritable_output_is_refused_before_the_charge(spec, refused):
    """A file where the folder should be."""
    (spec.parent / "out2").write_text("")
    words = ("--set", "output.folder=out2/x", "--set", "ledger.path=l.ledger")
    assert "cannot write" in refused("fit", spec, *words)
    assert not (spec.parent / "l.ledger").exists()


def test_runs_at_the_same_time_never_share_a_file(spec):
    """Each of two runs holds its own names until it ends, so neither can overwrite the other's paid release."""
    run = load_spec(spec)
    with reserved(run) as first, reserved(run) as second:
        assert set(first).isdisjoint(second)
    assert not files(run.output)

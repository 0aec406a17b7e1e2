"""Where the model comes from."""

import hashlib

import dpgm_core as dpgm
from dpgm.report import make_report


def test_the_file_is_told_with_its_digest(model, tmp_path, parsed):
    """So that a reader can tell whether the page is about the file at hand."""
    path = tmp_path / "m.dpgm"
    model.save(path)
    assert hashlib.sha256(path.read_bytes()).hexdigest() in parsed(make_report(model, file=path)).texts["origin"]


def test_of_a_seed_only_that_there_is_one_is_told(parsed):
    """Whatever component has it, and the rest of its options is there."""
    structure = dpgm.Structure(dpgm.Domain.from_sizes({"a": 2}), [("a",)])
    maker = {"name": "maker", "options": {"seed": 4711, "rounds": 12}}
    model = dpgm.Model(structure, dpgm.Tables.zeros(structure), provenance={"learner": maker})
    text = parsed(make_report(model)).texts["origin"]
    assert "4711" not in text
    assert "seed = (stated), rounds = 12" in text

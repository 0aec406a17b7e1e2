"""What was measured and chosen, where the model comes from, and commands, which are tested with the command line."""

import hashlib

import numpy as np

import dpgm_core as dpgm
from app.tests.made import uniform
from dpgm.report import make_report


def test_the_file_is_quoted_and_told_with_its_digest(model, tmp_path, parsed):
    """As a shell needs names; with a digest, so that a reader can tell whether the page is about the file at hand."""
    path = tmp_path / "my model.dpgm"
    model.save(path)
    assert "dpgm query 'my model.dpgm' sex age" in parsed(make_report(model, file=path)).texts["use"]
    path = tmp_path / "m.dpgm"
    model.save(path)
    assert hashlib.sha256(path.read_bytes()).hexdigest() in parsed(make_report(model, file=path)).texts["origin"]


def test_names_that_do_not_print_make_no_example(parsed):
    """A command that holds one would not be what it looks like."""
    text = parsed(make_report(uniform({"\u202ea": 2}, ("\u202ea",)))).texts["use"]
    assert "dpgm query model.dpgm ATTRIBUTE" in text and "202e" not in text


def test_of_a_seed_only_that_there_is_one_is_told(parsed):
    """Whatever component has it, and the rest of its options is there."""
    maker = {"name": "maker", "options": {"seed": 4711, "rounds": 12}}
    model = uniform({"a": 2}, provenance={"learner": maker})
    text = parsed(make_report(model)).texts["origin"]
    assert "4711" not in text and "seed = (stated), rounds = 12" in text


def test_what_was_not_measured_or_drowns_in_noise_is_told(model, parsed, codes):
    """Only this section names unmeasured attributes; noisy tables are counted, one of several releases once."""
    words = "Of 1 attribute no table tells anything, and the model leaves them out: town"
    assert words in parsed(make_report(model)).texts["measured"]
    structure = dpgm.Structure(model.domain, [("sex", "age")])
    parts = [dpgm.release(codes, structure, dpgm.Budget.pure("0.001"), neighbours="add-remove") for _ in range(2)]
    held = uniform(structure, releases=parts)
    text = parsed(make_report(held)).texts["measured"]
    assert "In 1 of 1 table, as they were measured, the noise is larger than the average cell" in text
    assert "2 times" in text
    assert "the noise is larger" not in parsed(make_report(model)).texts["measured"]


def test_what_a_session_chose_is_told(codes, model, parsed):
    """Who chose, out of how many, and each step with its cost."""
    workload = dpgm.Workload.all(model.domain, order=2)
    chosen = dpgm.fit(codes, "auto", dpgm.Budget.pure(4), neighbours="add-remove", workload=workload).model
    seen = parsed(make_report(chosen))
    text = seen.texts["chosen"]
    assert "The structure was chosen by the selector" in text and "measure tables" in text
    assert "was chosen by the selector" not in parsed(make_report(model)).texts["chosen"]
    for part in (seen.texts[""], seen.texts["measured"]):  # tables were not all that came from the records
        assert "private choices" in part and "nothing else" not in part
    assert "from nothing else" in parsed(make_report(model)).texts[""]


def test_notes_of_a_choice_are_whole(parsed):
    """And of pairs whose table merged rare labels the page says why they are not measured."""
    codes = np.random.default_rng(0).choice(6, size=(2000, 3), p=[0.5, 0.46, 0.01, 0.01, 0.01, 0.01])
    domain = dpgm.Domain.from_sizes(dict.fromkeys("abc", 6))
    terms = {"neighbours": "add-remove", "workload": dpgm.Workload.all(domain, order=2)}
    chosen = dpgm.fit(codes, "mst", dpgm.Budget.approx("0.3", "1e-6"), **terms).model
    texts = parsed(make_report(chosen)).texts
    assert "merge = false leaves them as they are" in texts["chosen"]
    assert "took rare labels together" in texts["pairs"]

"""The folder of a study: it goes on after a kill, grows, and refuses what is another study's."""

import json

import pytest
from attrs import evolve

from dpgm.study import generated_truth, run
from dpgm_core import ModelFileError, OptionError, Structure, Terms


@pytest.mark.landing
def test_a_killed_study_goes_on(study, done, timeless, tmp_path):
    """Half a line at the end and lines that are missing are made again, with the same numbers; the others stay."""
    folder = tmp_path / "s"
    run(study, folder)
    file = folder / "runs.jsonl"
    before = file.read_bytes().splitlines(keepends=True)
    assert len(before) == 8
    file.write_bytes(b"".join(before[:5]) + before[5][:40])
    steps = []
    again = run(study, folder, progress=lambda task, number, total: steps.append((task, number, total)))
    assert steps == [("runs", number, 8) for number in (5, 6, 7, 8)]
    assert timeless(again.lines) == timeless(done.lines)
    assert file.read_bytes().splitlines(keepends=True)[:5] == before[:5]
    assert run(study, folder).lines == again.lines


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "edited",
    [
        *({"kl": value} for value in ("<img>", [1], float("nan"))),
        {"seconds": -1.0},
        {"tv_pairs": 1e300},
        {"learner": {}},
        {"run": True},
        {"key": ["x"]},
        {"error": {}, "message": 3},
    ],
)
def test_lines_that_no_run_wrote_are_made_again(one, tmp_path, edited):
    """Whoever edits the file gets the study again, and no fault."""
    file = tmp_path / "s" / "runs.jsonl"
    lines = run(one, tmp_path / "s").lines
    file.write_text("".join(json.dumps(line) + "\n" for line in [{**lines[0], **edited}, *lines[1:]]))
    assert [line["kl"] for line in run(one, tmp_path / "s").lines] == pytest.approx([line["kl"] for line in lines])
    assert len(file.read_text().splitlines()) == len(lines)


def test_a_study_grows(one, tmp_path):
    """More repeats, learners and budgets make runs that are missing, in the same folder; what was there is kept, and
    what is not asked for is not told."""
    first = run(one, tmp_path / "s").lines
    wider = run(evolve(one, repeat=3, learners=["eb-map", "naive-mle"]), tmp_path / "s")
    assert [row.method for row in wider.rows] == ["eb-map", "naive-mle"]
    assert wider.lines[3:5] == first and len(wider.lines) == 6
    assert run(one, tmp_path / "s").lines == first


def other_truth(study):
    return generated_truth(study.truth.domain, seed=2)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda study: {"truth": other_truth(study), "structure": other_truth(study).structure}, "its truth is not"),
        (lambda study: {"seed": 6}, "its seed is not"),
        (lambda study: {"structure": Structure(study.truth.domain, [("a", "c")])}, "its cliques to measure is not"),
        (lambda study: {"terms": Terms(neighbours="replace-one")}, "its neighbours or other terms is not"),
        (lambda study: {"split": "optimal"}, "its split of the budget is not"),
    ],
)
def test_another_study_is_refused(one, tmp_path, change, what):
    """What would make its numbers incomparable is named, and nothing is run or written."""
    run(one, tmp_path / "s")
    before = (tmp_path / "s/runs.jsonl").read_bytes()
    told = {
        key: value for key, value in change(one).items() if key not in ("truth", "structure", "terms", "split", "seed")
    }
    changed = evolve(one, **(change(one) | told))
    with pytest.raises(OptionError, match=f"{what}.*name another folder"):
        run(changed, tmp_path / "s")
    assert (tmp_path / "s/runs.jsonl").read_bytes() == before


def test_folders_of_others_are_refused(one, tmp_path):
    """One with other files, and one whose study.json is none."""
    (tmp_path / "thesis.txt").write_text("dear")
    with pytest.raises(OptionError, match="has files in it"):
        run(one, tmp_path)
    (tmp_path / "study.json").write_text("[]")
    with pytest.raises(ModelFileError, match="not a file of dpgm study"):
        run(one, tmp_path)

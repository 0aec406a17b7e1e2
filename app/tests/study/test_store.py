"""Tasks that resume and the folder of a study: what is whole is kept, and nothing is run twice."""

import json

import pytest
from attrs import evolve

from dpgm.study import generated_truth, run, run_tasks
from dpgm.study.store import read_lines
from dpgm_core import ModelFileError, OptionError, Structure, Terms

TASKS = {number: number for number in (1, 2, 3)}


def named(number: int) -> dict[str, object]:
    return {"run": number, "é": None}


def key(line):
    return line["run"]


def test_lines_come_back(tmp_path):
    """Half a line and lines without their key are told by number, dropped once a copy is made, and run again."""
    path = tmp_path / "lines"
    assert run_tasks(named, TASKS, path, key=key) == {number: named(number) for number in TASKS}
    content = path.read_bytes()
    whole = [named(number) for number in TASKS]
    assert read_lines(path, key) == (whole, [])
    broken = content[:-5] + b"\n[]\n" + b'{"x":1}\n\n' + content.splitlines()[0]
    path.write_bytes(broken)
    assert read_lines(path, key) == ([*whole[:2], whole[0]], [3, 4, 5])
    said, calls = [], []

    def counted(number):
        calls.append(number)
        return named(number)

    assert list(run_tasks(counted, TASKS, path, key=key, notify=said.append)) == [1, 2, 3] and calls == [3]
    assert [json.loads(line)["run"] for line in path.read_bytes().splitlines()] == [1, 2, 1, 3]
    (copy,) = tmp_path.glob("lines.broken-*")
    assert copy.read_bytes() == broken
    assert said == [f"lines: line 3, 4, 5 is broken and dropped; the old file is {copy.name}"]
    path.write_bytes(content[:-1])  # killed between the line and its end
    assert run_tasks(counted, TASKS | {4: 4}, path, key=key)[4] == named(4) and calls == [3, 4]
    assert len(path.read_bytes().splitlines()) == 4


def test_a_repair_that_is_killed_loses_no_line(tmp_path, monkeypatch):
    """The file gives way to the repaired one at once, so that until then it is as it was."""
    path = tmp_path / "lines"
    run_tasks(named, TASKS, path, key=key)
    with path.open("ab") as file:
        file.write(b"{\n")
    before = path.read_bytes()

    def killed(self, target):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(type(path), "replace", killed)
        run_tasks(named, TASKS | {4: 4}, path, key=key)
    assert path.read_bytes() == before
    assert run_tasks(named, TASKS | {4: 4}, path, key=key)[4] == named(4)
    assert read_lines(path, key) == ([named(number) for number in (*TASKS, 4)], [])


def test_no_line_holds_what_json_has_not(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        run_tasks(lambda number: {"run": number, "kl": float("inf")}, TASKS, tmp_path / "lines", key=key)
    assert (tmp_path / "lines").read_bytes() == b""


def test_two_writers_are_refused(tmp_path):
    """The second one, while the first runs; and a place where no file can be."""

    def nested(number):
        return run_tasks(named, TASKS, tmp_path / "lines", key=key)[number]

    with pytest.raises(OptionError, match=r"another run is writing to .*lines"):
        run_tasks(nested, TASKS, tmp_path / "lines", key=key)
    assert run_tasks(nested, TASKS, key=key)[1] == named(1)
    with pytest.raises(ModelFileError, match="cannot write"):
        run_tasks(named, TASKS, tmp_path / "nowhere" / "lines", key=key)


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
@pytest.mark.parametrize("edited", [
    *({"kl": value} for value in ("<img>", [1], float("nan"))), {"seconds": -1.0}, {"tv_pairs": 1e300},
    {"learner": {}}, {"run": True}, {"key": ["x"]}, {"error": {}, "message": 3},
])  # fmt: skip
def test_lines_that_no_run_wrote_are_made_again(one, tmp_path, edited):
    file = tmp_path / "s" / "runs.jsonl"
    lines = run(one, tmp_path / "s").lines
    file.write_text("".join(json.dumps(line) + "\n" for line in [{**lines[0], **edited}, *lines[1:]]))
    assert [line["kl"] for line in run(one, tmp_path / "s").lines] == pytest.approx([line["kl"] for line in lines])
    assert len(file.read_text().splitlines()) == len(lines)


def test_a_study_grows(one, tmp_path):
    """More repeats, learners and budgets add the missing runs in the same folder."""
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

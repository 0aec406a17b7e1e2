"""Tasks that resume: what is whole is kept, whatever stands beside it, and nothing is run twice."""

import json

import pytest

from dpgm.study import run_tasks
from dpgm.study.store import read_lines
from dpgm_core import ModelFileError, OptionError

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
    """Infinity is refused, and nothing of its line is written."""
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

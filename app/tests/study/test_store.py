"""Lines that only grow: what is whole is kept, whatever stands beside it."""

import pytest

from dpgm.study.one_run import append, parse_lines, rewrite


def test_lines_come_back(tmp_path):
    """Written one by one and all at once; half a line and lines without their key are told by number."""
    path = tmp_path / "lines"
    with path.open("w", encoding="utf-8") as file:
        for number in (1, 2, 3):
            append(file, {"run": number, "é": None})
    content = path.read_bytes()
    whole = [{"run": number, "é": None} for number in (1, 2, 3)]
    broken = content[:-5] + b"\n[]\n" + b'{"x":1}\n\n' + content.splitlines()[0]
    assert parse_lines(content, lambda line: line["run"]) == (whole, [])
    assert parse_lines(broken, lambda line: line["run"]) == ([*whole[:2], whole[0]], [3, 4, 5])
    rewrite(path, whole[:2])
    assert path.read_bytes() == b"".join(content.splitlines(keepends=True)[:2])
    assert [one.name for one in tmp_path.iterdir()] == ["lines"]


def test_no_line_holds_what_json_has_not(tmp_path):
    """Infinity is refused, and nothing of its line is written."""
    with (tmp_path / "lines").open("w", encoding="utf-8") as file, pytest.raises(ValueError, match="JSON"):
        append(file, {"kl": float("inf")})
    assert (tmp_path / "lines").read_bytes() == b""

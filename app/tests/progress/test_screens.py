"""Where progress is shown: a terminal, a notebook, a log, or nowhere."""

import io
import sys
from types import SimpleNamespace

import pytest

from dpgm.progress import _Bars, _Lines, _Notebook, _screen, shown
from dpgm_core._util.progress import silent
from dpgm_core.errors import OptionError


class Stream(io.StringIO):
    """Standard error, of a terminal or not."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.fixture
def stderr(monkeypatch):
    """Makes standard error a terminal, or a file."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delitem(sys.modules, "IPython", raising=False)

    def make(terminal: bool) -> Stream:
        stream = Stream(terminal)
        monkeypatch.setattr(sys, "stderr", stream)
        return stream

    return make


@pytest.fixture
def notebook(monkeypatch):
    """A kernel, of which everything that is displayed is remembered."""
    seen = []

    def display(data, *, raw, display_id):
        assert raw and display_id
        seen.append(data["text/plain"])
        return SimpleNamespace(update=lambda data, raw: seen.append(data["text/plain"]))

    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object())))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    return seen


@pytest.mark.parametrize(
    ("how", "terminal", "expected", "after"),
    [
        ("auto", True, _Bars, 0.0), ("bar", True, _Bars, 0.0), ("plain", True, _Lines, 0.0),
        ("none", True, type(None), None), ("auto", False, _Lines, 5.0), ("bar", False, _Lines, 0.0),
        ("plain", False, _Lines, 0.0), ("none", False, type(None), None),
    ],
)  # fmt: skip
def test_where_it_is_shown(stderr, how, terminal, expected, after):
    """Bars in a terminal, lines elsewhere: at once where they were asked for, after five seconds where not."""
    screen = _screen(how, stderr(terminal))
    assert type(screen) is expected and getattr(screen, "after", None) == after
    if screen is not None:
        screen.close()


def test_a_terminal_that_moves_no_cursor_gets_lines(stderr, monkeypatch):
    """As those of editors."""
    monkeypatch.setenv("TERM", "dumb")
    assert type(_screen("bar", stderr(True))) is _Lines


def test_one_line_for_each_kind_of_work(stderr):
    """What stands behind a colon, such as the table that was chosen, changes in its line; other work has its own."""
    terminal = stderr(True)
    with shown() as report:
        report("choosing: a x b", 1, 9)
        report("choosing: b x c", 9, 9)
        report("learning", 1, None)
        report("choosing: c x d", 2, 9)
    assert "choosing: b x c" in terminal.getvalue() and "9 of 9" in terminal.getvalue()
    assert "\x1b[2A" not in terminal.getvalue()  # never three lines
    assert terminal.getvalue().count("\x1b[?25l") == terminal.getvalue().count("\x1b[?25h") == 1  # the cursor is back


def test_lines_of_a_log(stderr):
    """Each starts as all talk does; letters that the stream lacks are spelled out."""
    stream = stderr(False)
    with shown("plain") as report:
        report("selecting: größe", 1, 3)
        report("selecting: größe", 2, 3)
    assert stream.getvalue() == "dpgm: selecting: größe: 1 of 3\n"


def test_nothing_is_said_of_short_work_in_a_log(stderr):
    """Nor anything at all where that was asked for."""
    stream = stderr(False)
    with shown() as report:
        report("counting", 0, None)
        report("learning", 1, 2)
    with shown("none") as report:
        assert report is silent
    assert stream.getvalue() == ""


def test_a_notebook_shows_a_text_that_changes(stderr, notebook):
    """One display below the cell, a line for each step, gone at the end; standard error has nothing."""
    stream = stderr(False)
    with shown() as report:
        report("counting", 0, None)
        report("counting", 1, 1)
        report("learning", 1, 4)
        report("simulating", 0, 2)
    assert notebook == ["counting", "learning: 1 of 4", "learning: 1 of 4\nsimulating: 0 of 2", ""]
    assert stream.getvalue() == ""
    assert type(_screen("plain", stream)) is _Lines and type(_screen("bar", stream)) is _Notebook


def test_a_python_shell_in_a_terminal_is_no_notebook(stderr, monkeypatch):
    """IPython is loaded there too."""
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: object()))
    assert type(_screen("auto", stderr(False))) is _Lines


def test_other_words_are_refused():
    """With those that there are."""
    with pytest.raises(OptionError, match="auto, bar, plain, none; got 'loud'"), shown("loud"):
        pass

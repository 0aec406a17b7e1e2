"""Where progress is shown, what is said of a step, and how often, by a clock that the test turns."""

import io
import sys
from types import SimpleNamespace

import pytest

from dpgm.progress import Steps, _Bars, _Lines, _Notebook, _screen, duration, shown
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


def test_terminals_of_editors_and_python_shells_get_lines(stderr, monkeypatch):
    """A terminal that moves no cursor; IPython is loaded in a shell too, and that is no notebook."""
    monkeypatch.setenv("TERM", "dumb")
    assert type(_screen("bar", stderr(True))) is _Lines
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: object()))
    assert type(_screen("auto", stderr(False))) is _Lines


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
    """Letters that the stream lacks are spelled out; short work, or `none`, says nothing."""
    stream = stderr(False)
    with shown("plain") as report:
        report("selecting: größe", 1, 3)
        report("selecting: größe", 2, 3)
    assert stream.getvalue() == "dpgm: selecting: größe: 1 of 3\n"
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


def test_other_words_are_refused():
    with pytest.raises(OptionError, match="auto, bar, plain, none; got 'loud'"), shown("loud"):
        pass


# --- what is said of a step -------------------------------------------------------------------------------------------


class Clock:
    """Seconds, turned by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


class Log:
    """A screen that remembers its lines."""

    def __init__(self, after=0.0, every=5.0):
        self.after, self.every, self.lines, self.closed = after, every, [], False

    def show(self, work, step, now):
        self.lines.append(step.line(now))

    def close(self):
        self.closed = True


@pytest.fixture
def clock():
    return Clock()


def told(clock, log, calls):
    """The lines after calls (seconds to wait, task, done, total)."""
    steps = Steps(log, clock)
    for seconds, *call in calls:
        clock.now += seconds
        steps(*call)
    return log.lines


def test_rate_and_remaining_time(clock):
    """From where a step was first seen; of what has no end only the rate; an inner loop is announced once."""
    calls = [(0, "learning", 0, 120), (10, "learning", 30, 120), (50, "learning", 31, 120)]
    assert told(clock, Log(), calls) == [
        "learning: 0 of 120", "learning: 30 of 120, 3 a second, 30 s left",
        "learning: 31 of 120, 1.94 s each, 3 min left",
    ]  # fmt: skip
    calls = [(0, "learning", 400, None), (10, "learning", 1400, None)]
    assert told(clock, Log(), calls) == ["learning: 400", "learning: 1,400, 100 a second"]
    calls = [(0, "learning", 0, 10), (1, "learning", 9, 10), (0, "learning", 0, 10), (6, "learning", 3, 10)]
    assert told(clock, Log(), calls) == ["learning: 0 of 10", "learning: 3 of 10, 2 s each, 14 s left"]


def test_lines_come_every_few_seconds_and_at_the_end(clock):
    """A thousand calls in ten seconds are three lines: the first, one after five seconds, the last."""
    calls = [(0.01, "learning", number, 1000) for number in range(1001)]
    lines = told(clock, Log(), calls)
    assert [line.partition(" of ")[0] for line in lines] == ["learning: 0", "learning: 500", "learning: 1,000"]


def test_short_steps_are_not_told_where_nobody_asked(clock):
    """Without a terminal: nothing of steps of under five seconds, however many, nor a last line of them."""
    calls = [(0.9, f"step {number}", done, 1) for number in range(20) for done in (0, 1)]
    assert told(clock, Log(after=5.0), calls) == []
    calls = [(0, "learning", 0, 10), (4.9, "learning", 1, 10), (0.2, "learning", 2, 10), (3, "learning", 10, 10)]
    assert told(clock, Log(after=5.0), calls) == [
        "learning: 2 of 10, 2.55 s each, 21 s left", "learning: 10 of 10, 1.23 a second",
    ]  # fmt: skip


@pytest.mark.parametrize("seconds", [0.0, 0.3, 7.0, 4000.0])
def test_counting_says_the_same_however_long_it_takes(clock, seconds):
    """How long it takes says how many records there are: what is told, and whether, depends on the passes alone."""
    calls = [
        (0, "counting", 0, None), (seconds, "counting", 1, 1), (0, "counting: pass 1 of 2", 1, 2),
        (seconds, "counting: pass 2 of 2", 2, 2),
    ]  # fmt: skip
    assert told(clock, Log(), calls) == ["counting", "counting: pass 1 of 2", "counting: pass 2 of 2"]
    assert told(clock, Log(every=0.1), calls) == ["counting", "counting: pass 1 of 2", "counting: pass 2 of 2"]
    assert told(clock, Log(after=5.0), calls) == []


def test_a_screen_that_is_gone_is_left_alone(clock):
    """A closed pipe costs a line, and never the work: it is not asked again."""

    class Broken(Log):
        def show(self, work, step, now):
            super().show(work, step, now)
            raise BrokenPipeError

    assert len(told(clock, Broken(), [(0, "learning", 0, 2), (9, "learning", 1, 2), (9, "learning", 2, 2)])) == 1


def test_tasks_are_one_line_of_what_prints(clock):
    """Names come from files: escapes are spelled out, and a long one is cut."""
    (line,) = told(clock, Log(), [(0, "selecting: \x1b[2J\n" + "x" * 500, 1, 3)])
    assert line.isprintable() and len(line) < 120 and "\\x1b[2J\\n" in line


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "1 s"), (119.5, "120 s"), (121, "3 min"), (7199, "2 h 0 min"), (1e9, "277,777 h 47 min")]
)
def test_durations_are_never_too_short(seconds, words):
    assert duration(seconds) == words

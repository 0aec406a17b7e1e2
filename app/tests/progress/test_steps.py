"""What is said of a step, and how often, by a clock that the test turns."""

import pytest

from dpgm.progress import Steps, duration


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
        """A line."""
        self.lines.append(step.line(now))

    def close(self):
        """Remembered."""
        self.closed = True


@pytest.fixture
def clock():
    """At 100 s."""
    return Clock()


def told(clock, log, calls):
    """The lines after calls (seconds to wait, task, done, total)."""
    steps = Steps(log, clock)
    for seconds, *call in calls:
        clock.now += seconds
        steps(*call)
    return log.lines


def test_rate_and_remaining_time(clock):
    """From where the step was first seen: 30 of 120 in 10 s leave 30 s; slow steps say how long each takes."""
    calls = [(0, "learning", 0, 120), (10, "learning", 30, 120), (50, "learning", 31, 120)]
    assert told(clock, Log(), calls) == [
        "learning: 0 of 120", "learning: 30 of 120, 3 a second, 30 s left",
        "learning: 31 of 120, 1.94 s each, 3 min left",
    ]  # fmt: skip


def test_rate_without_a_known_end(clock):
    """Nothing is left of what has no end; the rate is right all the same, also where it was first seen under way."""
    calls = [(0, "learning", 400, None), (10, "learning", 1400, None)]
    assert told(clock, Log(), calls) == ["learning: 400", "learning: 1,400, 100 a second"]


def test_a_step_that_falls_back_begins_anew(clock):
    """An inner loop runs many times: its rate is that of this time, and it is not announced each time."""
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
    """Rounded up, in the unit that people would take."""
    assert duration(seconds) == words

"""Foreign errors left of the noise are dropped whole; words that only core spoke stay."""

import traceback
import types
from functools import partial

import pytest

from dpgm_core.counting.statistic import zero_cells
from dpgm_core.curator.redaction import redact_source_errors, strip_traceback
from dpgm_core.errors import DataError, SourceRefused, TooLarge
from dpgm_core.sources import as_source


def foreign(error):
    """A function of some plugin's module that raises this."""
    module = types.ModuleType("someones_plugin")
    module.error = error
    exec("def read():\n    raise error", module.__dict__)
    return module.read


def everything_said(error):
    """Of an exception and all that hangs on it."""
    said = []
    while error is not None:
        said += [str(error), repr(error), repr(vars(error)), *getattr(error, "__notes__", [])]
        error = error.__cause__ or error.__context__
    return " ".join(said)


def modules_of(error):
    return {frame.f_globals["__name__"] for frame, _ in traceback.walk_tb(error.__traceback__)}


@pytest.mark.parametrize(
    "error",
    [ValueError("SECRET"), DataError("SECRET"), MemoryError("SECRET"), SystemExit("SECRET"), GeneratorExit("SECRET")],
    ids=lambda error: type(error).__name__,
)
def test_a_foreign_error_leaves_its_kind_and_nothing_else(error):
    """Not its words, its cause, its context or its notes; a plugin's DpgmError may quote a record as well."""
    error.add_note("SECRET note")
    with pytest.raises(DataError) as found:
        redact_source_errors([], foreign(error))
    assert type(error).__name__ in str(found.value) and "source list" in str(found.value)
    assert "SECRET" not in everything_said(found.value)
    assert found.value.__cause__ is None and found.value.__context__ is None


def test_words_of_core_stay():
    """An error that only core had a hand in keeps its type and words: no frame of anybody else's is in its way."""
    with pytest.raises(TooLarge, match="2,199,023,255,552 cells") as found:
        redact_source_errors([], partial(zero_cells, 2**41))
    assert found.value.__cause__ is None and found.value.__context__ is None
    with pytest.raises(DataError, match="failed with TooLarge"):
        redact_source_errors([], lambda: zero_cells(2**41))  # through this test, which is no module of core


def test_words_that_a_source_vouches_for_stay():
    error = SourceRefused("no table 'visits'\nin the schema")
    error.__cause__ = ValueError("SECRET")
    error.add_note("SECRET note")
    error.more = "SECRET"
    with pytest.raises(SourceRefused) as found:
        redact_source_errors([], foreign(error))
    assert str(found.value) == r"no table 'visits'\nin the schema" and type(found.value) is SourceRefused
    assert "SECRET" not in everything_said(found.value) and found.value is not error
    assert modules_of(found.value) == {__name__, "dpgm_core.curator.redaction"}


@pytest.mark.parametrize(
    "error",
    [
        *(type("SourceRefused", (base,), {})("SECRET") for base in (SourceRefused, ValueError, DataError)),
        ExceptionGroup("SECRET", [SourceRefused("SECRET")]),
    ],
    ids=["SourceRefused", "ValueError", "DataError", "group"],
)
def test_words_of_what_only_looks_like_it_are_withheld(error):
    """A child of SourceRefused is not one, nor is another class of its name; a group of them is none."""
    with pytest.raises(DataError, match="withheld") as found:
        redact_source_errors([], foreign(error))
    assert type(found.value) is DataError and "SECRET" not in everything_said(found.value)


def test_where_to_look_is_a_place_that_there_is():
    """`dpgm validate` reads rows; of a source that hands out none it can show nothing."""
    assert redact_source_errors([], lambda: "read") == "read"
    for source, place in ((as_source({"a": [0]}), "dpgm validate"), ([], "the engine may have logged")):
        with pytest.raises(DataError, match=place):
            redact_source_errors(source, foreign(ValueError("SECRET")))


def test_an_interrupt_stays_one_and_brings_nothing_along():
    """Ctrl-C passes, with neither words nor the frames of what was reading, whose variables hold records."""
    with pytest.raises(KeyboardInterrupt) as found:
        redact_source_errors([], foreign(KeyboardInterrupt("SECRET")))
    assert "SECRET" not in everything_said(found.value)
    assert modules_of(found.value) == {__name__, "dpgm_core.curator.redaction"}


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, MemoryError])
def test_an_error_without_frames_is_still_itself(kind):
    """Kind, words and causes stay; where it was raised, and where its causes were, does not."""

    def fail():
        try:
            raise KeyError("cause")
        except KeyError as cause:
            raise kind("words") from cause

    with pytest.raises(kind, match="words") as found:
        strip_traceback(fail)
    assert isinstance(found.value.__cause__, KeyError) and found.value.__cause__.__traceback__ is None
    assert "fail" not in {frame.f_code.co_name for frame, _ in traceback.walk_tb(found.value.__traceback__)}

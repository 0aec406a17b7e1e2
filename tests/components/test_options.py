"""Options: the fields of a component class, read strictly from plain values; shared validators take what they say."""

from __future__ import annotations  # options of plugins may be texts: some types are looked up

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Literal

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpgm_core.components.options import (
    at_least_zero,
    build,
    component_option,
    describe,
    flag,
    known_options,
    option,
    plain_options,
    positive,
    share,
    whole,
    with_options,
)
from dpgm_core.errors import DpgmError, OptionError


def _even(instance: object, attribute: object, value: int) -> None:
    if value % 2:
        raise ValueError("it must be even")


@attrs.frozen(kw_only=True)
class Mine:
    """A component with one option of each type."""

    strength: float = option(0.5, help="how much", unit="nats", validator=attrs.validators.ge(0))
    steps: int = option(2, help="how often", validator=_even)
    exact: bool = option(True, help="whether")
    rule: Literal["fast", "slow"] = option("fast", help="which")
    limit: float | Literal["auto"] | None = option(None, help="where")
    share: Fraction = option(Fraction(1, 2), help="exactly how much")
    names: tuple[str, ...] = option((), help="who")


odd = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.lists(st.integers(), max_size=2)
)


@given(st.dictionaries(st.sampled_from([field.name for field in attrs.fields(Mine)] + ["x"]), odd, max_size=4))
@example({"strength": 10**400})
@example({"limit": 10**400})
def test_any_plain_values_are_options_or_a_refusal(given_options):
    """Only OptionError comes out, in one line, naming the component."""
    try:
        made = build(Mine, given_options, what="learner 'mine'")
    except DpgmError as error:
        assert "learner 'mine'" in str(error)
        assert "\n" not in str(error)
        return
    assert build(Mine, plain_options(made), what="again") == made


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"strenght": 1}, "did you mean 'strength'"),
        ({"strength": "1"}, "must be number, got '1'"),
        ({"strength": True}, "must be number, got True"),
        ({"strength": float("nan")}, "must be number, got nan"),
        ({"strength": -1}, "strength.*>= 0"),
        ({"steps": 1.0}, "must be whole number, got 1.0"),
        ({"steps": 3}, "even"),
        ({"exact": 1}, "must be true or false"),
        ({"rule": "fats"}, "'fast' or 'slow', got 'fats'; did you mean 'fast'"),
        ({"limit": "atuo"}, "number or 'auto' or none"),
        ({"share": -1}, "share"),
        ({"names": "ab"}, "must be list of text, got 'ab'"),
        ({"names": {"a": 1}}, "must be list of text"),
    ],
)
def test_refusals_say_what_would_do(wrong, words):
    """Bools and texts are no numbers, NaN is refused, choices are suggested."""
    with pytest.raises(OptionError, match=words):
        build(Mine, wrong, what="learner 'mine'")


def test_describe_lists_every_option():
    """Name, type, default, unit and help, as `dpgm plugins NAME` prints them."""
    shown = {one.name: (one.type, one.default, one.unit, one.help) for one in describe(Mine)}
    assert shown["strength"] == ("number", "0.5", "nats", "how much")
    assert shown["exact"][1] == "true"
    assert shown["limit"][:2] == ("number or 'auto' or none", "none")
    assert shown["names"][0] == "list of text"
    assert list(shown) == [field.name for field in attrs.fields(Mine)]


def test_odd_classes_and_values_stay_readable():
    """A missing option is asked for by type and help; odd validators give one OptionError; reprs are not shown."""

    @attrs.frozen(kw_only=True)
    class Needs:
        path: str = attrs.field(metadata={"help": "where the data are"})

    with pytest.raises(OptionError, match=r"needs option 'path' \(text\): where the data are"):
        build(Needs, {}, what="source 'needs'")

    def fails(instance: object, attribute: object, value: object) -> None:
        raise ZeroDivisionError("oh")

    cls = attrs.make_class("Odd", {"x": attrs.field(default=1, validator=fails)}, frozen=True, kw_only=True)
    assert describe(cls)[0].name == "x"
    with pytest.raises(OptionError, match="ZeroDivisionError: oh"):
        build(cls, {"x": 2}, what="learner 'odd'")

    @attrs.frozen(kw_only=True)
    class Mine:
        data: int = option(3, help="how many")

    frame = type("Frame", (), {"__repr__": lambda self: "SECRET"})()
    with pytest.raises(OptionError, match=r"must be whole number, got a Frame$"):
        build(Mine, {"data": frame}, what="source 'mine'")


def test_an_option_that_replaced_others_is_named():
    """Who gives an old one reads the new one's name; what a file has of it is left out, and nothing else."""

    @attrs.frozen(kw_only=True)
    class Newer:
        limit: str = option("auto", help="how many", replaces=("up_to", "at_most"))

    with pytest.raises(OptionError, match="learner 'newer' has option 'limit' in place of 'up_to'; set that one"):
        build(Newer, {"up_to": 5}, what="learner 'newer'")
    assert known_options(Newer, {"at_most": 3, "limit": "all", "other": 1}) == {"limit": "all", "other": 1}
    assert known_options(int, {"up_to": 5}) == {"up_to": 5}
    assert [one.name for one in describe(Newer)] == ["limit"]


class Thing:
    """No plain value, at the module's top, where the types of options are looked up."""


@attrs.frozen(kw_only=True)
class Inner:
    """A component that may hold an object."""

    thing: Thing | str | None = option(None, help="what", holds=Thing)
    count: int = option(1, help="how many")


def test_an_option_may_hold_an_object_that_no_file_does():
    """The object is taken as it is and kept; as plain values it is a text, which is refused by the option's name."""

    held = Thing()
    mine = build(Inner, {"thing": held}, what="learner 'mine'")
    assert mine.thing is held and build(Inner, {"thing": "file"}, what="x").thing == "file"
    assert with_options(mine, {"count": 2}, what="x") == Inner(thing=held, count=2)
    assert plain_options(mine) == {"thing": "<Thing given as an object>", "count": 1}
    with pytest.raises(OptionError, match="option 'thing' of learner 'mine' was a Thing given as an object"):
        build(Inner, plain_options(mine), what="learner 'mine'")
    with pytest.raises(OptionError, match="option 'thing' of learner 'mine' must be Thing or text or none, got 3"):
        build(Inner, {"thing": 3}, what="learner 'mine'")


@attrs.frozen(kw_only=True)
class Outer:
    """A component with another one for an option."""

    inner: Inner | str | Mapping[str, Any] = component_option("first", kind="learner", help="which")
    often: int = option(3, help="how often")


def test_an_option_that_is_a_component_is_changed_by_a_table():
    """`with_options` sets what the table names and keeps the rest; a component given by name becomes the table."""
    held = Thing()
    outer = Outer(inner=Inner(thing=held), often=5)
    table = {"name": "inner", **plain_options(outer.inner), "count": 2}
    assert with_options(outer, {"inner": table}, what="x") == Outer(inner=Inner(thing=held, count=2), often=5)
    assert with_options(outer, {"often": 1}, what="x") == Outer(inner=outer.inner, often=1)
    assert with_options(Outer(), {"inner": table}, what="x").inner == table
    with pytest.raises(OptionError, match="option 'inner' of x has no option 'cuont'; did you mean 'count'"):
        with_options(outer, {"inner": {"cuont": 2}}, what="x")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rule": "fsat"}, "rule must be 'fast' or 'slow', got 'fsat'"),
        ({"rule": 1}, "rule must be 'fast' or 'slow', got 1"),
        ({"limit": "automatic"}, "limit must be number or 'auto' or none, got 'automatic'"),
    ],
)
def test_a_class_made_directly_takes_no_text_that_is_no_choice(given: dict[str, Any], said: str) -> None:
    assert Mine(rule="slow", limit=2.0).limit == 2.0 and Mine(limit="auto").rule == "fast"
    with pytest.raises(OptionError, match=said):
        Mine(**given)


def test_types_that_cannot_be_looked_up_are_told_of_by_who_registers_the_class() -> None:
    Hidden = Literal["here"]

    @attrs.frozen(kw_only=True)
    class Local:
        rule: Hidden = option("here", help="which")  # type: ignore[valid-type]

    assert Local(rule="there").rule == "there"


ODD = (math.inf, -math.inf, math.nan, 10**400, True, False, "1", None)
NUMBERS = (-1.0, -0.0, 0, 0.0, 0.5, 1, 1.0, 2, 3.5, *ODD)


@pytest.mark.parametrize(
    ("validator", "taken"),
    [
        (positive, {"0.5", "1", "1.0", "2", "3.5"}),
        (at_least_zero, {"-0.0", "0", "0.0", "0.5", "1", "1.0", "2", "3.5"}),
        (share, {"-0.0", "0", "0.0", "0.5"}),
        (whole, {"1", "2", repr(10**400)}),
        (flag, {"True", "False"}),
    ],
)
def test_a_validator_takes_what_it_says(validator, taken):
    """And nothing else: no NaN, no infinity, no flag for a number, no number for a flag; the option is named."""
    cls = attrs.make_class("Mine", {"level": attrs.field(validator=validator)})
    for value in NUMBERS:
        if repr(value) in taken:
            cls(level=value)
        else:
            with pytest.raises(OptionError, match=r"^level must be .*, got ") as refused:
                cls(level=value)
            assert isinstance(refused.value, ValueError)  # as of attrs' own validators


def test_a_component_made_by_name_is_named_in_the_refusal():
    """The validator knows the option alone; whoever reads a spec's refusal has several components in it."""
    cls = attrs.make_class("Mine", {"level": attrs.field(default=1, validator=whole, type=int)}, kw_only=True)
    with pytest.raises(OptionError, match=r"^learner 'mine' refuses its options: level must be a whole number"):
        build(cls, {"level": 0}, what="learner 'mine'")

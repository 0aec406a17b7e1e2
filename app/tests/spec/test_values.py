"""Values and settings of spec files: refused by where they stand, and what would do."""

import pytest

from dpgm.spec import apply_setting, check_known, file_stem, parse_setting, table_of, text_of
from dpgm_core.errors import OptionError


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: check_known("spec x", {"nmae": 1}, ("name",)), "spec x has no setting 'nmae'; did you mean 'name'"),
        (lambda: table_of("spec x", "output", "out", ("folder",)), "spec x: output must be a table, got 'out'"),
        (lambda: table_of("spec x", "output", {"file": 1}, ("folder",)), r"spec x: \[output\] has no setting 'file'"),
        (lambda: text_of("spec x", "unit", " "), "spec x: unit must be a text in quotes"),
        (lambda: text_of("spec x", "unit", 1), "got 1"),
        (lambda: file_stem("spec x", "a/b"), "no slashes"),
        (lambda: file_stem("spec x", ".a"), "no dot at the start"),
        (lambda: file_stem("spec x", "a" * 81), "at most 80 letters"),
    ],
)
def test_what_is_wrong_is_named(call, said):
    """Each with the file and the key."""
    with pytest.raises(OptionError, match=said):
        call()


def test_what_is_right_comes_back():
    """As it was."""
    assert table_of("spec x", "output", {"folder": "o"}, ("folder",)) == {"folder": "o"}
    assert (text_of("spec x", "unit", "one visit"), file_stem("spec x", "Visits 2")) == ("one visit", "Visits 2")


@pytest.mark.parametrize(
    ("text", "keys", "value"),
    [
        ("a=1", ["a"], 1),
        (" a . b = [1, 2]", ["a", "b"], [1, 2]),
        ("a=plain text", ["a"], "plain text"),
        ("a=1\nb=2", ["a"], "1\nb=2"),
        ("a=", ["a"], ""),
        ("a=x=y", ["a"], "x=y"),
        ("a='0x'", ["a"], "0x"),
        ("a=0x" + "f" * 5000, ["a"], "0x" + "f" * 5000),
    ],
)
def test_a_setting_is_toml_or_text(text, keys, value):
    """What is no TOML value is taken as it stands; one setting never sets two keys."""
    assert parse_setting(text) == (keys, value)


@pytest.mark.parametrize("text", ["", "a", "=1", "a..b=1", ".=1"])
def test_a_setting_needs_keys(text):
    """KEY=VALUE, or KEY.KEY=VALUE."""
    with pytest.raises(OptionError, match="KEY=VALUE"):
        parse_setting(text)


def test_a_name_becomes_a_table_where_it_stands_for_one():
    """The name that stands, or the default; elsewhere a text is in the way, and tables are made."""
    named = {("learner",): "eb-map", ("structure", "select"): None}
    plain = {"structure": {"select": "aim"}, "data": "d.csv"}
    for setting in ("learner.l2=1", "structure.select.merge=false", "budget.epsilon=2"):
        apply_setting(plain, setting, named)
    assert plain["learner"] == {"name": "eb-map", "l2": 1}
    assert plain["structure"] == {"select": {"name": "aim", "merge": False}}
    assert plain["budget"] == {"epsilon": 2}
    with pytest.raises(OptionError, match="'data' is not a table"):
        apply_setting(plain, "data.x=1", named)

"""Values of spec files: refused by where they stand, and what would do."""

import pytest

from dpgm.spec import check_known, file_stem, table_of, text_of
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

"""One column: every value lands on one code, and wrong entries say what and where."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpgm_core.domain.attribute import Attribute, code_dtype
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DomainError


def test_every_value_lands_on_one_code():
    """Unknown, null, NaN and out-of-range values go where the owner said; the last bin is closed."""
    age = Attribute.of_bins("age", [0, 18, 65], unknown="?", null="none", null_values=["", "NA"])
    assert age.labels == ("[0, 18)", "[18, 65]", "?", "none")
    codes = {b"0": 0, b"17.9": 0, b"18": 1, b"65": 1, b"65.1": 2, b"x": 2, b"nan": 3, b"NA": 3, None: 3}
    assert {raw: age.code(raw) for raw in codes} == codes
    sex = Attribute.of_labels("sex", ["F", "M"], unknown="M")
    assert [sex.code(raw) for raw in ("F", "f", " F", "", None)] == [0, 1, 1, 1, 1]
    coded = Attribute.of_labels("sex", ["F", "M"], unknown="F", coded=True)
    assert [coded.code(raw) for raw in ("0", "1", "M", "2")] == [0, 1, 0, 0]


@given(st.lists(st.floats(allow_nan=True), max_size=20))
@example([0.0, -0.0, 1.0, 2.0, math.inf, -math.inf, math.nan])
def test_bin_codes_agree_with_the_definition(numbers):
    attribute = Attribute.of_bins("x", [-1, 0, 1, 2], unknown="?", null="none")

    def slow(number):
        if math.isnan(number):
            return 4
        inside = [i for i in range(3) if i - 1 <= number < i or (i == 2 and number == 2)]
        return inside[0] if inside else 3

    assert attribute.bin_codes(np.array(numbers, dtype=float)).tolist() == [slow(number) for number in numbers]


def test_sizes_say_where_unknown_codes_go():
    """from_sizes: code 0 unless told, no label of its own, so shapes are exactly the sizes."""
    domain = Domain.from_sizes({"a": 3, "b": 2}, unknown={"a": 2})
    assert domain.shape("ab") == (3, 2)
    assert (domain["a"].unknown, domain["a"].null, domain["b"].unknown) == (2, 2, 0)
    for wrong in ({"c": 1}, {"a": 3}):
        with pytest.raises(DomainError):
            Domain.from_sizes({"a": 3}, unknown=wrong)


@pytest.mark.parametrize("wrong", [{}, {"a": 0}, {"a": -1}, {"a": True}, {"a": 2.0}, {"a": "3"}, {"": 2}, ["a"], None])
def test_senseless_sizes_are_refused(wrong):
    with pytest.raises(DomainError):
        Domain.from_sizes(wrong)


def test_a_query_label_never_falls_on_unknown():
    """label_code suggests instead of guessing; codes are accepted, bools and others are not."""
    sex = Attribute.of_labels("sex", ["female", "male"], unknown="?")
    assert (sex.label_code("male"), sex.label_code(2), sex.label_code(np.int64(0))) == (1, 2, 0)
    for wrong in ("femal", 3, -1, True, None, 1.0):
        with pytest.raises(DomainError, match=r"sex"):
            sex.label_code(wrong)


def test_a_label_given_twice_is_found_fast():
    """A hostile list of labels costs linear time: this one would take minutes if each label were searched for."""
    labels = [str(code) for code in range(200_000)]
    with pytest.raises(DomainError, match="'199999' stands twice"):
        Attribute.of_labels("a", [*labels, labels[-1]], unknown="0")


def test_code_dtype_holds_every_code():
    for size in (1, 2**8, 2**8 + 1, 2**16, 2**16 + 1, 2**22):
        assert np.iinfo(code_dtype(size)).max >= size - 1
    assert [code_dtype(size).itemsize for size in (2**8, 2**8 + 1, 2**16 + 1)] == [1, 2, 4]


def test_merged_codes_share_a_label_of_their_own():
    """Single codes keep their labels, blocks get distinct ones that no label had, unknown and null follow."""
    job = Attribute.of_labels("job", [*"abcdef", "other (2 labels)"], unknown="c", null="b")
    coarse = job.coarsened(np.array([2, 0, 0, 1, 1, 3, 4]))
    assert coarse.labels == ("other (2 labels) 2", "other (2 labels) 3", "a", "f", "other (2 labels)")
    assert (coarse.unknown, coarse.null) == (0, 0)
    age = Attribute.of_bins("age", [0, 18, 65, 90], unknown="?", null_values=["NA"])
    assert age.coarsened([0, 1, 2, 3]) is age
    assert age.coarsened([0, 1, 1, 2]).labels == ("[0, 18)", "other (2 labels)", "?")
    for coarse in (job.coarsened([0] * 7), age.coarsened([0, 1, 1, 2]), age.coarsened([3, 2, 1, 0])):
        assert Domain.from_dict(Domain([coarse]).to_dict())[coarse.name] == coarse


@pytest.mark.parametrize(
    ("codes", "said"),
    [
        ([0, 1], "each of its 3 codes a new one, got 2"),
        ([0, 2, 2], "new code 1 empty"),
        ([1, 1, 1], "new code 0 empty"),
        ([0, -1, 1], "from 0 on, got -1"),
        ([0, True, 1], "from 0 on, got True"),
        ([0, 1.0, 1], "from 0 on, got 1.0"),
        ("011", "a list of new codes, got str"),
        (2, "a list of new codes, got int"),
    ],
)
def test_a_merge_that_is_none_is_refused(codes, said):
    with pytest.raises(DomainError, match=said):
        Attribute.of_size("a", 3).coarsened(codes)


def test_parts_of_other_types_are_refused():
    """The name of a kind is no `Values`, and a cap goes with bins."""
    for wrong in ({"values": "integer"}, {"matching": True}):
        with pytest.raises(DomainError, match=r"attribute 'a': (values|matching) must be a"):
            Attribute.of_labels("a", ["x"], unknown="x", **wrong)
        with pytest.raises(DomainError, match=r"attribute 'a': (values|matching) must be a"):
            Attribute.of_bins("a", [0, 1], unknown="x", **wrong)
    with pytest.raises(DomainError, match="list of texts"):
        Attribute.of_labels("a", "abc", unknown="a")
    with pytest.raises(DomainError, match="cap must be true or false, and goes with bins"):
        Attribute(name="a", labels=("x",), unknown=0, null=0, cap=True)

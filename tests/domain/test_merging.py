"""Merged codes; tests/domain/test_attribute.py has what an attribute makes of them."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from dpgm_core.domain.labels import merge_labels


@settings(max_examples=50)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.sampled_from(["label", "other (2 labels)"]))
def test_every_new_code_has_a_label_of_its_own(codes, name):
    """Single codes keep theirs, no merged one takes a label that there was."""
    new = [sorted(set(codes)).index(code) for code in codes]
    labels = [name, *(f"{name} {at}" for at in range(2, len(codes) + 1))]
    plain, merged = merge_labels("a", labels, new)
    assert plain == new and len(set(merged)) == len(merged) == len(set(new))
    for code, label in enumerate(merged):
        olds = [old for old, into in enumerate(new) if into == code]
        assert label == labels[olds[0]] if len(olds) == 1 else label not in labels

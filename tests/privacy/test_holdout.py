"""What a holdout measures: pairs that no clique holds, drawn from public facts alone, for a stated share."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from dpgm_core import Budget, Domain, OptionError, Structure, StructureError
from dpgm_core.privacy.budget import Split, holdout_share
from dpgm_core.privacy.holdout import MAX_PAIRS, chosen_pairs, pairs_to_check, unmeasured_pairs

CHAIN = Structure.chain(Domain.from_sizes(dict.fromkeys("abcdefgh", 2)))


def test_only_measured_attributes_that_no_clique_holds_together_are_paired():
    """Neither pairs inside a clique, tied ones included, nor attributes in no clique, nor those of one label."""
    domain = Domain.from_sizes({"a": 2, "b": 2, "c": 2, "d": 2, "e": 2, "one": 1, "alone": 2})
    structure = Structure(domain, [("a", "b", "c"), ("d", "one")], tied=[[("a", "d"), ("b", "e")]])
    assert unmeasured_pairs(structure) == [("a", "e"), ("b", "d"), ("c", "d"), ("c", "e"), ("d", "e")]


def test_every_pair_is_drawn_as_often():
    """21 pairs, 12 a draw, 2,000 draws: each is drawn 1,143 +- 22 times; beyond 6 deviations once in 10^7 seeds."""
    drawn = Counter(pair for seed in range(2000) for pair in chosen_pairs(CHAIN, np.random.default_rng(seed)).cliques)
    assert set(drawn) == set(unmeasured_pairs(CHAIN))
    assert max(abs(count - 2000 * MAX_PAIRS / 21) for count in drawn.values()) < 6 * 22.2


def test_few_pairs_are_all_measured_and_none_is_refused():
    """What there is is taken; a structure of one clique leaves nothing to check."""
    triple = Structure.chain(Domain.from_sizes(dict.fromkeys("abc", 2)))
    assert chosen_pairs(triple, np.random.default_rng(0)).cliques == (("a", "c"),)
    with pytest.raises(StructureError, match="leave the holdout out"):
        chosen_pairs(Structure.complete(triple.domain), np.random.default_rng(0))


def test_a_pair_with_very_many_cells_is_left_out():
    """A table of 400 x 400 would fill memory and say little."""
    structure = Structure(Domain.from_sizes({"a": 400, "b": 2, "c": 400}), [("a",), ("b",), ("c",)])
    assert set(chosen_pairs(structure, np.random.default_rng(0)).cliques) == {("a", "b"), ("b", "c")}


@pytest.mark.parametrize(
    "budget", [Budget.pure("1/3"), Budget.zcdp("0.1"), Budget.approx("0.7", "1e-9")], ids=lambda one: one.kind
)
def test_a_budget_is_divided_without_a_rest(budget):
    """Both parts together are exactly the budget, whatever the share."""
    for share in ("0.05", "1/7", 0.3):
        own, left = Split(holdout=share).divide(budget)
        assert own + left == budget
    assert Split().divide(budget) == (None, budget)


@pytest.mark.parametrize("share", [-0.1, 1, 1.5, "nan", True, None, float("inf")])
def test_what_is_no_share_is_refused(share):
    """In words, also inside a split."""
    with pytest.raises(OptionError, match="share of the holdout"):
        holdout_share(share)
    with pytest.raises(OptionError, match="share of the holdout"):
        Split.of({"holdout": share})


def test_a_split_says_how_tables_share_and_what_is_set_aside():
    """A text is as before; what else stands in a mapping is refused by name."""
    assert Split.of({"tables": "optimal", "holdout": "0.1"}) == Split("optimal", Fraction(1, 10))
    with pytest.raises(OptionError, match="no 'holdotu'; did you mean 'holdout'"):
        Split.of({"holdotu": 0.1})
    with pytest.raises(OptionError, match="split must be one of"):
        Split.of({"tables": "evn", "holdout": 0.1})


def test_the_earlier_spelling_of_a_holdout_is_read():
    """`check` means the same; both at once are refused."""
    assert Split.of({"check": "0.1"}) == Split.of({"holdout": "0.1"})
    with pytest.raises(OptionError, match="both holdout and check"):
        Split.of({"check": 0.1, "holdout": 0.1})


def test_no_pair_of_a_selection_holds_an_attribute_of_one_code():
    """Merging may leave an attribute one; its pairs say nothing of a structure. None is drawn where all are such."""
    merged = Domain.from_sizes({"a": 3, "b": 3, "c": 3, "d": 3}).coarsened({"b": [0, 0, 0], "d": [0, 0, 0]})
    alone = Structure(merged, [("a",), ("b",), ("c",), ("d",)])
    pairs = [("a", "b"), ("a", "c"), ("b", "d")]
    assert pairs_to_check(alone, np.random.default_rng(0), pairs).cliques == (("a", "c"),)
    assert pairs_to_check(alone, np.random.default_rng(0), [("a", "b"), ("b", "d")]) is None

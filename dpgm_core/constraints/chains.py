"""Chains of orders, such as a <= b <= c: what they imply that no single order does.

Bins [5, 10), [0, 10) and [0, 5) fit pair by pair, and no values in them ascend. Two ends of a chain are enough to tell:

Let column j have the values V_j of its code, those between its ends l_j and u_j that it can have, all of them or all
whole ones, and let s_ij(x) be the least value of column j that an order lets follow x. Each s_ij is monotone. The least
values above all l_j that keep every order are x_j = max over chains i -> j of s_chain(l_i), the chain of no order among
them: they keep the orders, as a monotone function of a maximum is the maximum of its values, and anything that keeps
them is above each of these. So values exist if and only if x_j <= u_j for all j, which is s_chain(l_i) <= u_j for every
chain between two columns: a condition on the codes of its ends. A column that is missing binds nothing, so a chain is
broken where one of its inner columns has no value. Strict orders among any numbers take a step as small as a number
has; where both ends are open this is right but for that step. A circle with a strict order leaves no values at all; of
other circles, whose columns are equal, nothing more is said than each order says.

A chain through columns that may be missing needs a table of them all. One above 2^22 cells is left out: the model may
then give codes a probability that no values fit, and independent records with such codes are drawn again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from attrs import frozen

from dpgm_core.arrays import Array, FloatArray
from dpgm_core.attribute import Attribute
from dpgm_core.constraints.forms import Constraint, Mask, undetermined_mask
from dpgm_core.constraints.order import WHOLE, Ordered, axis_intervals
from dpgm_core.errors import DomainError

__all__ = ["Pair", "Rule", "chains", "chain_rules"]

#: The lower column, the upper, and whether strictly.
Pair = tuple[str, str, bool]
_MAX_TABLE_CELLS = 2**22
#: Orders of many columns, each with each, have as many chains as no table could hold.
_MAX_CHAINS = 10_000


@frozen(kw_only=True, eq=False)
class Rule:
    """What no record can be: a mask, True where it cannot, over `columns`; `of` names the constraints that say so.

    One constraint, or the orders of a chain, which say more together than each does.
    """

    of: tuple[str, ...]
    columns: tuple[str, ...]
    mask: Mask

    @property
    def name(self) -> str:
        """For messages."""
        return " and ".join(self.of)


@frozen(kw_only=True, eq=False)
class _Scale:
    """The values of each code of a column: from `low` to `high`; those of codes that are not `present` bind nothing."""

    present: Mask
    low: FloatArray
    high: FloatArray
    whole: bool

    def after(self, places: FloatArray, strict: bool) -> FloatArray:
        """The least values at or above, or above, each of these."""
        places = np.nextafter(places, math.inf) if strict else places
        return np.asarray(np.ceil(places) if self.whole else places)


def chains(pairs: Sequence[Pair]) -> list[tuple[Pair, ...]]:
    """Every way from a column up to another through orders, none through a column twice; circles end where they start.

    Raises DomainError above 10,000.

    >>> [[one[:2] for one in chain] for chain in chains([("a", "b", True), ("b", "c", False)])]
    [[('a', 'b')], [('b', 'c')], [('a', 'b'), ('b', 'c')]]
    """
    paths: list[tuple[Pair, ...]] = [(pair,) for pair in pairs]
    for chain in paths:  # which grows behind
        been = {low for low, _, _ in chain}
        if chain[-1][1] not in been:
            inner = been - {chain[0][0]}
            paths += [(*chain, pair) for pair in pairs if pair[0] == chain[-1][1] and pair[1] not in inner]
        if len(paths) > _MAX_CHAINS:
            names = ", ".join(dict.fromkeys(repr(low) for low, _, _ in pairs))
            raise DomainError(f"the orders above {names} make more than {_MAX_CHAINS:,} chains; order neighbours only")
    return paths


def chain_rules(constraints: Sequence[Constraint], attributes: Mapping[str, Attribute]) -> Iterator[Rule]:
    """What chains of orders rule out and no part of them does; nothing if all bins are alike and no order strict.

    >>> from attrs import evolve
    >>> edges = {"a": [0, 5, 10], "b": [0, 10], "c": [0, 5, 10]}
    >>> columns = {name: Attribute.of_bins(name, ends, unknown="missing") for name, ends in edges.items()}
    >>> orders = [Ordered(name="1", columns=("a", "b")), Ordered(name="2", columns=("b", "c"))]
    >>> (rule,) = chain_rules(orders, columns)
    >>> rule.name, rule.columns, rule.mask[:, 0].astype(int).tolist()  # where b has a value
    ('1 and 2', ('a', 'b', 'c'), [[0, 0, 0], [1, 0, 0], [0, 0, 0]])
    """
    orders = [one for one in constraints if isinstance(one, Ordered)]
    named = {(*one.columns, one.strict): one.name for one in orders}
    all_scales = {name: _scale(attributes[name]) for one in orders for name in one.columns}
    scales = {name: scale for name, scale in all_scales.items() if scale is not None}
    pairs = [pair for pair in named if pair[0] in scales and pair[1] in scales]
    # Bins of one kind are apart, so those that fit pair by pair ascend: the usual chain is told without a table.
    alike = {name: (scale.low.tobytes(), scale.high.tobytes()) for name, scale in scales.items()}
    for chain in chains(pairs):
        columns = {name for low, high, _ in chain for name in (low, high)}
        if len(chain) > 1 and (len({alike[name] for name in columns}) > 1 or any(strict for _, _, strict in chain)):
            direct = [pair for pair in pairs if (pair[0], pair[1]) == (chain[0][0], chain[-1][1])]
            rule = _rule(tuple(named[pair] for pair in chain), chain, direct, scales, attributes)
            if rule is not None:
                yield rule


def _rule(
    of: tuple[str, ...],
    chain: Sequence[Pair],
    direct: Sequence[Pair],
    scales: Mapping[str, _Scale],
    attributes: Mapping[str, Attribute],
) -> Rule | None:
    """What a chain of two orders or more rules out; None where its parts do."""
    names = [chain[0][0], *(high for _, high, _ in chain)]
    circle = names[0] == names[-1]
    # A circle is found once from each of its columns.
    if circle and (names[0] != min(names) or not any(strict for _, _, strict in chain)):
        return None
    determined = all(attributes[name].private is None for name in names)
    if determined and not circle and not _says_more(chain, direct, scales):
        return None
    inner = [name for name in names[1:-1] if circle or not scales[name].present.all()]
    columns = (names[0], *inner) if circle else (names[0], *inner, names[-1])
    if math.prod(attributes[name].size for name in columns) > _MAX_TABLE_CELLS:
        return None
    table = undetermined_mask(" and ".join(of), [attributes[name] for name in columns])
    if table is None:
        sizes = [len(scales[name].present) for name in columns]
        table = np.ones(sizes, dtype=bool)
        for axis, name in enumerate(columns):
            table &= _along(scales[name].present, axis, len(columns))
        if not circle:
            first, last = scales[names[0]], scales[names[-1]]
            bad = _through(chain, scales)[:, None] > last.high[None, :]
            table &= bad.reshape(len(first.low), *[1] * len(inner), len(last.low))
    return Rule(of=of, columns=columns, mask=table)


def _through(chain: Sequence[Pair], scales: Mapping[str, _Scale]) -> FloatArray:
    """The least values at the upper end, (codes of the lower end,)."""
    least = scales[chain[0][0]].low
    for _, high, strict in chain:
        least = scales[high].after(least, strict)
    return least


def _says_more(chain: Sequence[Pair], direct: Sequence[Pair], scales: Mapping[str, _Scale]) -> bool:
    """Whether its two ends rule out codes which no shorter chain within it, nor an order of its ends, does.

    least: what the ends ask of each column, for each code of the lower end. inner: the least value that codes of the
    columns between can have while all shorter chains leave values; the least is the best, as steps are monotone.
    """
    first = scales[chain[0][0]]
    start = first.low[first.present]
    least, inner = start, np.full(len(start), -math.inf)
    for _, high, strict in chain[:-1]:
        scale = scales[high]
        least, inner = scale.after(least, strict), scale.after(inner, strict)
        low, top = scale.low[scale.present][None, :], scale.high[scale.present][None, :]
        own = np.maximum(inner[:, None], low)
        inner = np.where((own <= top) & (least[:, None] <= top), own, math.inf).min(axis=1, initial=math.inf)
    _, high, strict = chain[-1]
    scale = scales[high]
    least, inner = scale.after(least, strict), scale.after(inner, strict)
    low, top = scale.low[scale.present][None, :], scale.high[scale.present][None, :]
    left = (np.maximum(inner[:, None], low) <= top) & (least[:, None] > top)
    for _, _, strictly in direct:
        left &= scale.after(start, strictly)[:, None] <= top
    return bool(left.any())


def _scale(attribute: Attribute) -> _Scale | None:
    """The values of an attribute's codes; None where labels have none, which are compared by their places: of single
    places chains say nothing more."""
    intervals = axis_intervals(attribute)
    if intervals is None:
        return None
    ends = [(math.nan, math.nan, True) if one is None else one for one in intervals]
    high = np.array([top if closed else math.nextafter(top, -math.inf) for _, top, closed in ends])
    return _Scale(
        present=np.array([one is not None for one in intervals], dtype=bool),
        low=np.array([low for low, _, _ in ends]),
        high=high,
        whole=attribute.values.kind in WHOLE,
    )


def _along(codes: Array, axis: int, axes: int) -> Array:
    return codes.reshape([-1 if other == axis else 1 for other in range(axes)])

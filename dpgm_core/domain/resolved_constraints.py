"""Constraints resolved for a table, and chains of orders."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
from attrs import frozen

from dpgm_core._util.arrays import Array, FloatArray, IntArray, aligned, along
from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.constraints import WHOLE, Constraint, Mask, Ordered, axis_intervals, undetermined_mask
from dpgm_core.errors import DomainError

__all__ = ["Derived", "Pair", "Resolved", "Rule", "chains"]


@frozen(kw_only=True, eq=False)
class Derived:
    """A column that another one determines: `code` is the code of `column` for each code of `of`."""

    column: str
    of: str
    code: IntArray


class Resolved:
    """Constraints over attributes, and what they say of each alone (arc consistency, Mackworth 1977).

    rules: what each of them rules out, and behind those what chains of orders do.

    Raises DomainError, naming the constraints, where no label of some attribute is possible: the domain is empty. That
    none is found does not prove that there are records; an exact engine tells.
    """

    def __init__(self, attributes: Mapping[str, Attribute], constraints: Iterable[Constraint]) -> None:
        stated = tuple(constraints)
        self._sizes = {name: one.size for name, one in attributes.items()}
        own = (
            Rule(
                of=(one.name,), columns=one.columns, mask=one.impossible([attributes[column] for column in one.columns])
            )
            for one in stated
        )
        self.rules = (*own, *chain_rules(stated, attributes))

    @property
    def scopes(self) -> tuple[tuple[str, ...], ...]:
        """The columns of each rule, once."""
        scopes: dict[frozenset[str], tuple[str, ...]] = {}
        for one in self.rules:
            scopes.setdefault(frozenset(one.columns), one.columns)
        return tuple(scopes.values())

    @cached_property
    def possible(self) -> Mapping[str, Mask]:
        """Of each constrained attribute, which codes have support in every constraint. Raises DomainError."""
        supported = {column: np.ones(self._sizes[column], dtype=bool) for one in self.rules for column in one.columns}
        waiting = list(self.rules)
        while waiting:
            one = waiting.pop(0)
            allowed = ~one.mask
            for axis, column in enumerate(one.columns):
                allowed = allowed & along(supported[column], axis, allowed.ndim)
            for axis, column in enumerate(one.columns):
                left: Mask = np.asarray(allowed.any(axis=tuple(at for at in range(allowed.ndim) if at != axis)))
                if not left.any():
                    raise DomainError(self._contradiction(column))
                if (left != supported[column]).any():
                    supported[column] = left
                    waiting += [other for other in self.rules if column in other.columns and other not in waiting]
        return supported

    def impossible(self, names: Sequence[str]) -> Mask | None:
        """The cells of the table of `names` that no record can be in, as each constraint alone tells; None for none."""
        ruled: list[tuple[tuple[str, ...], Mask]] = []
        for one in self.rules:
            inside = tuple(column for column in one.columns if column in names)
            if len(inside) > 1:
                allowed = ~one.mask
                for axis, column in enumerate(one.columns):
                    if column not in inside:
                        allowed = allowed & along(self.possible[column], axis, allowed.ndim)
                outside = tuple(axis for axis, column in enumerate(one.columns) if column not in inside)
                ruled.append((inside, np.asarray(allowed.any(axis=outside))))
        ruled += [((name,), self.possible[name]) for name in names if name in self.possible]
        ruled = [(inside, allowed) for inside, allowed in ruled if not allowed.all()]
        if not ruled:
            return None
        mask = np.zeros(tuple(self._sizes[name] for name in names), dtype=bool)
        for inside, allowed in ruled:
            mask |= ~aligned(allowed, inside, names)
        return mask

    def derived(self, taken: Container[str]) -> tuple[Derived, ...]:
        """The columns, none of them `taken`, that one constraint determines from another column, and no other mentions.

        Each comes after the one that determines it.
        """
        result: list[Derived] = []
        left = [one for one in self.rules if not any(self._sizes[column] == 1 for column in one.columns)]
        while True:
            latest = next(
                (derivation for one in left if (derivation := self._derivation(one, left, taken)) is not None), None
            )
            if latest is None:
                return tuple(reversed(result))
            result.append(latest)
            left = [one for one in left if latest.column not in one.columns]

    def _derivation(self, one: Rule, left: Sequence[Rule], taken: Container[str]) -> Derived | None:
        if len(one.columns) != 2:
            return None
        for axis in (1, 0):
            column, of = one.columns[axis], one.columns[1 - axis]
            alone = column not in taken and not any(column in other.columns for other in left if other is not one)
            allowed = ~one.mask if axis else ~one.mask.T
            if alone and (allowed.sum(axis=1) == 1).all():
                return Derived(column=column, of=of, code=np.asarray(allowed.argmax(axis=1), dtype=np.int64))
        return None

    def broken(self, codes: Mapping[str, Array]) -> dict[str, int]:
        """How many records, given as codes of each column, break each constraint; for their owner's eyes.

        What only a chain of orders rules out is counted for its orders together: "one and two". What bins hide is not
        counted: two values in bins that overlap may be in the wrong order.
        """
        counts: Counter[str] = Counter()
        for one in self.rules:
            counts[one.name] += int(np.count_nonzero(one.mask[tuple(codes[column] for column in one.columns)]))
        return dict(counts)

    def _contradiction(self, column: str) -> str:
        """Names the constraint that rules out everything alone, or those that reach the column."""
        reached, before = {column}, 0
        while len(reached) > before:
            before = len(reached)
            for one in self.rules:
                if not reached.isdisjoint(one.columns):
                    reached.update(one.columns)
        alone = [one for one in self.rules if one.mask.all()]
        guilty = alone or [one for one in self.rules if not reached.isdisjoint(one.columns)]
        names = [repr(name) for name in dict.fromkeys(name for one in guilty for name in one.of)]
        who = f"constraints {', '.join(names)} leave" if len(names) > 1 else f"constraint {names[0]} leaves"
        return f"{who} no label of {column!r} possible, so no record at all; change the constraints or the labels"


# --- Chains of orders, such as a <= b <= c, and what they imply that no single order does ---------
# Bins [5, 10), [0, 10) and [0, 5) fit pair by pair, and no values in them ascend. Two ends of a chain are enough to
# tell:
#
# Let column j have the values V_j of its code, those between its ends l_j and u_j that it can have, all of them or all
# whole ones, and let s_ij(x) be the least value of column j that an order lets follow x. Each s_ij is monotone. The
# least values above all l_j that keep every order are x_j = max over chains i -> j of s_chain(l_i), the chain of no
# order among them: they keep the orders, as a monotone function of a maximum is the maximum of its values, and
# anything that keeps them is above each of these. So values exist if and only if x_j <= u_j for all j, which is
# s_chain(l_i) <= u_j for every chain between two columns: a condition on the codes of its ends. A column that is
# missing binds nothing, so a chain is broken where one of its inner columns has no value. Strict orders among any
# numbers take a step as small as a number has; where both ends are open this is right but for that step. A circle with
# a strict order leaves no values at all; of other circles, whose columns are equal, nothing more is said than each
# order says.
#
# A chain through columns that may be missing needs a table of them all. One above 2^22 cells is left out: the model may
# then give codes a probability that no values fit, and independent records with such codes are drawn again.

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
    """What chains of orders rule out and no part of them does; nothing if all bins are alike and no order strict."""
    orders = [one for one in constraints if isinstance(one, Ordered)]
    named = {(*one.columns, one.strict): one.name for one in orders}
    all_scales = {name: _scale(attributes[name]) for one in orders for name in one.columns}
    scales = {name: scale for name, scale in all_scales.items() if scale is not None}
    pairs = [pair for pair in named if pair[0] in scales and pair[1] in scales]
    # Bins of one kind are apart, so those that fit pair by pair ascend: the usual chain needs no table.
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
            table &= along(scales[name].present, axis, len(columns))
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
    for _, high, strict in chain:
        scale = scales[high]
        least, inner = scale.after(least, strict), scale.after(inner, strict)
        low, top = scale.low[scale.present][None, :], scale.high[scale.present][None, :]
        own = np.maximum(inner[:, None], low)
        left = (own <= top) & (least[:, None] > top)  # of the last column
        inner = np.where((own <= top) & (least[:, None] <= top), own, math.inf).min(axis=1, initial=math.inf)
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

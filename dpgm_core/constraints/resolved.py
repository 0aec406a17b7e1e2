"""All constraints of a domain, resolved over its attributes: the impossible cells of any table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np
from attrs import frozen

from dpgm_core.arrays import Array, IntArray
from dpgm_core.attribute import Attribute
from dpgm_core.constraints.chains import Rule, chain_rules
from dpgm_core.constraints.forms import Constraint, Mask
from dpgm_core.errors import DomainError

__all__ = ["Derived", "Resolved"]


@frozen(kw_only=True, eq=False)
class Derived:
    """A column that another one tells: `code` is the code of `column` for each code of `of`."""

    column: str
    of: str
    code: IntArray


class Resolved:
    """Constraints over attributes, and what they say of each alone (arc consistency, Mackworth 1977).

    rules: what each of them rules out, and behind those what chains of orders do.

    Raises DomainError, naming the constraints, where no label of some attribute is possible: the domain is empty. That
    none is found does not prove that there are records; an exact engine tells.

    >>> from dpgm_core.constraints.forms import Listed
    >>> two = {name: Attribute.of_size(name, 2) for name in "ab"}
    >>> rule = Listed(name="x", columns=("a", "b"), combinations=(("0", "*"), ("1", "1")))
    >>> resolved = Resolved(two, [rule])
    >>> resolved.impossible(("b",)).tolist(), resolved.scopes
    ([False, True], (('a', 'b'),))
    """

    def __init__(self, attributes: Mapping[str, Attribute], constraints: Iterable[Constraint]) -> None:
        stated = tuple(constraints)
        self._sizes = {name: one.size for name, one in attributes.items()}
        own = (
            Rule(
                of=(one.name,),
                columns=one.columns,
                mask=one.impossible([attributes[column] for column in one.columns]),
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
                allowed = allowed & _along(supported[column], axis, allowed.ndim)
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
                        allowed = allowed & _along(self.possible[column], axis, allowed.ndim)
                outside = tuple(axis for axis, column in enumerate(one.columns) if column not in inside)
                ruled.append((inside, np.asarray(allowed.any(axis=outside))))
        ruled += [((name,), self.possible[name]) for name in names if name in self.possible]
        ruled = [(inside, allowed) for inside, allowed in ruled if not allowed.all()]
        if not ruled:
            return None
        mask = np.zeros(tuple(self._sizes[name] for name in names), dtype=bool)
        for inside, allowed in ruled:
            order = np.argsort([names.index(name) for name in inside])
            shape = [self._sizes[name] if name in inside else 1 for name in names]
            mask |= ~allowed.transpose(order).reshape(shape)
        return mask

    def derived(self, taken: Container[str]) -> tuple[Derived, ...]:
        """The columns, none of them `taken`, that one constraint tells from another column, and no other mentions.

        Each comes after the one it is told by.
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

        What only a chain of orders rules out is told of its orders together: "one and two". What bins hide is not
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


def _along(codes: Mask, axis: int, axes: int) -> Mask:
    return codes.reshape([-1 if other == axis else 1 for other in range(axes)])

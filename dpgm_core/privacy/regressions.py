"""Descent: which attribute is regressed on what, the rows and columns of the weights."""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import Literal, TypeAlias, get_args

import numpy as np
from attrs import field, frozen

from dpgm_core.arrays import IntArray
from dpgm_core.errors import OptionError, StructureError, TooLarge
from dpgm_core.structure import Clique, Structure

__all__ = ["Loss", "Regressions"]

Loss: TypeAlias = Literal["logistic", "softmax", "pairs"]
#: An attribute and the codes that its regression tells apart.
Row: TypeAlias = tuple[str, tuple[int, ...]]
#: The attributes of a product of +1 and -1, or an attribute and the code that its column is 1 for; the constant: none.
Column: TypeAlias = tuple[Clique, tuple[int, ...]]

_MAX_CELLS = 2**24


def _check_candidates(instance: Regressions, attribute: object, value: Structure) -> None:
    if not isinstance(value, Structure):
        raise StructureError(f"candidates must be a Structure of them, got {type(value).__name__}")
    if max(value.multiplicities) > 1:
        raise StructureError("candidates cannot be tied cliques: each has weights of its own")
    short = next((clique for clique in value.cliques if len(clique) < 2), None)
    if short is not None:
        raise StructureError(
            f"candidate {short!r} has nothing to be regressed on; name cliques of two attributes or more"
        )


def _check_loss(instance: Regressions, attribute: object, value: Loss) -> None:
    if not isinstance(value, str) or value not in get_args(Loss):
        raise OptionError(f"loss must be one of {', '.join(get_args(Loss))}, got {value!r}")
    cliques, sizes = instance.candidates.cliques, instance.candidates.domain.sizes
    for name in instance.nodes:
        if sizes[name] != 2 and value == "logistic":
            raise StructureError(
                f"{name!r} has {sizes[name]} codes, and logistic regressions take attributes of two; use 'softmax'"
            )
        if sizes[name] < 2:
            raise StructureError(f"{name!r} has one code only, so there is nothing to regress; leave it out")
    long = next((clique for clique in cliques if len(clique) > 2), None)
    if long is not None and value != "logistic":
        raise StructureError(f"loss {value!r} takes pairs, not {long!r}; use 'logistic' for binary attributes")
    if len(instance.rows) * len(instance.columns) > _MAX_CELLS:
        raise TooLarge(
            f"{len(instance.rows):,} x {len(instance.columns):,} weights are more than {_MAX_CELLS:,}; name fewer "
            "candidates"
        )


@frozen(kw_only=True)
class Regressions:
    """The regressions of attributes on the others of their cliques.

    candidates: cliques that may have weight, of two attributes or more; an attribute is regressed on the others of its
    cliques. loss: "logistic": every attribute of the candidates has two labels, coded +1 and -1 (+1 is code 0), one
    regression each, on the products of the other attributes of each of its cliques: P(+1) = sigma(w x). "softmax": one
    regression an attribute with a row for each label, on the labels of its partners, one column each (pairs only).
    "pairs": one regression for each two labels u < v of an attribute, on the records that have one of them, P(u) =
    sigma(w x) (Algorithm 3 of the paper; pairs only). Each has a constant.

    Raises StructureError for candidates that do not fit the loss, OptionError for another loss.

    >>> from dpgm_core.domain import Domain
    >>> pair = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    >>> own = Regressions(candidates=pair, loss="logistic")
    >>> own.rows, own.columns
    ((('a', (0, 1)), ('b', (0, 1))), ((('a',), ()), (('b',), ()), ((), ())))
    >>> own.allowed.tolist()
    [[False, True, True], [True, False, True]]
    """

    candidates: Structure = field(validator=_check_candidates)
    loss: Loss = field(validator=_check_loss)

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """The attributes that are regressed: those of the candidates, in the domain's order."""
        used = {name for clique in self.candidates.cliques for name in clique}
        return tuple(name for name in self.candidates.domain.names if name in used)

    @cached_property
    def _place(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.nodes)}

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The attribute and its codes of each row of the weights.

        A row raises the odds of the first code against the second; of "softmax", of the one against all others.
        """
        sizes = self.candidates.domain.sizes
        if self.loss == "softmax":
            return tuple((name, (code,)) for name in self.nodes for code in range(sizes[name]))
        return tuple((name, two) for name in self.nodes for two in itertools.combinations(range(sizes[name]), 2))

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The factor of each column of the weights; the last is the constant, `((), ())`.

        "logistic": the attributes whose +1 and -1 are multiplied, one by one first, and (). Else: an attribute, and
        the code for which the column is 1 and not 0.
        """
        if self.loss != "logistic":
            sizes = self.candidates.domain.sizes
            return (*(((name,), (code,)) for name in self.nodes for code in range(sizes[name])), ((), ()))
        products = {rest for clique in self.candidates.cliques if len(clique) > 2 for rest in self._rests(clique)}
        longer = sorted(products, key=lambda rest: (len(rest), [self._place[name] for name in rest]))
        return (*(((name,), ()) for name in self.nodes), *((rest, ()) for rest in longer), ((), ()))

    @cached_property
    def allowed(self) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
        """The mask of weights that may differ from 0, (rows, columns); read-only."""
        mask = np.zeros((len(self.rows), len(self.columns)), np.bool_)
        mask[:, -1] = True
        if self.loss == "logistic":
            column = {attributes: number for number, (attributes, _) in enumerate(self.columns)}
            for clique in self.candidates.cliques:
                for name, rest in zip(self._in_order(clique), self._rests(clique), strict=True):
                    mask[self._place[name], column[rest]] = True
        else:
            rows, columns = (
                {name: [number for number, one in numbered if one == name] for name in self.nodes}
                for numbered in (
                    [(number, name) for number, (name, _) in enumerate(self.rows)],
                    [(number, name) for number, (names, _) in enumerate(self.columns) for name in names],
                )
            )
            for one, other in self.candidates.cliques:
                mask[np.ix_(rows[one], columns[other])] = True
                mask[np.ix_(rows[other], columns[one])] = True
        mask.flags.writeable = False
        return mask

    @cached_property
    def choices(self) -> tuple[tuple[int, ...], ...]:
        """The rows that each choice of the exponential mechanism is made over: one, or all of an attribute's."""
        if self.loss != "softmax":
            return tuple((number,) for number in range(len(self.rows)))
        own: dict[str, list[int]] = {name: [] for name in self.nodes}
        for number, (name, _) in enumerate(self.rows):
            own[name].append(number)
        return tuple(map(tuple, own.values()))

    @cached_property
    def touched(self) -> int:
        """Number of choices that one record has residuals in: one an attribute; of "pairs", all with its code."""
        if self.loss != "pairs":
            return len(self.nodes)
        return sum(self.candidates.domain.sizes[name] - 1 for name in self.nodes)

    def zeros(self) -> IntArray:
        """Weights to start from, (rows, columns)."""
        return np.zeros((len(self.rows), len(self.columns)), np.int64)

    def _in_order(self, clique: Clique) -> Clique:
        return tuple(sorted(clique, key=self._place.__getitem__))

    def _rests(self, clique: Clique) -> list[Clique]:
        names = self._in_order(clique)
        return [names[:number] + names[number + 1 :] for number in range(len(names))]

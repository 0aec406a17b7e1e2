"""Attributes that two domains share, and the order of their labels."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from attrs import frozen

from dpgm_core.arrays import Array, IntArray
from dpgm_core.domain import Domain
from dpgm_core.structure import Clique

__all__ = ["Overlap", "matching"]


@frozen(kw_only=True, eq=False)
class Overlap:
    """The attributes of two domains, by name, and the labels of those in both, by label.

    shared: those that can be compared, in the first's order. reordered: those among them whose labels stand in another
    order. labels: in both domains under one name, but with other labels: those of the first alone and of the other
    alone. only_first, only_other: in one domain. unmeasured: in both, but one side has no answer about them.
    """

    shared: Clique
    reordered: Clique
    labels: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]
    only_first: Clique
    only_other: Clique
    unmeasured: Clique
    _places: Mapping[str, IntArray]

    def aligned(self, names: Sequence[str], table: Array) -> Array:
        """A table of the other, one axis per name, with the first's order of labels on each axis."""
        for axis, name in enumerate(names):
            if name in self._places:
                table = np.take(table, self._places[name], axis=axis)
        return table

    def to_dict(self) -> dict[str, object]:
        """Plain values."""
        return {
            "shared": list(self.shared),
            "reordered": list(self.reordered),
            "other_labels": {
                name: {"only_first": list(ours), "only_other": list(theirs)}
                for name, (ours, theirs) in self.labels.items()
            },
            "only_first": list(self.only_first),
            "only_other": list(self.only_other),
            "unmeasured": list(self.unmeasured),
        }


def matching(first: Domain, other: Domain, *, unknown: Collection[str] = ()) -> Overlap:
    """Match two domains by names and labels. unknown: attributes that one side has no answer about.

    >>> one = Domain.from_dict({"sex": ["F", "M"], "age": ["young", "old"], "job": ["y", "n"]})
    >>> two = Domain.from_dict({"age": ["old", "young"], "job": ["y", "no"]})
    >>> found = matching(one, two)
    >>> found.shared, found.reordered, found.only_first, found.aligned(["age"], np.array([1, 2, 0])).tolist()
    (('age',), ('age',), ('sex',), [2, 1, 0])
    >>> found.labels
    {'job': (('n',), ('no',))}
    """
    both = [name for name in first.names if name in other]
    labels, places = {}, {}
    for name in both:
        ours, theirs = first[name].labels, other[name].labels
        if ours == theirs:
            continue
        if set(ours) == set(theirs):
            at = {label: code for code, label in enumerate(theirs)}
            places[name] = np.array([at[label] for label in ours])
        else:
            labels[name] = (
                tuple(label for label in ours if label not in set(theirs)),
                tuple(label for label in theirs if label not in set(ours)),
            )
    known = [name for name in both if name not in labels]
    return Overlap(
        shared=tuple(name for name in known if name not in unknown),
        reordered=tuple(name for name in known if name in places and name not in unknown),
        labels=labels,
        only_first=tuple(name for name in first.names if name not in other),
        only_other=tuple(name for name in other.names if name not in first),
        unmeasured=tuple(name for name in known if name in unknown),
        places=places,
    )

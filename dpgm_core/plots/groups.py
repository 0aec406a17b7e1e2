"""Groups of labels that share a bar or a row, for attributes with more labels than fit."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from attrs import evolve, frozen

from dpgm_core.arrays import FloatArray, IntArray
from dpgm_core.attribute import Attribute
from dpgm_core.errors import OptionError
from dpgm_core.models.intervals import Interval
from dpgm_core.models.model import Model

__all__ = ["Groups", "check_most", "group_labels", "shares_of"]


@frozen(kw_only=True, eq=False)
class Groups:
    """Groups of codes. labels: of each. of: (codes,), the group of each code. whole: whether each code is one."""

    labels: tuple[str, ...]
    of: IntArray
    whole: bool

    def summed(self, table: FloatArray, axis: int) -> FloatArray:
        """A table with an axis of codes as one of groups."""
        if self.whole:
            return table
        rows = np.moveaxis(table, axis, 0)
        sums = np.zeros((len(self.labels), *rows.shape[1:]))
        np.add.at(sums, self.of, rows)
        return np.moveaxis(sums, 0, axis)


def check_most(most: object) -> int:
    """How many labels to show. Raises OptionError."""
    if not isinstance(most, int) or isinstance(most, bool) or most < 2:
        raise OptionError(f"most, how many to show, must be a whole number of at least 2, got {most!r}")
    return most


def group_labels(attribute: Attribute, shares: FloatArray, most: int) -> Groups:
    """At most `most` groups of an attribute's codes, in their order.

    shares: (codes,), their probabilities. Bins are joined with their neighbours; of other labels the most probable
    stand alone, and all others together at the end.

    >>> group_labels(Attribute.of_size("a", 4), np.array([0.1, 0.4, 0.2, 0.3]), 3).labels
    ('1', '3', '2 others')
    """
    labels, count = attribute.labels, attribute.size
    if count <= most:
        return Groups(labels=labels, of=np.arange(count), whole=True)
    if attribute.edges is not None:
        return _neighbours(attribute, most)
    alone = np.sort(np.argsort(-shares, kind="stable")[: most - 1])
    of = np.full(count, most - 1)
    of[alone] = np.arange(most - 1)
    return Groups(labels=(*(labels[at] for at in alone), f"{count - most + 1} others"), of=of, whole=False)


def _neighbours(attribute: Attribute, most: int) -> Groups:
    """Runs of bins; labels that are no bins, such as missing values, stay alone where there is room."""
    assert attribute.edges is not None
    bins = len(attribute.edges) - 1
    others = attribute.size - bins if attribute.size - bins <= most // 2 else 0
    ranges = np.array_split(np.arange(attribute.size - others), most - others)
    of = np.concatenate([np.full(len(one), at) for at, one in enumerate(ranges)])
    labels = attribute.labels
    words = [labels[one[0]] if len(one) == 1 else f"{labels[one[0]]} ... {labels[one[-1]]}" for one in ranges]
    return Groups(
        labels=(*words, *labels[attribute.size - others :]),
        of=np.append(of, len(words) + np.arange(others)),
        whole=False,
    )


def shares_of(
    model: Model, groups: Mapping[str, Groups], evidence: Mapping[str, object] | None, level: float
) -> tuple[FloatArray, Interval | None]:
    """p(attributes | given), by groups, and its intervals; None of a model without replicates."""
    names = tuple(groups)

    def marginal_of(one: Model) -> FloatArray:
        table = one.marginal(names, evidence)
        for axis, name in enumerate(names):
            table = groups[name].summed(table, axis)
        return table

    if not model.replicates:
        return marginal_of(model), None
    if all(one.whole for one in groups.values()):
        interval = model.intervals(names, evidence, level=level)
    else:
        interval = evolve(
            model.interval_of(marginal_of, level=level, within=(0.0, 1.0)), standing=model.standing(names, evidence)
        )
    return interval.estimate, interval

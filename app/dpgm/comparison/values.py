"""Values of a comparison, and the matching of attributes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from attrs import asdict, frozen

from dpgm_core._util.arrays import Array, IntArray
from dpgm_core._util.html import Html, card, first, tag
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import brief, clipped, listed
from dpgm_core.structure.graphs import Clique

__all__ = ["Comparison", "Difference", "Gap", "Kind", "Overlap", "Pair", "Subject", "matching"]


# --- Matching of domains ---


@frozen(kw_only=True, eq=False)
class Overlap:
    """Attributes that two domains share by name, and the labels that these share.

    Attributes
    ----------
    shared
        Attributes that can be compared, in the first's order.
    reordered
        Shared attributes whose labels have another order.
    labels
        Attributes of one name with different labels: those of the first alone, and of the other alone.
    only_first, only_other
        Attributes of one domain alone.
    unmeasured
        Attributes of both domains about which one side has no answer.
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


# --- Results ---

#: Kinds of subjects: a model file, a release file, and a file of records drawn from a model.
Kind: TypeAlias = Literal["model", "release", "synthetic"]


@frozen(kw_only=True, eq=False)
class Subject:
    """One of the compared files or objects.

    Attributes
    ----------
    facts
        What it costs and how it was made, plain values by name; None where unknown.
    stamp
        The keys private, unsafe, conditions and guarantee; of a synthetic file they are its author's word.
    caveats
        Why it is less private than its budget; empty otherwise.
    unmeasured
        Attributes about which it has no answer.
    """

    name: str
    kind: Kind
    facts: Mapping[str, Any]
    stamp: Mapping[str, Any]
    caveats: tuple[str, ...]
    unmeasured: Clique


@frozen(kw_only=True, eq=False)
class Difference:
    """Distance of two subjects' probabilities of one table.

    Attributes
    ----------
    attributes
        Attributes of the table.
    total_variation
        Half the L1 distance, 0 to 1. Noisy tables may have negative cells and be further away.
    cell
        The labels where the two differ most.
    first, other
        The probability of that cell by the first and by the other.
    score
        Standard errors between the two, as a normal deviate corrected for the number of cells; 0 where errors explain
        the difference, None where the errors are unknown.
    standing
        What each answer rests on.
    """

    attributes: Clique
    total_variation: float
    cell: Mapping[str, str]
    first: float
    other: float
    score: float | None
    standing: tuple[str, str]


@frozen(kw_only=True, eq=False)
class Gap:
    """Distance of two releases' noisy counts of one table, in standard deviations of their joint noise.

    Attributes
    ----------
    deviations
        Root mean square over the cells; about 1 if both counted the same records.
    largest
        The largest cell.
    noise_first, noise_other
        Standard deviations per cell, records.
    """

    attributes: Clique
    deviations: float
    largest: float
    noise_first: float
    noise_other: float


@frozen(kw_only=True, eq=False)
class Pair:
    """Comparison of one subject with the first.

    Attributes
    ----------
    matching
        Overlap of their domains.
    common
        Number of cliques that both have.
    only_first, only_other
        Cliques that one has alone; None if one has no structure.
    kl
        KL(first || other) and KL(other || first), nats, of two models where it is exact.
    no_kl
        Why there is no `kl`.
    differences
        The largest first.
    gaps
        Gaps of two releases, the largest first.
    notes
        What was left out or limited, as sentences.
    """

    first: str
    other: str
    matching: Overlap
    common: int | None = None
    only_first: tuple[Clique, ...] | None = None
    only_other: tuple[Clique, ...] | None = None
    kl: tuple[float, float] | None = None
    no_kl: str | None = None
    differences: tuple[Difference, ...] = ()
    gaps: tuple[Gap, ...] = ()
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        counts = f"{len(self.differences)} tables", f"{len(self.gaps)} noisy tables"
        return brief("Pair", f"{clipped(self.other)} against {clipped(self.first)}", *counts)

    def _repr_html_(self) -> Html:
        about = clipped(self.other), clipped(self.first)
        facts = [("attributes of both", f"{len(self.matching.shared):,}"), ("notes", " ".join(self.notes))]
        kl = self.no_kl or "" if self.kl is None else f"{self.kl[0]:.4g} and {self.kl[1]:.4g} nats"
        facts += [("KL there and back", kl)]
        apart = (
            (listed(one.attributes, 8), one.total_variation, "" if one.score is None else one.score, *one.standing)
            for one in self.differences
        )
        head = ["table", "total variation", "errors apart", f"{about[1]} rests on", f"{about[0]} rests on"]
        gaps = ((listed(one.attributes, 8), one.deviations, one.largest) for one in self.gaps)
        noisy = first(["noisy table", "deviations apart", "of one cell"], gaps, len(self.gaps))
        return card(f"{about[0]} against {about[1]}", facts, first(head, apart, len(self.differences)), noisy)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "first": self.first,
            "other": self.other,
            "attributes": self.matching.to_dict(),
            "structure": None
            if self.only_first is None or self.only_other is None
            else {
                "common": self.common,
                "only_first": [list(clique) for clique in self.only_first],
                "only_other": [list(clique) for clique in self.only_other],
            },
            "kl": None if self.kl is None else {"first_other": self.kl[0], "other_first": self.kl[1]},
            "no_kl": self.no_kl,
            "differences": [asdict(one) for one in self.differences],
            "gaps": [asdict(one) for one in self.gaps],
            "notes": list(self.notes),
        }


@frozen(kw_only=True, eq=False)
class Comparison:
    """Subjects side by side, and each of the others compared with the first.

    Attributes
    ----------
    privacy
        One sentence on the privacy of all results here: they are computed from released values alone.
    """

    subjects: tuple[Subject, ...]
    pairs: tuple[Pair, ...]
    privacy: str

    def __repr__(self) -> str:
        return brief("Comparison", *(f"{clipped(one.name)}: {one.kind}" for one in self.subjects))

    def _repr_html_(self) -> Html:
        rows = (
            (one.name, one.kind, one.facts.get("cost") or "", one.facts.get("learner") or "") for one in self.subjects
        )
        sides = first(["", "kind", "cost", "learner"], rows, len(self.subjects))
        stamps = [f"{clipped(one.name)}: {flaw}" for one in self.subjects for flaw in one.caveats]
        pairs = [pair._repr_html_() for pair in self.pairs]
        return card("Comparison", [], sides, *pairs, tag("p", self.privacy), flaws=stamps)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as `dpgm compare --json` prints them."""
        return {
            "subjects": [
                {"name": one.name, "kind": one.kind, **one.facts, "unmeasured": list(one.unmeasured), **one.stamp}
                for one in self.subjects
            ],
            "pairs": [pair.to_dict() for pair in self.pairs],
            "privacy": self.privacy,
        }

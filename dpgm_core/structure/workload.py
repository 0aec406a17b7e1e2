"""Workloads: weighted sets of attributes, and the tables that may be measured for them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import cached_property
from typing import Any

from attrs import evolve, field, frozen

from dpgm_core._util.exact_numbers import Amount, amount, whole
from dpgm_core._util.html import Html, card, first
from dpgm_core.domain.domain import Domain
from dpgm_core.domain.related import FIRST, POSITION, PREVIOUS, SIZE, Related
from dpgm_core.errors import BudgetError, OptionError, StructureError, TooLarge, brief, did_you_mean, listed, thousands
from dpgm_core.structure.graphs import Clique

__all__ = ["Workload"]

#: Limit of the time that selection takes. All pairs of 256 attributes are 32,896.
MAX_CANDIDATES = 100_000
#: Largest number of candidates for which the default workload is of three attributes.
MAX_TRIPLES = 20_000
#: Largest number of candidates where sets of three attributes and more may have too many cells before codes are merged.
#: More of them add noise to scores: of 10 to 16 columns with 60 to 135 bins `grow` then had 7 to 16 % more error.
MAX_UNMERGED = 100
#: Default of the largest table that may be measured, cells.
MAX_CELLS = 10_000
#: Attributes of the pairs of two related tables that are columns of neither.
_COUNTED = (SIZE, POSITION)
_KEYS = ("order", "max_cells", "targets", "never", "weights")


@frozen(kw_only=True, repr=False)
class Workload:
    """Weighted cliques over a domain, and, as candidates, every clique inside one of them.

    Use `all`, `of` or `targeted` to make one.

    Parameters
    ----------
    domain : Domain
        The attributes of the records.
    weights : mapping of cliques to Fraction
        Positive weights.
    max_cells : int
        Larger tables are never measured. Where codes are merged first, this limits what is counted then.
    never : tuple of cliques
        Cliques that are never measured, nor any that contains one of them.
    is_default : bool
        Whether nobody said which sets it is of, so that a selector may widen it before anything is planned.
    order_before_merging : int
        Sets of up to so many attributes are candidates with more cells too, as codes are merged before their tables are
        measured; see `before_merging`.

    Raises
    ------
    StructureError, OptionError
        For cliques and weights that do not fit, and where no candidate is left.
    TooLarge
        For more than 100,000 candidates.

    Examples
    --------
    >>> workload = Workload.all(Domain.from_sizes({"a": 2, "b": 2, "c": 2}), order=2, never=[("a", "c")])
    >>> workload.candidates
    (('a',), ('b',), ('c',), ('a', 'b'), ('b', 'c'))
    """

    domain: Domain
    weights: Mapping[Clique, Fraction]
    max_cells: int = MAX_CELLS
    never: tuple[Clique, ...] = ()
    _plain: Mapping[str, Any] = field(factory=dict, repr=False, eq=False, alias="plain")
    _sized: Domain | None = field(default=None, alias="sized")  # whose sizes say what fits, if not the domain
    is_default: bool = field(default=False, repr=False, eq=False)
    order_before_merging: int = 0

    def __attrs_post_init__(self) -> None:
        if not self.candidates:
            raise StructureError(
                f"the workload leaves no table to measure: its cliques have more than {self.max_cells:,} cells or are "
                "all under `never`; raise max_cells, or leave attributes out"
            )

    @classmethod
    def all(
        cls, domain: Domain, order: int = 3, *, max_cells: int = MAX_CELLS, never: Iterable[Sequence[str]] = ()
    ) -> Workload:
        """Return every set of `order` attributes with equal weights; of all attributes, where the domain has fewer.

        >>> len(Workload.all(Domain.from_sizes(dict.fromkeys("abcd", 2))).candidates)
        14
        """
        return cls._of_sets(domain, order, None, max_cells, never)

    @classmethod
    def default(
        cls,
        domain: Domain,
        targets: Iterable[str] | str | None = None,
        *,
        max_cells: int = MAX_CELLS,
        never: Iterable[Sequence[str]] = (),
    ) -> Workload:
        """Return every set of 3 attributes (with a target, if any) where that leaves at most 20,000 candidates; else of
        2 attributes where it leaves at most 100,000; else of 1.

        >>> Workload.default(Domain.from_sizes({"a": 2, "b": 2})) == Workload.all(Domain.from_sizes({"a": 2, "b": 2}))
        True
        """
        listed = None if targets is None else _listed(targets)
        for order in (3, 2):
            with suppress(TooLarge):
                workload = cls._of_sets(domain, order, listed, max_cells, never, is_default=listed is None)
                if order < 3 or len(workload.candidates) <= MAX_TRIPLES:
                    return workload
        return cls._of_sets(domain, 1, listed, max_cells, never)

    @classmethod
    def targeted(
        cls,
        domain: Domain,
        targets: Iterable[str] | str,
        order: int = 3,
        *,
        max_cells: int = MAX_CELLS,
        never: Iterable[Sequence[str]] = (),
    ) -> Workload:
        """Return every set of `order` attributes that contains a target.

        >>> list(Workload.targeted(Domain.from_sizes(dict.fromkeys("abc", 2)), "b", order=2).weights)
        [('a', 'b'), ('b', 'c')]
        """
        return cls._of_sets(domain, order, _listed(targets), max_cells, never)

    @classmethod
    def related(cls, related: Related, *, max_cells: int = MAX_CELLS, never: Iterable[Sequence[str]] = ()) -> Workload:
        """Return the default for two related tables: the sets that samples and answers of their model rest on.

        With the number of children: a root column and one of the first or another child, two columns of a child, and
        one of both. With the position, on which the sampler conditions: a column of the other child, and two of it, of
        it and the first, and of it and the one before. Root or position, number and the other child weigh two, as it
        stands for several. Where these are too many, pairs alone and the number.

        >>> one = Related(root=Domain.from_sizes({"own": 2}), children=Domain.from_sizes({"age": 4}), key="id",
        ...     max_children=2)
        >>> {clique: int(weight) for clique, weight in Workload.related(one).weights.items()}
        {('own', 'size', 'first.age'): 1, ('own', 'size', 'age'): 2, ('size', 'first.age', 'age'): 1}
        """
        try:
            return cls.of(related.pair, _related_sets(related, (SIZE, POSITION)), max_cells=max_cells, never=never)
        except TooLarge:
            sets = _related_sets(related, ()) | {(SIZE,): 1}
            return cls.of(related.pair, sets, max_cells=max_cells, never=never)

    @classmethod
    def of(
        cls,
        domain: Domain,
        weights: Mapping[Clique, Amount] | Iterable[Sequence[str]],
        *,
        max_cells: int = MAX_CELLS,
        never: Iterable[Sequence[str]] = (),
    ) -> Workload:
        """Return the given cliques, with a weight each or with equal weights.

        >>> Workload.of(Domain.from_sizes({"a": 2, "b": 2, "c": 2}), {("b", "a"): 2, ("c",): 1}).weight(("a", "b"))
        Fraction(1, 1)
        """
        pairs = weights.items() if isinstance(weights, Mapping) else ((clique, 1) for clique in weights)
        amounts: dict[Clique, Fraction] = {}
        places = {name: number for number, name in enumerate(domain.names)}
        for clique, weight in pairs:
            named = _ordered(domain, clique, places)
            if named in amounts:
                raise StructureError(f"the workload names {' x '.join(named)} twice; name it once")
            try:
                amounts[named] = amount(f"the weight of {' x '.join(named)}", weight)
            except BudgetError as error:
                raise OptionError(str(error)) from None
        if not amounts:
            raise StructureError("the workload names no clique; name at least one, or use Workload.all")
        return cls(
            domain=domain, weights=amounts, max_cells=_whole("max_cells", max_cells), never=_never(domain, never)
        )

    @classmethod
    def _of_sets(
        cls,
        domain: Domain,
        order: int,
        targets: Sequence[str] | None,
        max_cells: int,
        never: Iterable[Sequence[str]],
        *,
        is_default: bool = False,
    ) -> Workload:
        size = min(_whole("the order of a workload", order), len(domain))
        if math.comb(len(domain), size) > 10 * MAX_CANDIDATES:
            raise TooLarge(_too_many(size))
        target_names = None if targets is None else {name for one in targets for name in _ordered(domain, (one,))}
        sets = itertools.combinations(domain.names, size)
        weights = {names: Fraction(1) for names in sets if target_names is None or target_names & set(names)}
        plain: dict[str, Any] = {"order": size} | ({} if targets is None else {"targets": list(targets)})
        return cls(
            domain=domain,
            weights=weights,
            max_cells=_whole("max_cells", max_cells),
            never=_never(domain, never),
            plain=plain,
            is_default=is_default,
        )

    @cached_property
    def candidates(self) -> tuple[Clique, ...]:
        """What may be measured: cliques inside those of the workload, by size and then in the domain's order."""
        sizes, closure = self.planned_sizes, set[Clique]()
        barred, constrained = [frozenset(clique) for clique in self.never], self.domain.constrained
        # Codes in a constraint are never merged; of all others two may be left.
        least = {name: size if name in constrained else min(size, 2) for name, size in sizes.items()}

        def fits(clique: Clique) -> bool:
            own = least if 1 < len(clique) <= self.order_before_merging else sizes
            cells = math.prod(own[name] for name in clique)
            return cells <= self.max_cells and not any(one.issubset(clique) for one in barred)

        for clique in self.weights:
            if clique in closure:
                continue
            # Whatever lies inside a candidate is one, so they grow by an attribute each.
            inside: list[Clique] = [()]
            for name in clique:
                longer = [(*one, name) for one in inside]
                inside += [one for one in longer if one in closure or fits(one)]
                if len(inside) > MAX_CANDIDATES + 1:
                    raise TooLarge(_too_many(max(map(len, self.weights))))
            closure.update(inside[1:])
            if len(closure) > MAX_CANDIDATES:
                raise TooLarge(_too_many(max(map(len, self.weights))))
        place = {name: number for number, name in enumerate(self.domain.names)}
        return tuple(sorted(closure, key=lambda clique: (len(clique), [place[name] for name in clique])))

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that may be measured, in the domain's order."""
        return tuple(name for clique in self.candidates if len(clique) == 1 for name in clique)

    def over(self, domain: Domain) -> Workload:
        """The same over another domain that has its attributes, such as one whose bins were found.

        >>> narrow, wide = Domain.from_sizes({"a": 2}), Domain.from_sizes({"a": 9})
        >>> Workload.all(narrow).over(wide).domain["a"].size
        9
        """
        return evolve(self, domain=domain, is_default=False)

    def with_singletons(self) -> Workload:
        """Return the workload with a clique, of the least weight, for each attribute in no clique.

        Raises StructureError for an attribute that no table may hold.

        >>> domain = Domain.from_sizes({"a": 2, "b": 2, "c": 2})
        >>> Workload.of(domain, {("a", "b"): 2}).with_singletons().attributes
        ('a', 'b', 'c')
        """
        left = [name for name in self.domain.names if name not in self.attributes]
        if not left:
            return self
        least = min(self.weights.values())
        every: dict[Clique, Amount] = {**self.weights, **dict.fromkeys(((name,) for name in left), least)}
        workload = Workload.of(self.domain, every, max_cells=self.max_cells, never=self.never)
        lacking = next((name for name in left if name not in workload.attributes), None)
        if lacking is not None:
            raise StructureError(
                f"singletons: {lacking!r} alone has more than {self.max_cells:,} cells, or stands under `never`; raise "
                "max_cells, or leave it out of the domain"
            )
        return workload

    def with_domain(self, domain: Domain) -> Workload:
        """Return the same candidates over a domain with released bins or labels, perhaps fewer than were planned for.

        Tables that were too large stay out: otherwise there would be more candidates than were planned for.

        >>> planned, coarse = Domain.from_sizes({"a": 200, "b": 99}), Domain.from_sizes({"a": 20, "b": 99})
        >>> Workload.all(planned).with_domain(coarse).candidates
        (('a',), ('b',))
        """
        return evolve(self, domain=domain, sized=self._sized or self.domain, is_default=False)

    def before_merging(self) -> Workload:
        """Return the workload of a selector that merges codes before it measures tables of several attributes.

        `max_cells` then limits the merged codes, so that sets of more cells are candidates too: pairs, and larger sets
        where all are at most 100. The same workload where that adds none, or more than there may be.

        >>> workload = Workload.all(Domain.from_sizes({"a": 200, "b": 99}))
        >>> workload.candidates, workload.before_merging().candidates
        ((('a',), ('b',)), (('a',), ('b',), ('a', 'b')))
        """
        largest = max(map(len, self.weights))
        if math.prod(sorted(self.planned_sizes.values())[-largest:]) <= self.max_cells:
            return self
        for order in range(largest, 1, -1):
            if order > 2 and len(self.weights) > MAX_UNMERGED:
                continue
            with suppress(TooLarge):
                workload = evolve(self, order_before_merging=order)
                if order == 2 or len(workload.candidates) <= MAX_UNMERGED:
                    return self if workload.candidates == self.candidates else workload
        return self

    def measurable(self, domain: Domain) -> list[Clique]:
        """Return the candidates that may be measured over a domain whose codes were merged, or not yet.

        >>> workload = Workload.all(Domain.from_sizes({"a": 200, "b": 99})).before_merging()
        >>> workload.measurable(workload.domain), workload.measurable(Domain.from_sizes({"a": 20, "b": 99}))
        ([('a',), ('b',)], [('a',), ('b',), ('a', 'b')])
        """
        sizes = domain.sizes
        return [one for one in self.candidates if math.prod(sizes[name] for name in one) <= self.max_cells]

    def forecast_domain(self) -> Domain:
        """Return the domain for forecasts: attributes of candidate pairs with too many cells before codes are merged
        have as many codes as two alike may have, as merging leaves hardly more.

        >>> Workload.all(Domain.from_sizes({"a": 200, "b": 99})).before_merging().forecast_domain().sizes
        {'a': 100, 'b': 99}
        """
        most, sizes = math.isqrt(self.max_cells), self.domain.sizes
        pairs = [clique for clique in self.candidates if len(clique) == 2]
        large = {name for one, two in pairs if sizes[one] * sizes[two] > self.max_cells for name in (one, two)}
        merges = {name: [min(code, most - 1) for code in range(sizes[name])] for name in large if sizes[name] > most}
        return self.domain.coarsened(
            {name: codes for name, codes in merges.items() if name not in self.domain.constrained}
        )

    def large_pairs(self, domain: Domain | None = None) -> list[Clique]:
        """Return the pairs inside its cliques that are not measured, as they have more than `max_cells` cells.

        domain: its codes as they are counted after merging; by default before it.

        >>> workload = Workload.all(Domain.from_sizes({"a": 200, "b": 99, "c": 2}))
        >>> workload.large_pairs(), workload.before_merging().large_pairs(Domain.from_sizes({"a": 20, "b": 9, "c": 2}))
        ([('a', 'b')], [])
        """
        sizes = self.planned_sizes if self.order_before_merging < 2 else (domain or self.domain).sizes
        if math.prod(sorted(sizes.values())[-2:]) <= self.max_cells:
            return []
        pairs = {pair for clique in self.weights for pair in itertools.combinations(clique, 2)}
        large = [(one, two) for one, two in pairs if sizes[one] * sizes[two] > self.max_cells]
        place = {name: number for number, name in enumerate(self.domain.names)}
        barred = [frozenset(clique) for clique in self.never]
        return sorted(
            (pair for pair in large if not any(one.issubset(pair) for one in barred)),
            key=lambda pair: [place[name] for name in pair],
        )

    def say_large_pairs(self, domain: Domain | None = None) -> list[str]:
        """Return a note on `large_pairs`, if there are any, with the `max_cells` that admits them.

        domain: as there; without it codes may still be merged.

        >>> Workload.all(Domain.from_sizes({"a": 200, "b": 99, "c": 2})).say_large_pairs()
        ['pairs left out for more than max_cells = 10,000 cells: 1 of 3 (a x b); max_cells = 20000 admits all']
        """
        large = self.large_pairs(domain)
        if not large:
            return []
        sizes = self.planned_sizes if self.order_before_merging < 2 else (domain or self.domain).sizes
        needed = max(math.prod(sizes[name] for name in pair) for pair in large)
        unit = 10 ** max(0, len(str(needed)) - 2)  # of two digits, as noise changes what is merged
        count = len({*large, *(clique for clique in self.candidates if len(clique) == 2)})
        why = "left out for more than"
        if domain is None and self.order_before_merging >= 2:
            why = "measured only if merging leaves at most"
        named = f"{len(large):,} of {count:,} ({listed([*map(' x '.join, large)], 3)})"
        limit = f"max_cells = {self.max_cells:,} cells"
        return [f"pairs {why} {limit}: {named}; max_cells = {-(-needed // unit) * unit} admits all"]

    @property
    def planned_sizes(self) -> dict[str, int]:
        """Name -> number of labels by which tables are small enough: those of the domain, or that were planned for.

        >>> planned, coarse = Domain.from_sizes({"a": 200}), Domain.from_sizes({"a": 20})
        >>> Workload.all(planned).with_domain(coarse).planned_sizes
        {'a': 200}
        """
        return (self._sized or self.domain).sizes

    def weight(self, clique: Sequence[str]) -> Fraction:
        """How much the workload has in common with a clique: sum over its cliques W of weight(W) |clique and W|, so
        scaled that no candidate has more than 1. Source: McKenna et al. (2022), AIM."""
        share = sum(self._shares[name] for name in clique)
        if share not in self._weight_of:
            self._weight_of[share] = Fraction(share, self._most)
        return self._weight_of[share]

    @cached_property
    def _weight_of(self) -> dict[int, Fraction]:
        """Weights by the sum of shares: thousands of candidates have a few."""
        return {}

    @cached_property
    def _shares(self) -> dict[str, int]:
        """Weight of the cliques that hold each attribute, in a unit that makes all of them whole."""
        unit = math.lcm(*(weight.denominator for weight in self.weights.values()))
        shares = dict.fromkeys(self.domain.names, 0)
        for clique, weight in self.weights.items():
            for name in clique:
                shares[name] += int(weight * unit)
        return shares

    @cached_property
    def _most(self) -> int:
        return max(sum(self._shares[name] for name in clique) for clique in self.candidates)

    def __repr__(self) -> str:
        tables = f"{len(self.candidates)} candidates of up to {thousands(self.max_cells)} cells"
        return brief("Workload", f"{len(self.weights)} cliques", tables)

    def _repr_html_(self) -> Html:
        facts = [("attributes", f"{len(self.domain):,}"), ("candidates", f"{len(self.candidates):,}")]
        facts += [("cells of a table", f"at most {thousands(self.max_cells)}"), ("cliques", f"{len(self.weights):,}")]
        facts += [("never measured", f"{len(self.never):,}")] if self.never else []
        heaviest = sorted(self.weights.items(), key=lambda one: -one[1])
        rows = ((listed(clique, 8), float(weight)) for clique, weight in heaviest)
        return card("Workload", facts, first(["clique", "weight"], rows, len(heaviest)))

    @classmethod
    def from_dict(cls, domain: Domain, plain: object) -> Workload:
        """Read a `[workload]` table: order or weights, targets, max_cells, never.

        >>> domain = Domain.from_sizes({"a": 2, "b": 2, "c": 2})
        >>> len(Workload.from_dict(domain, {"order": 2, "targets": ["a"], "never": [["b", "a"]]}).candidates)
        4
        """
        if not isinstance(plain, Mapping):
            raise OptionError(f"a workload must be a table with {', '.join(_KEYS)}, got {type(plain).__name__}")
        for key in plain:
            if key not in _KEYS:
                raise OptionError(f"a workload has no setting {key!r}{did_you_mean(str(key), _KEYS)}")
        more: dict[str, Any] = {key: plain[key] for key in ("max_cells", "never") if key in plain}
        if "never" in more and not isinstance(more["never"], (list, tuple)):
            raise OptionError('never must be a list of lists of attribute names, such as [["a", "b"]]')
        if "weights" not in plain:
            order, targets = plain.get("order"), plain.get("targets")
            if order is None:
                return cls.default(domain, targets, **more)
            return cls.all(domain, order, **more) if targets is None else cls.targeted(domain, targets, order, **more)
        if "order" in plain or "targets" in plain:
            raise OptionError("a workload states its cliques by weights or by order and targets, not by both")
        listed = plain["weights"]
        if not isinstance(listed, (list, tuple)) or not all(
            isinstance(one, Mapping) and set(one) in ({"clique"}, {"clique", "weight"}) for one in listed
        ):
            raise OptionError('weights must be a list such as [{clique = ["a", "b"], weight = 2}]')
        weights: dict[Clique, Any] = {}
        for one in listed:
            named = _ordered(domain, one["clique"])
            if named in weights:
                raise StructureError(f"the workload names {' x '.join(named)} twice; name it once")
            weights[named] = one.get("weight", 1)
        return cls.of(domain, weights, **more)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; `from_dict` reads them back."""
        rest = {"max_cells": self.max_cells, "never": [list(clique) for clique in self.never]}
        if self._plain:
            return {**self._plain, **rest}
        return {
            "weights": [{"clique": list(clique), "weight": str(weight)} for clique, weight in self.weights.items()],
            **rest,
        }


def _related_sets(related: Related, counted: Sequence[str]) -> dict[Clique, Amount]:
    """Return the sets of `Workload.related`, with their weights. counted: the attributes that some of them hold too."""
    pair, columns = related.pair, related.children.names
    weights: dict[Clique, Amount] = {}
    places = {name: number for number, name in enumerate(pair.names) if name in counted or name not in _COUNTED}

    def add(*names: str, weight: int = 1) -> None:
        clique = tuple(sorted({name for name in names if name in places}, key=places.__getitem__))
        weights[clique] = max(weight, weights.get(clique, 0))

    followed = related.max_children > 2  # otherwise the position follows from the number
    for slot in related.slots[:2]:
        for name in columns:
            for above in related.root.names:
                add(above, SIZE, slot + name, weight=1 if slot else 2)
        for one, other in itertools.combinations(columns, 2):
            add(SIZE, slot + one, slot + other)
    for one, other in itertools.product(columns, repeat=2):
        if related.max_children > 1:
            add(SIZE, FIRST + one, other)
        if followed:
            add(POSITION, FIRST + one, other)
            add(POSITION, PREVIOUS + one, other)
    for name in columns if followed else ():
        add(SIZE, POSITION, name, weight=2)
    for one, other in itertools.combinations(columns, 2) if followed else ():
        add(POSITION, one, other)
    for one, other in itertools.combinations(related.root.names, 2):
        add(SIZE, one, other)
    return weights


def _too_many(order: int) -> str:
    return (
        f"the workload has more than {MAX_CANDIDATES:,} candidates, which are the most; ask for order = "
        f"{max(1, order - 1)}, for targets, or for fewer cells a table"
    )


def _ordered(domain: Domain, clique: Sequence[str], places: Mapping[str, int] | None = None) -> Clique:
    """Return a clique in the domain's order. places: of the domain's names, for who orders many."""
    listed = isinstance(clique, Sequence) and not isinstance(clique, str)
    if not listed or not clique or not all(isinstance(name, str) for name in clique):
        raise StructureError("a clique of a workload must be a list of attribute names, such as ['a', 'b']")
    for name in clique:
        domain[name]  # DomainError with a hint
    if len(set(clique)) < len(clique):
        raise StructureError(f"clique {' x '.join(clique)} of the workload names an attribute twice")
    if places is None:
        return tuple(name for name in domain.names if name in clique)
    return tuple(sorted(clique, key=places.__getitem__))


def _listed(targets: Iterable[str] | str) -> list[str]:
    listed = [targets] if isinstance(targets, str) or not isinstance(targets, Iterable) else list(targets)
    if not listed or not all(isinstance(one, str) for one in listed):
        raise OptionError("the targets of a workload must be names of attributes, at least one")
    return listed


def _never(domain: Domain, never: Iterable[Sequence[str]]) -> tuple[Clique, ...]:
    if isinstance(never, str):
        raise StructureError("never must be a list of cliques, each a list of attribute names")
    return tuple(dict.fromkeys(_ordered(domain, clique) for clique in never))


def _whole(what: str, value: object) -> int:
    """Return a whole number of at least 1; OptionError otherwise."""
    try:
        return whole(what, value, least=1)
    except BudgetError as error:
        raise OptionError(str(error)) from None

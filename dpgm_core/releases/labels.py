"""Private labels of open columns with their noisy counts: safe to publish, and paid for.

They cost an (epsilon, delta) of their own, in a charge before that of the tables. Each release that counts by them
carries them; releases that share them count their cost once. Columns of any type are in one account with the tables of
their run, of which they state the whole. Read from a file, the cost is computed again from the noise.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from attrs import evolve, field, frozen

from dpgm_core._util.arrays import IntArray
from dpgm_core._util.exact_numbers import amount, whole
from dpgm_core._util.files import atomic_write, bounded_bytes, plain
from dpgm_core._util.randomness import Randomness
from dpgm_core._util.version import __version__
from dpgm_core.components.options import converter
from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.bins import PrivateLabels
from dpgm_core.domain.domain import Domain
from dpgm_core.domain.shapes import COMMON_LABELS, PARTS, SHAPES, place_of_cell
from dpgm_core.domain.tables_of_shapes import cells_to_count, has_labels, has_values
from dpgm_core.errors import BudgetError, DomainError, DpgmError, ModelFileError
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.columns import ColumnsNoise, ColumnsPlan
from dpgm_core.privacy.labels import LabelsPlan, ThresholdNoise, open_columns
from dpgm_core.privacy.ledger_terms import LedgerAccount
from dpgm_core.privacy.terms import Terms

__all__ = [
    "Discovery",
    "FoundColumn",
    "FoundColumns",
    "FoundLabels",
    "draw_columns",
    "labels_file",
    "load_discovery",
    "read_discovery",
]

_SCHEMA = 1
_MAX_BYTES = 2**26
_MAX_LABEL_BYTES = 200  # bytes, as labels are counted
_MAX_COUNT = 2**62

_PART = place_of_cell(PARTS[0])

#: A label or a shape, with its noisy count.
Cell: TypeAlias = tuple[str, int]


@frozen(kw_only=True)
class FoundLabels:
    """The labels of one column. labels: the largest noisy count first. counts: the noisy counts, persons.

    keep: at most so many were kept. budget: what finding them cost. noise: on the counts, with the threshold.
    """

    column: str
    labels: tuple[str, ...]
    counts: tuple[int, ...]
    keep: int
    budget: Budget
    noise: ThresholdNoise

    @classmethod
    def of(cls, request: LabelsPlan, noisy: Mapping[str, int]) -> FoundLabels:
        """What is published of noisy counts: those at or above the threshold, and of these the largest."""
        largest = _published(noisy, request.noise.threshold, request.keep)
        return cls(
            column=request.column,
            labels=tuple(label for label, _ in largest),
            counts=tuple(count for _, count in largest),
            keep=request.keep,
            budget=request.budget,
            noise=request.noise,
        )


def _published(cells: Mapping[str, int], threshold: int, most: int) -> tuple[Cell, ...]:
    """What is published of noisy counts: those at or above the threshold, the largest first, and at most so many."""
    above = sorted((-count, cell) for cell, count in cells.items() if count >= threshold)
    return tuple((cell, -count) for count, cell in above[:most])


@frozen(kw_only=True)
class FoundColumn:
    """What was found of one column of any type. labels, shapes: with noisy counts, persons, the largest first.
    has_labels, has_values: whether labels were searched, or values of numbers, which stand among labels. cells: noisy
    counts of the cells of each place that was counted, and of parts of cells.

    declared: the attribute before. attribute: the one with the type, bins or labels that follow. A file has both, so
    that a release stays what it is where later rules conclude something else.
    """

    declared: Attribute
    attribute: Attribute
    labels: tuple[Cell, ...]
    has_labels: bool
    shapes: tuple[Cell, ...]
    cells: Mapping[str, tuple[int, ...]]
    has_values: bool = False


@frozen(kw_only=True)
class FoundColumns:
    """The columns of any type of a run. noise: on all counts, with the threshold.

    budget: what finding them costs, if nothing follows. whole: what it costs with tables of the same run that cost no
    more than `tables`, a mu.
    """

    columns: tuple[FoundColumn, ...]
    budget: Budget
    whole: Budget
    tables: Budget
    noise: ColumnsNoise


def draw_columns(
    plan: ColumnsPlan,
    declared: Sequence[Attribute],
    labels: Sequence[Mapping[str, int]],
    shapes: Sequence[Mapping[str, int]],
    cells: Sequence[Mapping[str, int]],
    randomness: Randomness,
) -> FoundColumns:
    """Return what is published of each column's counts, with fresh noise: shapes, then what these ask for, and values
    where cells do."""
    first = plan.noise(len(declared))
    seen = [
        _published(_noisy(counts, first.draw_shapes(len(counts), randomness)), first.edge, len(counts))
        for counts in shapes
    ]
    sigma = first.shapes_sigma
    steps = [(has_labels(dict(one), sigma), cells_to_count(dict(one), sigma)) for one in seen]
    celled = _celled({*map(place_of_cell, cells)} for _, cells in steps)
    noise, second = plan.noise(sum(has for has, _ in steps), celled), []
    for attribute, of_shapes, (has, places), texts, of_cells in zip(declared, seen, steps, labels, cells, strict=True):
        published: tuple[Cell, ...] = ()
        if has:
            assert isinstance(attribute.private, PrivateLabels)
            # Common labels have noise whether they occur or not, so what is published of them needs no threshold.
            common = _common_labels(attribute)
            counts = common | dict(texts)
            drawn = _noisy(counts, noise.draw_labels(len(counts), randomness))
            shown = {label: count for label, count in drawn.items() if count >= noise.least(label in common)}
            published = _published(shown, noise.low, attribute.private.keep)
        counts = {cell: of_cells.get(cell, 0) for cell in places}
        drawn = _noisy(counts, noise.draw_cells(len(counts), randomness)) if counts else {}
        valued = not has and has_values(dict(of_shapes), drawn, sigma, noise.cells_sigma)
        second.append((published, drawn, valued))
    noise, columns = plan.noise(noise.labelled, celled, sum(valued for *_, valued in second)), []
    for attribute, of_shapes, (has, _), texts, (published, drawn, valued) in zip(
        declared, seen, steps, labels, second, strict=True
    ):
        if valued:
            assert isinstance(attribute.private, PrivateLabels)
            values = _noisy(texts, noise.draw_values(len(texts), randomness))
            published = _published(values, noise.values_threshold, attribute.private.keep)
        fine = noise.values_sigma if valued else noise.sigma
        by_place = itertools.groupby(drawn.items(), lambda one: place_of_cell(one[0]))
        columns.append(
            FoundColumn(
                declared=attribute,
                attribute=attribute.with_released(
                    dict(of_shapes), dict(published), noise.shapes_sigma, drawn, fine, noise.cells_sigma
                ),
                labels=published,
                has_labels=has,
                has_values=valued,
                shapes=of_shapes,
                cells={place: tuple(count for _, count in some) for place, some in by_place},
            )
        )
    return FoundColumns(columns=tuple(columns), budget=plan.budget, whole=plan.whole, tables=plan.tables, noise=noise)


def _celled(places: Iterable[Collection[str]]) -> int:
    """Return how many columns have cells of these places counted, and again how many have parts of cells."""
    return sum(bool(one) + (_PART in one) for one in places)


def _common_labels(attribute: Attribute) -> dict[str, int]:
    """Return the common labels of a column with counts of 0, in the form in which its texts are compared.

    Without those that mark a null value. Depends on what is declared alone.
    """
    form = attribute.matching.form
    texts = (*attribute.null_values, attribute.labels[attribute.unknown], attribute.labels[attribute.null])
    none = {form(text.encode()) for text in texts}
    return {one.decode(): 0 for text in COMMON_LABELS if (one := form(text.encode())) not in none}


def _noisy(counts: Mapping[str, int], noise: IntArray) -> dict[str, int]:
    return {cell: count + z for (cell, count), z in zip(counts.items(), noise.tolist(), strict=True)}


@frozen(kw_only=True)
class Discovery:
    """The labels of one or several open columns, found in one charge, and columns of any type.

    columns: the labels found of each. described: the columns of any type. terms: what is protected. private: False
    where a seed was used. provenance: the ledger and its entry, and a mark by which releases that share it know it.
    """

    columns: tuple[FoundLabels, ...]
    terms: Terms = field(eq=False)
    private: bool
    provenance: Mapping[str, Any] = field(factory=dict)
    described: FoundColumns | None = None

    @property
    def cost(self) -> Budget:
        """What all columns cost together."""
        together = [] if self.described is None else [self.described.budget]
        return Budget.sum([*(one.budget for one in self.columns), *together])

    def with_tables(self, costs: Sequence[Budget]) -> Budget | None:
        """What the columns cost together with the tables of their run; None where the account does not have those.

        costs: of the releases that carry it.
        """
        rest = self.price_of_tables(Budget.sum(costs)) if all(cost.kind == "gdp" for cost in costs) else None
        return None if rest is None else self.cost + rest

    def price_of_tables(self, tables: Budget, account: LedgerAccount = "concentrated") -> Budget | None:
        """What a ledger is charged for tables in one account with the search; None where that is their own cost.

        With what the search cost it adds up to the whole. A Gaussian account adds the mu of the tables as it is.
        """
        one = self.described
        if one is None or account == "gaussian" or tables.kind != "gdp" or not tables <= one.tables:
            return None
        return one.whole - one.budget

    @property
    def is_identified(self) -> bool:
        """Whether it is known by random identities which ledger paid for it; False for files of older versions."""
        return "ledger" not in self.provenance or "ledger_identity" in self.provenance

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return (*(one.column for one in self.columns), *self.attributes)

    @property
    def attributes(self) -> dict[str, Attribute]:
        """The attributes that were found of columns of any type, by name."""
        return {} if self.described is None else {one.declared.name: one.attribute for one in self.described.columns}

    def domain(self, declared: Domain) -> Domain:
        """The domain with the labels that were found, which may be published as it is.

        Raises DomainError where it does not leave just these columns open, or asks for fewer labels.
        """
        left = {one.name: one for one in open_columns(declared)}
        if set(left) != set(self.names):
            raise DomainError(
                f"the labels found are of {_listed(self.names)}, and the domain leaves those of {_listed(left)} to be "
                "found; take the domain that they were found for"
            )
        if self.described is not None and any(
            left[one.declared.name] != one.declared for one in self.described.columns
        ):
            raise DomainError("a column of any type was found under other settings; take the domain it was found for")
        named = {one.column: left[one.column].with_labels(one.labels) for one in self.columns}
        return declared.with_attributes(named | self.attributes)

    def to_dict(self) -> dict[str, Any]:
        """JSON values, but for the terms; `read_discovery` reads them back."""
        columns = [
            {
                "column": one.column,
                "labels": list(one.labels),
                "counts": list(one.counts),
                "keep": one.keep,
                "budget": one.budget.to_dict(),
                "scale": str(one.noise.scale),
                "threshold": one.noise.threshold,
            }
            for one in self.columns
        ]
        facts = {"columns": columns, "private": self.private, "provenance": plain(self.provenance)}
        if self.described is None:
            return facts
        described = {
            "budget": self.described.budget.to_dict(),
            "whole": self.described.whole.to_dict(),
            "tables": self.described.tables.to_dict(),
            "shapes_variance": str(self.described.noise.shapes_variance),
            "variance": str(self.described.noise.variance),
            "cells_variance": str(self.described.noise.cells_variance),
            "threshold": self.described.noise.threshold,
            "values_variance": str(self.described.noise.values_variance),
            "values_threshold": self.described.noise.values_threshold,
            "columns": [
                {
                    "column": one.declared.name,
                    "declared": one.declared.to_dict(),
                    "attribute": one.attribute.to_dict(),
                    "labels": list(map(list, one.labels)),
                    "has_labels": one.has_labels,
                    "has_values": one.has_values,
                    "shapes": list(map(list, one.shapes)),
                    "cells": {place: list(counts) for place, counts in one.cells.items()},
                }
                for one in self.described.columns
            ],
        }
        return facts | {"described": described}

    def save(self, path: str | Path, domain: Domain | None = None, *, part: Path | None = None) -> None:
        """Write the labels to a new JSON file, atomically; domain: the one with these labels, for its readers.

        part: a file whose space serves (`dpgm_core._util.files.atomic_file`). Raises ModelFileError.
        """
        document = {
            "format": "dpgm-labels",
            "schema": _SCHEMA,
            "dpgm": __version__,
            "cost": self.cost.to_dict(),
            "terms": self.terms.to_dict(),
            "discovery": self.to_dict(),
            **({} if domain is None else {"domain": domain.to_dict()}),
        }
        try:
            content = json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False).encode()
        except ValueError as error:  # halves of characters
            raise ModelFileError(f"cannot write {path}: {type(error).__name__}") from None
        atomic_write(path, content, part=part)


def labels_file(release: str | Path) -> Path:
    """Return the file of the labels that were found for a release, next to it.

    >>> labels_file("out/health.release.dpgm").name
    'health.labels.json'
    """
    path = Path(release)
    return path.with_name(f"{path.name.removesuffix('.dpgm').removesuffix('.release')}.labels.json")


def load_discovery(path: str | Path) -> Discovery:
    """Read labels that were found and saved. Raises ModelFileError for anything damaged, edited or too new."""
    try:
        document = json.loads(bounded_bytes(Path(path), _MAX_BYTES))
        if not isinstance(document, dict) or document.get("format") != "dpgm-labels":
            raise ModelFileError(f"{path} is no file of found labels")
        if document.get("schema") != _SCHEMA:
            raise ModelFileError(f"{path} has schema {document.get('schema')!r}, this dpgm reads schema {_SCHEMA}")
        json.dumps(document, ensure_ascii=False).encode()  # JSON can spell halves of characters, which no file can hold
        discovery = read_discovery(document["discovery"], Terms.from_dict(document["terms"]))
        if discovery.cost.to_dict() != document["cost"]:
            raise ModelFileError(f"{path}: the cost is not that of its columns; the file was edited")
    except OSError as error:
        raise ModelFileError(f"cannot read {path}: {error.strerror or type(error).__name__}") from None
    except ModelFileError:
        raise
    except (DpgmError, ValueError, TypeError, KeyError, RecursionError, ArithmeticError) as error:
        reason = str(error) if isinstance(error, DpgmError) else type(error).__name__
        raise ModelFileError(f"{path} is damaged: {reason}") from None
    return discovery


def read_discovery(stated: Any, terms: Terms) -> Discovery:
    """The discovery whose `to_dict` this is, under these terms; ModelFileError for what its noise refutes."""
    if not isinstance(stated, Mapping) or set(stated) - {"described"} != {"columns", "private", "provenance"}:
        raise ModelFileError("the labels found must state columns, private and provenance")
    described = _described(stated["described"], terms) if "described" in stated else None
    nothing = not stated["columns"] and described is None
    if not isinstance(stated["columns"], list) or nothing or not isinstance(stated["provenance"], dict):
        raise ModelFileError("the labels found are of no column")
    columns = tuple(_column(one, terms) for one in stated["columns"])
    names = [one.column for one in columns]
    names += [] if described is None else [one.declared.name for one in described.columns]
    if len(set(names)) < len(names):
        raise ModelFileError("the labels of a column are found twice")
    return Discovery(
        columns=columns,
        described=described,
        terms=terms,
        private=converter.structure(stated["private"], bool),
        provenance=dict(stated["provenance"]),
    )


def _described(stated: Any, terms: Terms) -> FoundColumns:
    """Columns of any type; refused where noise and threshold do not cover what they are said to cost."""
    keys = {"budget", "whole", "tables", "shapes_variance", "variance", "cells_variance", "threshold", "columns"}
    later: dict[str, Any] = {"values_variance": "1", "values_threshold": 3}  # of a version without values
    stated = {**later, **stated} if isinstance(stated, Mapping) and keys <= set(stated) else {}
    if set(stated) != keys | set(later) or not isinstance(stated["columns"], list):
        raise ModelFileError(
            f"columns of any type must state {', '.join(sorted(keys))}; a file without them was edited, or is of an "
            "older dpgm, and the columns have to be found again"
        )
    if not stated["columns"]:
        raise ModelFileError("the columns of any type are none")
    budget, whole, tables = (Budget.parse(stated[name]) for name in ("budget", "whole", "tables"))
    variances = {
        name: converter.structure(stated[name], str)
        for name in ("shapes_variance", "variance", "cells_variance", "values_variance")
    }
    try:
        amounts: dict[str, Any] = {name: amount("a variance", value) for name, value in variances.items()}
        noise = ColumnsNoise(
            **amounts,
            threshold=stated["threshold"],
            values_threshold=stated["values_threshold"],
            labels=terms.rows_per_person,
            columns=len(stated["columns"]),
            labelled=0,
            celled=0,
            neighbours=terms.neighbours,
        )
        columns = tuple(_read_column(one, noise) for one in stated["columns"])
        noise = evolve(
            noise,
            labelled=sum(one.has_labels for one in columns),
            celled=_celled(one.cells for one in columns),
            valued=sum(one.has_values for one in columns),
        )
        covered = (budget.kind, whole.kind, tables.kind) == ("approx", "approx", "gdp") and budget <= whole
        covered = covered and noise.delta(budget.epsilon) <= budget.delta
        covered = covered and noise.delta(whole.epsilon, tables.mu_squared) <= whole.delta
    except BudgetError as error:
        raise ModelFileError(f"columns of any type were found by no noise that has a cost: {error}") from None
    if not covered:
        raise ModelFileError(
            f"finding columns of any type is said to cost {budget}, and {whole} with tables of {tables}, which its "
            "noise and threshold do not cover; the file was edited"
        )
    return FoundColumns(columns=columns, budget=budget, whole=whole, tables=tables, noise=noise)


def _read_column(stated: Any, noise: ColumnsNoise) -> FoundColumn:
    keys = {"column", "declared", "attribute", "labels", "has_labels", "shapes", "cells"}
    if not isinstance(stated, Mapping) or set(stated) - {"has_values"} != keys:
        raise ModelFileError(f"a column of any type must state {', '.join(sorted(keys))}")
    name = converter.structure(stated["column"], str)
    declared = Attribute.from_dict(name, stated["declared"])
    if not isinstance(declared.private, PrivateLabels) or not declared.private.any_type:
        raise ModelFileError(f"column {name!r} is said to be found, and was described; the file was edited")
    released = {}
    has, cells = converter.structure(stated["has_labels"], bool), stated["cells"]
    valued = converter.structure(stated.get("has_values", False), bool)
    limits = {
        "shapes": (len(SHAPES), noise.edge, frozenset(SHAPES)),
        "labels": (declared.private.keep, noise.values_threshold if valued else noise.low, None),
    }
    for what, (most, threshold, every) in limits.items():
        pairs = stated[what]
        if not isinstance(pairs, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
            raise ModelFileError(f"what was found of column {name!r} is no list of labels with counts")
        labels, counts = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        if not _is_published(labels, counts, most, threshold) or (every is not None and not every.issuperset(labels)):
            raise ModelFileError(f"column {name!r} is not as columns are found; the file was edited")
        released[what] = tuple(zip(labels, counts, strict=True))
    counted = isinstance(cells, dict) and all(
        isinstance(counts, list) and counts and all(type(one) is int and abs(one) <= _MAX_COUNT for one in counts)
        for counts in cells.values()
    )
    attribute = Attribute.from_dict(name, stated["attribute"])
    common = _common_labels(declared)
    has_few = has and any(count < noise.least(label in common) for label, count in released["labels"])
    if (
        (released["labels"] and not (has or valued))
        or (has and valued)
        or has_few
        or not counted
        or attribute.private is not None
    ):
        raise ModelFileError(f"column {name!r} is not as columns are found; the file was edited")
    return FoundColumn(
        declared=declared,
        attribute=attribute,
        **released,
        has_labels=has,
        has_values=valued,
        cells={place: tuple(counts) for place, counts in cells.items()},
    )


def _column(stated: Any, terms: Terms) -> FoundLabels:
    keys = {"column", "labels", "counts", "keep", "budget", "scale", "threshold"}
    if not isinstance(stated, Mapping) or set(stated) != keys:
        raise ModelFileError(f"the labels of a column must state {', '.join(sorted(keys))}")
    column = converter.structure(stated["column"], str)
    labels, counts = stated["labels"], stated["counts"]
    keep = whole("keep", stated["keep"], least=1)
    budget = Budget.parse(stated["budget"])
    try:
        noise = ThresholdNoise(
            scale=amount("a scale", converter.structure(stated["scale"], str)),
            threshold=stated["threshold"],
            labels=terms.rows_per_person,
            neighbours=terms.neighbours,
        )
        covered = noise.cost <= budget
    except BudgetError as error:
        raise ModelFileError(f"the labels of {column!r} were found by no noise that has a cost: {error}") from None
    if not covered:
        raise ModelFileError(
            f"finding the labels of {column!r} is said to cost {budget}, but with its noise and threshold it cost "
            f"{noise.cost}; the file was edited"
        )
    if not _is_published(labels, counts, keep, noise.threshold):
        raise ModelFileError(f"the labels of {column!r} are not as they are found; the file was edited")
    return FoundLabels(column=column, labels=tuple(labels), counts=tuple(counts), keep=keep, budget=budget, noise=noise)


def _is_published(labels: Any, counts: Any, keep: int, threshold: int) -> bool:
    """Whether labels and counts are such as `FoundLabels.of` gives."""
    if not isinstance(labels, list) or not isinstance(counts, list) or not len(labels) == len(counts) <= keep:
        return False
    if not all(type(one) is int and one >= threshold for one in counts) or not all(map(_is_label, labels)):
        return False
    ranked = [(-count, label) for count, label in zip(counts, labels, strict=True)]
    return ranked == sorted(ranked) and len(set(labels)) == len(labels)


def _is_label(text: object) -> bool:
    try:
        return isinstance(text, str) and 1 <= len(text.encode()) <= _MAX_LABEL_BYTES
    except UnicodeEncodeError:
        return False


def _listed(names: Sequence[str] | Mapping[str, object]) -> str:
    return ", ".join(map(repr, names)) or "no column"

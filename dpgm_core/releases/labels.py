"""Private labels of open columns with their noisy counts: safe to publish, and paid for.

They cost an (epsilon, delta) of their own, in a charge before that of the tables. Each release that counts by them
carries them; releases that share them count their cost once. Read from a file, the cost is computed again from the
noise.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import field, frozen

from dpgm_core._util.exact_numbers import amount, whole
from dpgm_core._util.files import atomic_write, bounded_bytes, plain
from dpgm_core._util.version import __version__
from dpgm_core.components.options import converter
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import BudgetError, DomainError, DpgmError, ModelFileError
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.labels import LabelsPlan, ThresholdNoise, open_columns
from dpgm_core.privacy.terms import Terms

__all__ = ["Discovery", "FoundLabels", "labels_file", "load_discovery", "read_discovery"]

_SCHEMA = 1
_MAX_BYTES = 2**26
_MAX_LABEL_BYTES = 200  # bytes, as labels are counted


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
        above = sorted((-count, label) for label, count in noisy.items() if count >= request.noise.threshold)
        largest = above[: request.keep]
        return cls(
            column=request.column,
            labels=tuple(label for _, label in largest),
            counts=tuple(-count for count, _ in largest),
            keep=request.keep,
            budget=request.budget,
            noise=request.noise,
        )


@frozen(kw_only=True)
class Discovery:
    """The labels of one or several open columns, found in one charge.

    columns: what was found of each. terms: what is protected. private: False where a seed was used. provenance: the
    ledger and its entry, and a mark by which releases that share it know it.
    """

    columns: tuple[FoundLabels, ...]
    terms: Terms = field(eq=False)
    private: bool
    provenance: Mapping[str, Any] = field(factory=dict)

    @property
    def cost(self) -> Budget:
        """What all columns cost together."""
        return Budget.sum(one.budget for one in self.columns)

    @property
    def is_identified(self) -> bool:
        """Whether it is known by random identities which ledger paid for it; False for files of older versions."""
        return "ledger" not in self.provenance or "ledger_identity" in self.provenance

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(one.column for one in self.columns)

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
        return declared.with_attributes({one.column: left[one.column].with_labels(one.labels) for one in self.columns})

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
        return {"columns": columns, "private": self.private, "provenance": plain(self.provenance)}

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
    except (DpgmError, ValueError, TypeError, KeyError, RecursionError) as error:
        reason = str(error) if isinstance(error, DpgmError) else type(error).__name__
        raise ModelFileError(f"{path} is damaged: {reason}") from None
    return discovery


def read_discovery(stated: Any, terms: Terms) -> Discovery:
    """The discovery whose `to_dict` this is, under these terms; ModelFileError for what its noise refutes."""
    if not isinstance(stated, Mapping) or set(stated) != {"columns", "private", "provenance"}:
        raise ModelFileError("the labels found must state columns, private and provenance")
    if not isinstance(stated["columns"], list) or not stated["columns"] or not isinstance(stated["provenance"], dict):
        raise ModelFileError("the labels found are of no column")
    columns = tuple(_column(one, terms) for one in stated["columns"])
    if len({one.column for one in columns}) < len(columns):
        raise ModelFileError("the labels of a column are found twice")
    return Discovery(
        columns=columns,
        terms=terms,
        private=converter.structure(stated["private"], bool),
        provenance=dict(stated["provenance"]),
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

"""Public attributes: labels or bins, and the code of every raw value."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypedDict, Unpack

import numpy as np
from attrs import evolve, field, frozen

from dpgm_core._util.html import Html, card, first
from dpgm_core.domain.attribute_tables import (
    ABSENT,
    MATCHING,
    MAX_SIZE,
    MISSING,
    VALUES,
    attribute_fields,
    special_codes,
)
from dpgm_core.domain.bins import OTHER, PrivateBins, PrivateLabels, bin_edge, check_edges, check_written, grid_edges
from dpgm_core.domain.labels import EXACT, Matching, bin_labels, check_apart, find_alike, merge_labels, place_of
from dpgm_core.domain.tables_of_shapes import table_of
from dpgm_core.domain.values import PLAIN, Cut, Values, parse_number
from dpgm_core.errors import DomainError, brief, clipped, did_you_mean, listed

__all__ = ["Attribute", "MAX_SIZE", "RawTexts", "bin_edge", "code_dtype", "first_repeated", "parse_number"]


class RawTexts(TypedDict, total=False):
    """Arguments on raw texts that `Attribute.of_labels` and `Attribute.of_bins` share.

    Parameters
    ----------
    null_values : iterable of str
        Raw texts that mean null, besides a true null and, for numbers, NaN; the empty text if left out.
    matching : Matching
        When a raw text is a label; byte for byte if left out.
    values : Values
        Type and format of the column's values; texts if left out.
    """

    null_values: Iterable[str]
    matching: Matching
    values: Values


def _as_tuple(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(texts)


@frozen(kw_only=True)
class Attribute:
    """One public attribute: a finite list of labels, and the codes of unknown and null values.

    Use `of_labels`, `of_bins` or `of_size` to make one.

    Parameters
    ----------
    name : str
        The column's name.
    labels : tuple of str
        The label of each code.
    unknown, null : int
        Codes of unknown and null values.
    edges : tuple of float, optional
        The k + 1 ascending edges of bins; bin i is [e_i, e_(i+1)), the last one closed. The labels of the bins come
        first in `labels`; labels for null and unknown may follow.
    null_values : tuple of str
        Raw texts that mean null, besides a true null and, for numbers, NaN.
    coded : bool
        Whether raw values are the codes ("0", "1", ...) and not the labels.
    matching : Matching
        When a raw text is a label.
    values : Values
        Type and format of the column's values.
    private : PrivateBins or PrivateLabels, optional
        Bins or labels that a private query releases; `edges` and `labels` are then placeholders, as many as there can
        be at most.
    cap : bool
        Whether numbers beyond the edges get the bin at that end.

    Raises
    ------
    DomainError
        For a part that is wrong.

    Examples
    --------
    >>> sex = Attribute.of_labels("sex", ["F", "M"], unknown="not stated")
    >>> sex.labels, sex.code(b"M"), sex.code(b"?"), sex.code(None)
    (('F', 'M', 'not stated'), 1, 2, 2)
    """

    name: str
    labels: tuple[str, ...]
    unknown: int
    null: int
    edges: tuple[float, ...] | None = None
    null_values: tuple[str, ...] = field(default=("",), converter=_as_tuple)
    coded: bool = False
    matching: Matching = EXACT
    values: Values = PLAIN
    private: PrivateBins | PrivateLabels | None = None
    cap: bool = False
    _codes: dict[bytes, int] = field(init=False, repr=False, eq=False)
    _cut: Cut | None = field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise DomainError(f"an attribute needs a name, a non-empty text; got {self.name!r}")
        if not _is_text(self.name):
            raise DomainError(f"attribute {self.name!r}: the name is no valid Unicode text; rename it")
        where = f"attribute {self.name!r}"
        _check_parts(self.name, self.matching, self.values)
        if not self.labels:
            raise DomainError(f"{where} has no labels; give at least one")
        if len(self.labels) > MAX_SIZE:
            raise DomainError(f"{where} has {len(self.labels)} labels; at most {MAX_SIZE} are possible")
        for label in () if _are_texts(self.labels) else self.labels:
            if not _is_text(label):
                raise DomainError(f"{where}: a label must be a text, got {label!r}; write it in quotes")
        for text in self.null_values:
            if not _is_text(text):
                raise DomainError(f"{where}: a null value must be a text, got {text!r}; write it in quotes")
        twice = first_repeated(self.labels)
        if twice is not None:
            raise DomainError(f"{where}: label {twice!r} stands twice; remove one")
        for what, code in (("unknown", self.unknown), ("null", self.null)):
            if not isinstance(code, int) or isinstance(code, bool) or not 0 <= code < len(self.labels):
                raise DomainError(f"{where}: {what} must be a code below {len(self.labels)}, got {code!r}")
        if not isinstance(self.cap, bool) or (self.cap and self.edges is None):
            raise DomainError(f"{where}: cap must be true or false, and goes with bins; got {self.cap!r}")
        if self.edges is not None:
            check_edges(where, self.edges, len(self.labels))
            check_written(where, self.edges, self.values)
        if isinstance(self.private, PrivateBins) != (self.private is not None and self.edges is not None):
            raise DomainError(f"{where}: private bins need edges, private labels have none")
        if isinstance(self.private, PrivateBins):
            for code in (self.unknown, self.null):
                check_apart(where, self.labels[code])
        cut = None if self.edges is None else Cut(self.edges, self.cap, self.values.ticks)
        object.__setattr__(self, "_cut", cut)
        object.__setattr__(self, "_codes", self._known(where))

    def __repr__(self) -> str:
        return brief("Attribute", f"{clipped(self.name)}: {self.size:,} labels", listed(self.labels))

    def _repr_html_(self) -> Html:
        facts = [("labels", f"{self.size:,}"), ("unknown values", clipped(self.labels[self.unknown]))]
        facts += [("null values", clipped(self.labels[self.null]))]
        facts += [("found privately", "bins" if self.edges else "labels")] if self.private else []
        return card(
            f"Attribute {clipped(self.name)}", facts, first(["code", "label"], enumerate(self.labels), self.size)
        )

    def _known(self, where: str) -> dict[bytes, int]:
        """Return the code of each label and null value, in the form that is compared."""
        form, plain = self.matching.form, self.matching == EXACT
        known: dict[bytes, int] = {}
        if self.edges is None:
            texts = (str(code) for code in range(len(self.labels))) if self.coded else iter(self.labels)
            for code, text in enumerate(texts):
                key = text.encode() if plain else form(text.encode())
                if known.setdefault(key, code) != code:
                    raise DomainError(
                        f"{where}: labels {self.labels[known[key]]!r} and {text!r} are one under its rules of "
                        "matching; remove one"
                    )
        for text in self.null_values:
            known.setdefault(form(text.encode()), self.null)
        return known

    @property
    def size(self) -> int:
        """The number of labels, hence of codes.

        >>> Attribute.of_size("a", 3).size
        3
        """
        return len(self.labels)

    @classmethod
    def of_labels(
        cls,
        name: str,
        labels: Iterable[str],
        *,
        unknown: str,
        null: str | None = None,
        coded: bool = False,
        **texts: Unpack[RawTexts],
    ) -> Attribute:
        """Return an attribute with text labels.

        `unknown` and `null` are labels, appended if they are new; `null` is `unknown` by default. texts: `null_values`,
        `matching` and `values`, as in the class.

        >>> Attribute.of_labels("smoker", ["no", "yes"], unknown="no").size
        2
        """
        if isinstance(labels, str):
            raise DomainError(f"attribute {name!r}: labels must be a list of texts, got the text {labels!r}")
        every, at, null_at = special_codes(list(labels), unknown, null)
        return cls(name=name, labels=every, unknown=at, null=null_at, coded=coded, **texts)

    @classmethod
    def of_bins(
        cls,
        name: str,
        edges: Iterable[float],
        *,
        unknown: str,
        null: str | None = None,
        labels: Iterable[str] | None = None,
        cap: bool = False,
        **texts: Unpack[RawTexts],
    ) -> Attribute:
        """Return a number cut into bins [e_0, e_1), [e_1, e_2), ..., the last bin closed; edges may be infinite.

        Values outside the edges, and texts that are no number, are unknown; with `cap`, numbers outside get the bin at
        that end. Edges of dates are numbers on the axis of `values`, or texts in ISO 8601. texts: `null_values`,
        `matching` and `values`, as in the class.

        >>> age = Attribute.of_bins("age", [0, 18, 65, float("inf")], unknown="?")
        >>> age.labels, age.code(b"18"), age.code(b"-1"), age.code(b"old")
        (('[0, 18)', '[18, 65)', '[65, inf]', '?'), 1, 3, 3)
        """
        values = texts.get("values", PLAIN)
        _check_parts(name, texts.get("matching", EXACT), values)
        ends = tuple(bin_edge(name, edge, values) for edge in edges)
        if len(ends) < 2:
            raise DomainError(f"attribute {name!r}: bins need at least two edges, got {len(ends)}")
        check_edges(f"attribute {name!r}", ends, len(ends))
        names = list(labels) if labels is not None else bin_labels(name, ends, values, cap=cap)
        if len(names) != len(ends) - 1:
            raise DomainError(
                f"attribute {name!r}: {len(ends)} edges make {len(ends) - 1} bins, but {len(names)} labels are given"
            )
        every, at, null_at = special_codes(names, unknown, null)
        return cls(name=name, labels=every, unknown=at, null=null_at, edges=ends, cap=cap, **texts)

    @classmethod
    def of_size(cls, name: str, size: int, *, unknown: int = 0, null: int | None = None) -> Attribute:
        """Return codes 0 ... size - 1, labelled by their digits; `null` is `unknown` by default.

        Other values count as code `unknown`, which is 0 by default; `dpgm validate` lists them for the owner.

        >>> Attribute.of_size("a", 2).labels
        ('0', '1')
        """
        if not isinstance(size, (int, np.integer)) or isinstance(size, bool) or size < 1:
            raise DomainError(f"attribute {name!r}: size must be a whole number of at least 1, got {size!r}")
        if size > MAX_SIZE:
            raise DomainError(f"attribute {name!r}: size {size} is above the largest possible, {MAX_SIZE}")
        return cls(
            name=name,
            labels=tuple(str(code) for code in range(int(size))),
            unknown=unknown,
            null=unknown if null is None else null,
        )

    def code(self, text: bytes | str | None) -> int:
        """Return the code of one raw value. This function defines what every source must do, value by value.

        None is null. Texts are compared by the rules of `matching`, byte for byte unless it says otherwise; for bins
        they are parsed as `values` says. Whole numbers and times are compared exactly, others as float64. Never raises.

        >>> Attribute.of_size("a", 3).code("2"), Attribute.of_size("a", 3).code("3")
        (2, 0)
        """
        return self._code(text, self.matching)

    def typed_code(self, text: bytes | str | None) -> int:
        """Return the code of a value that is no text, such as a number of Parquet, by its text with a decimal point.

        >>> from dpgm_core.domain.labels import Matching
        >>> dot = Attribute.of_labels("x", ["1,5"], unknown="?", matching=Matching(numbers=True, decimal=","))
        >>> dot.code("1.5"), dot.code("1,50"), dot.typed_code("1.5")
        (1, 0, 0)
        """
        return self._code(text, self.matching.typed)

    @property
    def forms(self) -> Mapping[bytes, int]:
        """The code of each text that is a label or a null value, in the form that `matching` compares.

        For bins there are only null values.

        >>> dict(Attribute.of_labels("a", ["x"], unknown="?").forms)
        {b'x': 0, b'?': 1, b'': 1}
        """
        return MappingProxyType(self._codes)

    def _code(self, text: bytes | str | None, rules: Matching) -> int:
        if text is None:
            return self.null
        raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)
        known = self._codes.get(rules.form(raw))
        if known is not None:
            return known
        if self._cut is None:
            return self.unknown
        spelled = raw if self.values.is_temporal else rules.numeral(raw)
        number = None if spelled is None else self.values.exact(spelled)
        if number is None:
            return self.unknown
        if number != number:  # NaN
            return self.null
        at = self._cut.place(number)
        return self.unknown if at < 0 else at

    def bin_codes(self, numbers: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the codes of float64 numbers; NaN is null, numbers outside the edges are unknown.

        >>> Attribute.of_bins("x", [0, 1, 2], unknown="?").bin_codes(np.array([0.5, 2.0, 7.0, np.nan])).tolist()
        [0, 1, 2, 2]
        """
        if self._cut is None:
            raise DomainError(f"attribute {self.name!r} has no bins; its values are matched as labels")
        codes = self._cut.real(numbers)
        codes[codes < 0] = self.unknown
        codes[np.isnan(numbers)] = self.null
        return codes

    def label_code(self, label: object) -> int:
        """Return the code of a label, of a value in its bin, or of a code, as in a query.

        In a column of numbers or dates a text that is no label is read as a value, and so are floats, dates and times;
        whole numbers are codes. Labels match as values of the column do. Unlike `code` it raises DomainError, with a
        suggestion, in place of returning `unknown`.

        >>> Attribute.of_labels("sex", ["F", "M"], unknown="F").label_code("M")
        1
        >>> Attribute.of_bins("age", [0, 18, 65], unknown="missing").label_code("37")
        1
        """
        if isinstance(label, (int, np.integer)) and not isinstance(label, bool):
            if 0 <= label < self.size:
                return int(label)
            raise DomainError(f"attribute {self.name!r} has codes 0 to {self.size - 1}, not {label}")
        if isinstance(label, str) and label in self.labels:
            return self.labels.index(label)
        place = self.place(label)
        if place is not None:
            return self._code_at(place, label)
        if isinstance(label, str):
            code = None if self.coded else find_alike(self.labels, self.matching, label)
            if code is not None:
                return code
            form = "" if self.values.format is None else f", nor is it a {self.values.kind} as {self.values.format!r}"
            raise DomainError(f"attribute {self.name!r} has no label {label!r}{form}{did_you_mean(label, self.labels)}")
        raise DomainError(f"attribute {self.name!r}: a label (text) or code (whole number) is needed, got {label!r}")

    def place(self, value: object) -> float | None:
        """Return the place of a number, a date or a time on the axis; None for other values, such as labels.

        >>> Attribute.of_bins("age", [0, 18, 65], unknown="missing").place("37")
        37.0
        """
        if self.edges is None and not self.values.is_numeric:
            return None
        return place_of(self.values, self.matching, value)

    def _code_at(self, place: float, value: object) -> int:
        """The code of a place on the axis: its bin, or the label that stands there. Raises DomainError."""
        if self._cut is None:
            texts = enumerate(map(str, range(self.size)) if self.coded else self.labels)
            index = next((code for code, text in texts if self.place(text) == place), -1)
        else:
            index = int(self._cut.real(np.array([place]))[0])
        if index >= 0:
            return index
        if self._cut is None:
            raise DomainError(f"attribute {self.name!r} has no label for the value {value!r}")
        last = self.labels[len(self._cut.edges) - 2]
        raise DomainError(
            f"attribute {self.name!r}: {value!r} is outside of its bins, the first of which is {self.labels[0]!r} and "
            f"the last {last!r}"
        )

    def coarsened(self, codes: Sequence[int]) -> Attribute:
        """Return the attribute with merged codes; codes: the new code of each, from 0 without gaps.

        A code that is not merged has its old label, a merged one a label with their number. Bins, raw codes and null
        values are not carried over, unless nothing changes: raw values are read with the original. Raises DomainError.

        >>> Attribute.of_labels("job", ["cook", "pilot", "diver"], unknown="diver").coarsened([0, 1, 1]).labels
        ('cook', 'other (2 labels)')
        """
        new, labels = merge_labels(self.name, self.labels, codes)
        if new == list(range(self.size)):
            return self
        return Attribute(
            name=self.name, labels=labels, unknown=new[self.unknown], null=new[self.null], null_values=("",)
        )

    def grid(self) -> Attribute:
        """Return the fine attribute with which a private query of bins reads records: a bin per cell.

        Cells are labelled by their numbers; the labels of unknown and null values follow. Raises DomainError without
        private bins.

        >>> age = Attribute.from_dict("age", {"type": "integer", "min": 18, "max": 94, "bins": {"private": 32}})
        >>> age.size, age.grid().size, age.grid().labels[37], age.grid().code("55")
        (33, 78, '37', 37)
        """
        if not isinstance(self.private, PrivateBins):
            raise DomainError(f"attribute {self.name!r} has no bins that are found privately")
        edges = grid_edges(self.name, self.private.low, self.private.high, self.values)
        # Nobody sees the names of up to 65,536 cells, and those of bins would take longer than the records.
        return self._over(edges, [str(cell) for cell in range(len(edges) - 1)])

    def binned(self, edges: Sequence[float]) -> Attribute:
        """Return the attribute with released bins, labelled as public ones are; edges: of cells of the grid.

        >>> age = Attribute.from_dict("age", {"type": "integer", "min": 0, "max": 94, "bins": {"private": 4}})
        >>> age.binned([0, 20, 40, 94]).labels
        ('0-19', '20-39', '40-94', 'missing')
        """
        if not isinstance(self.private, PrivateBins):
            raise DomainError(f"attribute {self.name!r} has no bins that are found privately")
        ends = tuple(bin_edge(self.name, edge) for edge in edges)
        check_edges(f"attribute {self.name!r}", ends, len(ends))
        return self._over(ends, bin_labels(self.name, ends, self.values, cap=self.cap))

    def _over(self, edges: tuple[float, ...], names: Sequence[str]) -> Attribute:
        every, unknown, null = special_codes(names, self.labels[self.unknown], self.labels[self.null])
        return evolve(self, labels=every, unknown=unknown, null=null, edges=edges, private=None)

    def with_labels(self, labels: Iterable[str]) -> Attribute:
        """Return the attribute with released labels, then `other` and the label of null values.

        A label that is one of these two, or equal to an earlier one under the rules of matching, is left out.

        >>> job = Attribute.from_dict("job", {"labels": {"private": True, "keep": 100}})
        >>> job.size, job.with_labels(["cook", "pilot", "other"]).labels
        (102, ('cook', 'pilot', 'other', 'missing'))
        """
        if not isinstance(self.private, PrivateLabels):
            raise DomainError(f"attribute {self.name!r} has no labels that are found privately")
        form = self.matching.form
        special = (OTHER, self.labels[self.null])
        taken = {form(text.encode()) for text in (*special, *self.null_values)}
        names = []
        for text in labels:
            if (key := form(text.encode())) not in taken:
                taken.add(key)
                names.append(text)
        every, unknown, null = special_codes(names, *special)
        return evolve(self, labels=every, unknown=unknown, null=null, private=None)

    def with_released(
        self,
        shapes: Mapping[str, int],
        labels: Mapping[str, int],
        sigma: float,
        cells: Mapping[str, int] | None = None,
        fine: float | None = None,
        cells_sigma: float | None = None,
    ) -> Attribute:
        """Return the attribute of a column of any type with the bins or labels that follow from what was released.

        Parameters
        ----------
        shapes, labels, cells : mapping of str to int
            Noisy numbers of persons; see `dpgm_core.domain.tables_of_shapes`.
        sigma, fine, cells_sigma : float
            The standard deviations of the noise of shapes, labels and cells.

        Examples
        --------
        >>> age = Attribute.from_dict("age", {"private": True})
        >>> age.with_released({"integer 2^4": 90, "integer 2^5": 400}, {}, 10.0).labels[:3]
        ('up to 17', '18-19', '20-21')
        """
        if not isinstance(self.private, PrivateLabels) or not self.private.any_type:
            raise DomainError(f"attribute {self.name!r} is no column of any type")
        table = table_of(shapes, labels, self.private.keep, sigma, cells, fine, cells_sigma)
        rules = {key: table[key] for key in MATCHING if key in table}
        if "labels" in table:
            one = evolve(self, matching=evolve(self.matching, **rules), private=evolve(self.private, any_type=False))
            return one.with_labels(table["labels"])
        texts = {key: getattr(self.matching, key) for key in ("case", "blanks")}
        missing = {"missing": self.labels[self.null], "unknown": self.labels[self.null]}
        marks = dict.fromkeys([*self.null_values, *table.get("null_values", ())])
        return Attribute.from_dict(self.name, {**texts, **missing, **table, "null_values": list(marks)})

    def to_dict(self) -> dict[str, Any]:
        """Return the attribute as plain TOML / JSON values, which `Domain.from_dict` reads.

        >>> Attribute.of_size("a", 2).to_dict()
        {'labels': ['0', '1'], 'unknown': '0'}
        """
        return _plain_table(self)

    @classmethod
    def from_dict(cls, name: str, plain: Mapping[str, Any]) -> Attribute:
        """Read one attribute table: `labels`, `bins`, `size`, or `min` and `max`; see `docs/cli.md` for its settings.

        Without `unknown`, null and unknown values have the label `missing`. Raises DomainError.

        >>> Attribute.from_dict("a", {"labels": ["x", "y"]}).labels
        ('x', 'y', 'missing')
        """
        return cls(name=name, **attribute_fields(name, plain))


def _plain_table(one: Attribute) -> dict[str, Any]:
    """Return the table of an attribute without default settings, as plain TOML and JSON values."""
    labels, null, private = one.labels, one.labels[one.null], one.private
    plain = {key: getattr(one.values, part) for key, part in VALUES.items()}
    plain = {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in plain.items()
        if value != getattr(PLAIN, VALUES[key])
    }
    bins = one.edges is not None and private is None
    if bins and labels[-1] == ABSENT and len(labels) - 1 not in (one.unknown, one.null):
        labels, plain[ABSENT] = labels[:-1], True
    own = one.unknown == one.null == len(labels) - 1 and labels[-1] == MISSING  # what needs no setting
    if isinstance(private, PrivateLabels):
        if private.any_type:
            plain |= {"private": True, "keep": private.keep, "share": str(private.share)}
        else:
            plain["labels"] = {"private": True, "keep": private.keep, "share": str(private.share)}
        own = True
        if null != MISSING:
            plain["missing"] = null
    elif isinstance(private, PrivateBins):
        share = {} if private.share is None else {"share": str(private.share)}
        plain |= {"min": _plain_edge(private.low, one.values), "max": _plain_edge(private.high, one.values)}
        plain["bins"] = {"private": private.count, **share}
    elif one.edges is not None:
        plain["bins"] = [_plain_edge(edge, one.values) for edge in one.edges]
        names = list(labels[: len(one.edges) - 1])
        default = None
        with contextlib.suppress(DomainError):  # bins of this kind have no names of their own
            default = bin_labels("", one.edges, one.values, cap=one.cap)
        if names != default:
            plain["labels"] = names
    else:
        plain["labels"] = list(labels[:-1] if own and len(labels) > 1 else labels)
    if one.cap:
        plain["cap"] = True
    if not own:
        plain["unknown"] = labels[one.unknown]
        if one.null != one.unknown:
            plain["missing"] = null
    rules = {key: getattr(one.matching, key) for key in MATCHING}
    plain |= {key: value for key, value in rules.items() if value != getattr(EXACT, key)}
    if one.null_values != ("",):
        plain["null_values"] = list(one.null_values)
    if one.coded:
        plain["coded"] = True
    return plain


def _plain_edge(edge: float, values: Values) -> float | str:
    """Return a place of the axis as a file has it; JSON has no infinity, so infinite edges travel as texts."""
    if not math.isfinite(edge):
        return str(edge)
    if values.kind == "integer" and edge.is_integer():
        return int(edge)
    if values.is_temporal and edge.is_integer():
        try:
            written = Values(kind=values.kind).text(edge)
        except DomainError:
            return edge
        if Values(kind=values.kind).number(written) == edge and "." not in written:
            return written
    return edge


def code_dtype(size: int) -> np.dtype[Any]:
    """Return the smallest unsigned type for codes below `size`."""
    return np.dtype(np.uint8 if size <= 2**8 else np.uint16 if size <= 2**16 else np.uint32)


def first_repeated(names: Iterable[str]) -> str | None:
    """Return a name that occurs twice, or None."""
    names = list(names)
    if len(set(names)) == len(names):
        return None
    return next((name for name, times in Counter(names).items() if times > 1), None)


def _is_text(value: object) -> bool:
    # JSON can spell halves of characters, which no file can hold.
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:
        return False


def _are_texts(values: Sequence[object]) -> bool:
    """The same of all at once, which is faster where there are many."""
    try:
        return "".join(values).encode() is not None  # type: ignore[arg-type]
    except (TypeError, UnicodeEncodeError):
        return False


def _check_parts(name: str, matching: object, values: object) -> None:
    """Refuse parts of other types, such as the name of a kind. Raises DomainError."""
    if not isinstance(matching, Matching):
        raise DomainError(f"attribute {name!r}: matching must be a Matching, got {matching!r:.60}")
    if not isinstance(values, Values):
        raise DomainError(f"attribute {name!r}: values must be a Values, as in Values(kind='date'); got {values!r:.60}")

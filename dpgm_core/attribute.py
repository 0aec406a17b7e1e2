"""One public attribute: its labels or bins, and the code that every raw value, however broken, falls on."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import field, frozen

from dpgm_core.columns.declared import PrivateBins, PrivateLabels
from dpgm_core.columns.given import place_of
from dpgm_core.columns.matching import EXACT, Matching
from dpgm_core.columns.values import PLAIN, Values
from dpgm_core.errors import DomainError, did_you_mean

__all__ = ["Attribute", "bin_edge", "code_dtype", "parse_number", "repeated"]

MAX_SIZE = 2**22

_ATTRIBUTE_KEYS = ("labels", "bins", "size", "unknown", "null", "null_values", "coded")


@frozen(kw_only=True)
class Attribute:
    """One public attribute: a finite list of labels, and the label every unknown or null value falls on.

    name: the column's name. labels: one text per code, code = position. edges: for binned numbers the k + 1
    ascending bin edges (bin i is [e_i, e_(i+1)), the last one closed); the labels of the bins come first in
    `labels`, and a label of its own for null or unknown may follow. unknown, null: codes. null_values: raw
    texts that mean null, besides a true null and, for numbers, NaN. coded: raw values are the codes
    themselves ("0", "1", ...), not the labels. matching: when a raw text is a label. values: what the column's values
    are, apart from labels. private: what of it is found from the records privately (`PrivateBins`, `PrivateLabels`);
    edges and labels are then placeholders, as many as there will be at most.

    Raises DomainError when a part is wrong. Use `of_labels`, `of_bins` or `of_size`.

    >>> sex = Attribute.of_labels("sex", ["F", "M"], unknown="not stated")
    >>> sex.labels, sex.code(b"M"), sex.code(b"?"), sex.code(None)
    (('F', 'M', 'not stated'), 1, 2, 2)
    """

    name: str
    labels: tuple[str, ...]
    unknown: int
    null: int
    edges: tuple[float, ...] | None = None
    null_values: tuple[str, ...] = ("",)
    coded: bool = False
    matching: Matching = EXACT
    values: Values = PLAIN
    private: PrivateBins | PrivateLabels | None = None
    _codes: dict[bytes, int] = field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise DomainError(f"an attribute needs a name, a non-empty text; got {self.name!r}")
        if not _is_text(self.name):
            raise DomainError(f"attribute {self.name!r}: the name is no valid Unicode text; rename it")
        where = f"attribute {self.name!r}"
        if not self.labels:
            raise DomainError(f"{where} has no labels; give at least one")
        if len(self.labels) > MAX_SIZE:
            raise DomainError(f"{where} has {len(self.labels)} labels; at most {MAX_SIZE} are possible")
        for label in self.labels:
            if not _is_text(label):
                raise DomainError(f"{where}: a label must be a text, got {label!r}; write it in quotes")
        for text in self.null_values:
            if not _is_text(text):
                raise DomainError(f"{where}: a null value must be a text, got {text!r}; write it in quotes")
        twice = repeated(self.labels)
        if twice is not None:
            raise DomainError(f"{where}: label {twice!r} stands twice; remove one")
        for what, code in (("unknown", self.unknown), ("null", self.null)):
            if not isinstance(code, int) or isinstance(code, bool) or not 0 <= code < len(self.labels):
                raise DomainError(f"{where}: {what} must be a code below {len(self.labels)}, got {code!r}")
        if self.edges is not None:
            _check_edges(where, self.edges, len(self.labels))
        # The raw texts that hit a label exactly; everything else is unknown.
        texts = (str(code) for code in range(len(self.labels))) if self.coded else iter(self.labels)
        known = {text.encode(): code for code, text in enumerate(texts)}
        known |= {text.encode(): self.null for text in self.null_values if text.encode() not in known}
        object.__setattr__(self, "_codes", known)

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
        null_values: Iterable[str] = ("",),
        coded: bool = False,
    ) -> Attribute:
        """An attribute with text labels; `unknown` and `null` name a label, which is appended if it is new.

        null: the label of null values; the unknown label when it is None.

        >>> Attribute.of_labels("smoker", ["no", "yes"], unknown="no").size
        2
        """
        if isinstance(labels, str):
            raise DomainError(f"attribute {name!r}: labels must be a list of texts, got the text {labels!r}")
        all_labels, codes = _with_special(list(labels), unknown, null)
        return cls(
            name=name,
            labels=tuple(all_labels),
            unknown=codes[0],
            null=codes[1],
            null_values=tuple(null_values),
            coded=coded,
        )

    @classmethod
    def of_bins(
        cls,
        name: str,
        edges: Iterable[float],
        *,
        unknown: str,
        null: str | None = None,
        labels: Iterable[str] | None = None,
        null_values: Iterable[str] = ("",),
    ) -> Attribute:
        """A number cut into bins [e_0, e_1), [e_1, e_2), ..., the last bin closed; edges may be infinite.

        Values outside the edges, and texts that are no number, are unknown.

        >>> age = Attribute.of_bins("age", [0, 18, 65, float("inf")], unknown="?")
        >>> age.labels, age.code(b"18"), age.code(b"-1"), age.code(b"old")
        (('[0, 18)', '[18, 65)', '[65, inf]', '?'), 1, 3, 3)
        """
        ends = tuple(bin_edge(name, edge) for edge in edges)
        if len(ends) < 2:
            raise DomainError(f"attribute {name!r}: bins need at least two edges, got {len(ends)}")
        names = list(labels) if labels is not None else _bin_labels(ends)
        if len(names) != len(ends) - 1:
            raise DomainError(
                f"attribute {name!r}: {len(ends)} edges make {len(ends) - 1} bins, but {len(names)} labels are given"
            )
        all_labels, codes = _with_special(names, unknown, null)
        return cls(
            name=name,
            labels=tuple(all_labels),
            unknown=codes[0],
            null=codes[1],
            edges=ends,
            null_values=tuple(null_values),
        )

    @classmethod
    def of_size(cls, name: str, size: int, *, unknown: int = 0, null: int | None = None) -> Attribute:
        """Codes 0 ... size - 1, labelled by their digits; unknown and null values go to code 0 unless told.

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
        """The code of one raw value. This function defines what every source must do, value by value.

        None is null. Labels match byte for byte; bins parse the text as a number. Never raises.

        >>> Attribute.of_size("a", 3).code("2"), Attribute.of_size("a", 3).code("3")
        (2, 0)
        """
        if text is None:
            return self.null
        raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)
        if self.edges is None:
            return self._codes.get(raw, self.unknown)
        if any(raw == null.encode() for null in self.null_values):
            return self.null
        number = parse_number(raw)
        if number is None:
            return self.unknown
        return int(self.bin_codes(np.array([number]))[0])

    def bin_codes(self, numbers: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Codes of float64 numbers under the bins; NaN is null, outside the edges is unknown.

        >>> Attribute.of_bins("x", [0, 1, 2], unknown="?").bin_codes(np.array([0.5, 2.0, 7.0, np.nan])).tolist()
        [0, 1, 2, 2]
        """
        if self.edges is None:
            raise DomainError(f"attribute {self.name!r} has no bins; its values are matched as labels")
        edges = np.asarray(self.edges)
        codes = np.searchsorted(edges, numbers, side="right").astype(np.int64) - 1
        bins = len(edges) - 1
        codes[numbers == edges[-1]] = bins - 1  # the last bin is closed
        codes[(codes < 0) | (codes >= bins)] = self.unknown
        codes[np.isnan(numbers)] = self.null
        return codes

    def label_code(self, label: object) -> int:
        """The code of a label, of a value in its bin, or of a code given as a whole number, as a *user* names it.

        A text that is no label of a column of numbers or dates is read as one of them, and so are floats, dates and
        times; whole numbers are codes. Raises DomainError with a suggestion: unlike `code`, a query must not fall on
        `unknown` silently.

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
        place = None
        if self.edges is not None or self.values.is_numeric:
            place = place_of(self.values if self.values.is_numeric else Values(kind="number"), label)
        if place is not None:
            return self._code_at(place, label)
        if isinstance(label, str):
            raise DomainError(f"attribute {self.name!r} has no label {label!r}{did_you_mean(label, self.labels)}")
        raise DomainError(f"attribute {self.name!r}: a label (text) or code (whole number) is needed, got {label!r}")

    def _code_at(self, place: float, asked: object) -> int:
        """The code of a place on the axis: its bin, or the label that stands there. Raises DomainError."""
        if self.edges is None:
            texts = enumerate(map(str, range(self.size)) if self.coded else self.labels)
            found = next((code for code, text in texts if self.values.number(text) == place), None)
            if found is None:
                raise DomainError(f"attribute {self.name!r} has no label for the value {asked!r}")
            return found
        if not self.edges[0] <= place <= self.edges[-1]:
            bins = len(self.edges) - 1
            ends = f"from {self.labels[0]} to {self.labels[bins - 1]}" if bins > 1 else f"{self.labels[0]} alone"
            raise DomainError(f"attribute {self.name!r}: {asked!r} is outside of its bins, which are {ends}")
        return int(self.bin_codes(np.array([place]))[0])

    def coarsened(self, codes: Sequence[int]) -> Attribute:
        """The attribute with fewer codes; codes: the new code of each of its own, 0 to the new size - 1, each used.

        A code that stays alone keeps its label, merged ones get one that says how many they were. Raw values are read
        with the original: bins, raw codes and null values are not carried over, unless nothing is merged or moved.
        Raises DomainError.

        >>> Attribute.of_labels("job", ["cook", "pilot", "diver"], unknown="diver").coarsened([0, 1, 1]).labels
        ('cook', 'other (2 labels)')
        """
        new = _merge(self.name, self.size, codes)
        if new == list(range(self.size)):
            return self
        counted = Counter(new)
        taken, labels = set(self.labels), [""] * len(counted)
        for code, into in enumerate(new):
            if counted[into] == 1:
                labels[into] = self.labels[code]
            elif not labels[into]:
                labels[into] = _unused(f"other ({counted[into]} labels)", taken)
        return Attribute(
            name=self.name, labels=tuple(labels), unknown=new[self.unknown], null=new[self.null], null_values=("",)
        )

    def to_dict(self) -> dict[str, Any]:
        """The attribute as plain TOML / JSON values; `Domain.from_dict` reads it back.

        >>> Attribute.of_size("a", 2).to_dict()
        {'labels': ['0', '1'], 'unknown': '0', 'null': '0'}
        """
        plain: dict[str, Any] = {"labels": list(self.labels)}
        if self.edges is not None:
            bins = len(self.edges) - 1
            # JSON has no infinity, so infinite edges travel as texts.
            ends = [edge if math.isfinite(edge) else str(edge) for edge in self.edges]
            plain = {"bins": ends, "labels": list(self.labels[:bins])}
        plain |= {"unknown": self.labels[self.unknown], "null": self.labels[self.null]}
        if self.null_values != ("",):
            plain["null_values"] = list(self.null_values)
        if self.coded:
            plain["coded"] = True
        return plain

    @classmethod
    def from_dict(cls, name: str, plain: Mapping[str, Any]) -> Attribute:
        """Read one attribute table: `labels`, `bins` or `size`, with `unknown` (required for the first two).

        >>> Attribute.from_dict("a", {"size": 4}).size
        4
        """
        where = f"attribute {name!r}"
        if not isinstance(plain, Mapping):
            raise DomainError(f"{where} must be a table such as {{ size = 3 }}, got {plain!r}")
        for key in plain:
            if key not in _ATTRIBUTE_KEYS:
                raise DomainError(f"{where} has no setting {key!r}{did_you_mean(key, _ATTRIBUTE_KEYS)}")
        shapes = [key for key in ("bins", "size", "labels") if key in plain]
        if not shapes or ("size" in shapes and len(shapes) > 1):
            raise DomainError(f"{where} needs one of labels, bins or size; it has {shapes or 'none of them'}")
        if "size" in plain:
            if "null_values" in plain or "coded" in plain:
                raise DomainError(f"{where}: null_values and coded go with labels, not with size")
            unknown = _code(where, "unknown", plain.get("unknown", 0))
            null = _code(where, "null", plain["null"]) if "null" in plain else None
            return cls.of_size(name, plain["size"], unknown=unknown, null=null)
        if "unknown" not in plain:
            raise DomainError(
                f"{where} does not say where unknown values go; add unknown = LABEL, "
                "an existing label or a new one of its own"
            )
        texts = {key: plain[key] for key in ("unknown", "null") if key in plain}
        for key, text in texts.items():
            if not isinstance(text, str):
                raise DomainError(f"{where}: {key} must be a label (a text in quotes), got {text!r}")
        options: dict[str, Any] = dict(texts)
        for key in ("labels", "null_values"):
            if key in plain:
                options[key] = _texts(where, key, plain[key])
        if "bins" in plain:
            if not isinstance(plain["bins"], (list, tuple)):
                raise DomainError(f"{where}: bins must be a list of edges, got {plain['bins']!r}")
            if "coded" in plain:
                raise DomainError(f"{where}: coded goes with labels, not with bins")
            return cls.of_bins(name, plain["bins"], **options)
        if not isinstance(plain.get("coded", False), bool):
            raise DomainError(f"{where}: coded must be true or false, got {plain['coded']!r}")
        return cls.of_labels(name, options.pop("labels"), coded=plain.get("coded", False), **options)


def code_dtype(size: int) -> np.dtype[Any]:
    """The smallest unsigned type that holds codes below `size`.

    >>> code_dtype(256), code_dtype(257)
    (dtype('uint8'), dtype('uint16'))
    """
    return np.dtype(np.uint8 if size <= 2**8 else np.uint16 if size <= 2**16 else np.uint32)


def parse_number(raw: bytes) -> float | None:
    """A decimal number in ASCII, blanks around it allowed; None for anything else. NaN texts give NaN.

    >>> parse_number(b" 1e3 "), parse_number(b"1_000"), parse_number(b"0x10")
    (1000.0, None, None)
    """
    if b"_" in raw:  # Python's float() takes underscores, no data file means them
        return None
    try:
        return float(raw.decode("ascii"))
    except (UnicodeDecodeError, ValueError):
        return None


def repeated(names: Iterable[str]) -> str | None:
    """A name that stands twice, or None."""
    return next((name for name, times in Counter(names).items() if times > 1), None)


def bin_edge(name: str, edge: object) -> float:
    """The edge as a float; numbers and the texts inf and -inf are edges. DomainError otherwise."""
    if isinstance(edge, str) and edge in ("inf", "-inf"):
        return float(edge)
    if isinstance(edge, (int, float, np.integer, np.floating)) and not isinstance(edge, bool):
        with contextlib.suppress(OverflowError):
            return float(edge)
    raise DomainError(f"attribute {name!r}: a bin edge must be a number (or inf), got {edge!r}")


def _is_text(value: object) -> bool:
    # JSON can spell halves of characters, which no file can hold.
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:
        return False


def _with_special(labels: list[str], unknown: str, null: str | None) -> tuple[list[str], tuple[int, int]]:
    special = (unknown, unknown if null is None else null)
    for label in special:
        if label not in labels:
            labels.append(label)
    return labels, (labels.index(special[0]), labels.index(special[1]))


def _merge(name: str, size: int, codes: object) -> list[int]:
    """Old code -> new code as plain numbers, onto 0, 1, ... without a gap."""
    if isinstance(codes, (str, bytes)) or not isinstance(codes, (Sequence, np.ndarray)):
        raise DomainError(f"attribute {name!r}: a merge must be a list of new codes, got {type(codes).__name__}")
    new = list(codes)
    if len(new) != size:
        raise DomainError(f"attribute {name!r}: a merge must give each of its {size} codes a new one, got {len(new)}")
    for code in new:
        if not isinstance(code, (int, np.integer)) or isinstance(code, bool) or code < 0:
            raise DomainError(f"attribute {name!r}: a new code must be a whole number from 0 on, got {code!r}")
    plain = [int(code) for code in new]
    used = set(plain)
    missing = next(code for code in range(size + 1) if code not in used)
    if missing <= max(used):
        raise DomainError(
            f"attribute {name!r}: the merge leaves new code {missing} empty; number them 0, 1, ... without gaps"
        )
    return plain


def _unused(label: str, taken: set[str]) -> str:
    found = next(text for n in itertools.count(1) if (text := label if n == 1 else f"{label} {n}") not in taken)
    taken.add(found)
    return found


def _bin_labels(ends: Sequence[float]) -> list[str]:
    labels = [f"[{low:g}, {high:g})" for low, high in itertools.pairwise(ends)]
    labels[-1] = labels[-1][:-1] + "]"
    if len(set(labels)) < len(labels):  # edges closer than six digits
        labels = [f"[{low!r}, {high!r})" for low, high in itertools.pairwise(ends)]
    return labels


def _check_edges(where: str, edges: tuple[float, ...], labels: int) -> None:
    if len(edges) < 2 or len(edges) - 1 > labels:
        raise DomainError(f"{where}: {len(edges)} edges do not fit {labels} labels")
    if any(math.isnan(edge) for edge in edges) or any(not low < high for low, high in itertools.pairwise(edges)):
        raise DomainError(f"{where}: bin edges must ascend strictly, got {list(edges)}")


def _code(where: str, key: str, value: object) -> int:
    text = value if isinstance(value, str) else None
    code = int(text) if text is not None and text.isascii() and text.isdigit() else value
    if not isinstance(code, int) or isinstance(code, bool):
        raise DomainError(f"{where}: {key} must be a code such as 0, got {value!r}")
    return code


def _texts(where: str, key: str, values: object) -> list[str]:
    if not isinstance(values, (list, tuple)) or not all(isinstance(value, str) for value in values):
        raise DomainError(f"{where}: {key} must be a list of texts in quotes, got {values!r}")
    return list(values)

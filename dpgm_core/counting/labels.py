"""Numbers of persons by label of an open column. Secret: they go to the noise and nowhere else.

A person counts once for a label and for at most r labels of a column: the first in an order that hashes of the label
and of the person's key give, which favours no label and depends on the person's own rows alone, whatever else is in the
data. So one person moves at most r counts, by one each.

A label is a text in the form in which texts are compared (`Matching`), so that spellings are not distinguished, of 1 to
200 bytes, valid UTF-8, without control characters. All else counts for no label, and neither do nulls, the
texts that mean null, and texts that are labels anyway, such as `other`. Each of these depends on the value alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from dpgm_core._util.arrays import IntArray
from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.shapes import CELLS, PARTS, SHAPES, cell_of, part_of, shape_of
from dpgm_core.errors import DataError
from dpgm_core.sources.contract import RawBatch, RawValues
from dpgm_core.sources.encoding import as_text, is_dense_union, is_textual, joined, key_texts, plain
from dpgm_core.sources.persons import Words, digests, mixed
from dpgm_core.sources.reading import received

__all__ = ["MAX_LABEL_BYTES", "Labelled", "persons_by_label"]

#: Bytes of a label.
MAX_LABEL_BYTES = 200
_CONTROL_CHARACTERS = re.compile("[\x00-\x1f\x7f-\x9f]")


class Labelled:
    """Which labels of one column occur, numbered as they come, and how each is written."""

    def __init__(self, attribute: Attribute) -> None:
        self._matching = attribute.matching
        texts = (*attribute.null_values, attribute.labels[attribute.unknown], attribute.labels[attribute.null])
        self._none = {self._matching.form(text.encode()) for text in texts}
        self._numbers: dict[bytes, int] = {}  # by form
        self._labels: list[bytes] = []
        self._known: dict[tuple[bytes, bool], int] = {}  # by raw text, so that each is looked at once

    def numbers(self, raw: Any) -> IntArray:
        """The number of each value's label, -1 where it has none. raw: an Arrow array, read as `encoder` reads it."""
        array = plain(raw)
        if is_dense_union(array.type):
            parts, places = joined(array, self.numbers)
            return np.concatenate(parts)[places]
        distinct = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
        words, typed = as_text(distinct.dictionary).to_pylist(), not is_textual(plain(distinct.dictionary).type)
        numbers = np.array([-1 if text is None else self._number(text, typed) for text in words] + [-1], np.int64)
        places = distinct.indices.fill_null(len(words)) if distinct.indices.null_count else distinct.indices
        numbers_of_rows: IntArray = numbers[places.to_numpy(zero_copy_only=False)]
        return numbers_of_rows

    @property
    def labels(self) -> list[bytes]:
        """The labels, by number."""
        return self._labels

    def _number(self, text: bytes, typed: bool) -> int:
        number = self._known.get((text, typed))
        if number is None:
            form = (self._matching.typed if typed else self._matching).form(text)
            number = self._known[text, typed] = self._numbered(form)
        return number

    def _numbered(self, form: bytes) -> int:
        if form in self._numbers:
            return self._numbers[form]
        # A number is written with the signs of its country, or as a label it would not match itself.
        spelled = (form, form.replace(b".", self._matching.decimal.encode()))
        label = next((one for one in spelled if self._matching.form(one) == form), None)
        if form in self._none or label is None or _as_label(label) is None:
            return -1
        self._labels.append(label)
        return self._numbers.setdefault(form, len(self._numbers))


class Shaped(Labelled):
    """The same with the shapes or cells of labels in place of these; all there are, whether they occur or not."""

    def __init__(self, attribute: Attribute, every: Sequence[str], one_of: Callable[[bytes], str | None]) -> None:
        super().__init__(attribute)
        self._labels = [one.encode() for one in every]
        self._places: dict[str | None, int] = {one: place for place, one in enumerate(every)}
        self._one_of = one_of

    def _numbered(self, form: bytes) -> int:
        return -1 if form in self._none or _as_label(form) is None else self._places.get(self._one_of(form), -1)


def _as_label(raw: bytes) -> str | None:
    """The text as a label; None for one that can be none.

    >>> _as_label(b"cook"), _as_label(bytes([0xFF])), _as_label(b"a" * 201), _as_label(b"a\\tb")
    ('cook', None, None, None)
    """
    if not 1 <= len(raw) <= MAX_LABEL_BYTES:
        return None
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None
    return None if _CONTROL_CHARACTERS.search(text) else text


def persons_by_label(
    source: RawValues,
    attributes: Sequence[Attribute],
    person: str | None,
    rows: int,
    *,
    shaped: Sequence[Attribute] = (),
) -> list[Mapping[str, int]]:
    """Of each attribute, how many persons have each label that occurs, in the order of the labels as texts.

    shaped: attributes of which then follow how many persons have each shape, each cell and each part of a cell
    (`dpgm_core.domain.shapes`). person: the person key, as of `PersonSource`; None: each row is a person. rows: r.
    Memory grows with the rows where there is a key, else with the labels. Raises DataError.
    """
    columns = [
        *map(Labelled, attributes),
        *(Shaped(one, SHAPES, shape_of) for one in shaped),
        *(Shaped(one, CELLS, cell_of) for one in shaped),
        *(Shaped(one, PARTS, part_of) for one in shaped),
    ]
    names = list(dict.fromkeys(attribute.name for attribute in (*attributes, *shaped)))
    places = [names.index(attribute.name) for attribute in (*attributes, *shaped, *shaped, *shaped)]
    keys: list[Any] = []
    numbers_of: list[list[IntArray]] = [[] for _ in columns]
    for batch in _checked_batches(source, [*names, *([] if person is None else [person])]):
        if person is not None:
            keys.append(key_texts(person, batch.columns[-1]))
        for column, place, parts in zip(columns, places, numbers_of, strict=True):
            numbers = column.numbers(batch.columns[place])
            if person is None:  # counted at once, so that memory does not grow with the rows
                numbers = np.bincount(numbers[numbers >= 0], minlength=len(column.labels))
                if parts:
                    before = parts.pop()
                    numbers[: len(before)] += before  # labels only become more
            parts.append(numbers)
    if person is None:
        return [_counts(column, parts[0] if parts else None) for column, parts in zip(columns, numbers_of, strict=True)]
    codes = pa.concat_arrays(keys).dictionary_encode(null_encoding="encode") if keys else None
    return [
        _counts(column, None if codes is None else _count_persons(column, codes, np.concatenate(parts), rows))
        for column, parts in zip(columns, numbers_of, strict=True)
    ]


def _count_persons(column: Labelled, keys: Any, numbers: IntArray, rows: int) -> IntArray:
    """Persons by label. keys: of all rows, dictionary-encoded. numbers: the labels of all rows."""
    count = max(1, len(column.labels))
    has = numbers >= 0
    persons = keys.indices.to_numpy(zero_copy_only=False).astype(np.int64)[has]
    pairs = np.sort(persons * count + numbers[has])
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]  # each person once for a label
    persons, numbers = pairs // count, pairs % count
    if len(pairs):
        many = np.bincount(persons)[persons] > rows
        persons, numbers, rest = persons[many], numbers[many], numbers[~many]
        places = _tie_breakers(keys.dictionary.to_pylist(), column.labels, persons, numbers)
        # Equal places go by text: how labels are numbered depends on other persons.
        ranks = np.argsort(np.argsort(np.array(column.labels, dtype=object)))
        order = np.lexsort([ranks[numbers], places, persons])
        persons, numbers = persons[order], numbers[order]
        admitted = np.ones(len(order), np.bool_)  # unless the pair `rows` places before it is of the same person
        admitted[rows:] = persons[rows:] != persons[:-rows]
        numbers = np.concatenate([rest, numbers[admitted]])
    return np.bincount(numbers, minlength=len(column.labels))


def _tie_breakers(keys: Sequence[bytes | None], labels: Sequence[bytes], persons: IntArray, numbers: IntArray) -> Words:
    """Where each pair stands among those of its person: 64 bits mixed of the SHA-256 of the key and of the label."""
    first = np.diff(persons, prepend=-1) > 0  # they stand in order
    owners, of = persons[first], np.cumsum(first) - 1
    return mixed(digests([keys[who] or b"" for who in owners.tolist()])[of] ^ digests(labels)[numbers])


def _counts(column: Labelled, counted: IntArray | None) -> Mapping[str, int]:
    labels = column.labels
    counts = [0] * len(labels) if counted is None else counted.tolist()
    every = isinstance(column, Shaped)
    return {label.decode(): int(count) for label, count in sorted(zip(labels, counts, strict=True)) if count or every}


def _checked_batches(source: RawValues, names: Sequence[str]) -> Iterator[RawBatch]:
    """The batches of anybody's source; DataError where they do not fit together."""
    for batch in received(source, lambda: source.raw_batches(names)):
        if len(batch.columns) != len(names) or len({len(column) for column in batch.columns}) > 1:
            where = f"source {type(source).__name__}"
            raise DataError(f"{where} must yield one raw array of one length for each column asked for")
        yield batch

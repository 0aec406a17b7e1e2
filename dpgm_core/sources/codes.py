"""Integer code arrays: records that already are positions in the labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import field, frozen

from dpgm_core._util.arrays import Codes
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DataError
from dpgm_core.sources.arrow import objects, series
from dpgm_core.sources.encoding import check_key
from dpgm_core.sources.reading import BATCH_ROWS, KeyedBatches, attempt, locate, safe_codes

__all__ = ["CodesSource", "arrow_column"]


@frozen(kw_only=True)
class CodesSource(KeyedBatches):
    """Codes as a 2-d array, one column per attribute in the domain's order, or as a mapping from name to 1-d array.

    data: arrays of whole numbers; floats, bools, objects and lists, which have no type, are refused. Codes outside an
    attribute's labels, negative ones included, are unknown (code 0 unless the domain says otherwise).

    >>> source = CodesSource(data=np.array([[0, 1], [2, 9]]))
    >>> [column.tolist() for column in next(source.batches(Domain.from_sizes({"a": 3, "b": 2}), ["b", "a"]))]
    [[1, 0], [0, 2]]
    """

    data: Any = field(repr=lambda data: type(data).__name__, eq=id, metadata={"help": "integer code arrays"})

    def __attrs_post_init__(self) -> None:
        if isinstance(self.data, np.ndarray):
            if self.data.ndim != 2 or self.data.dtype.kind not in "iu":
                raise DataError(
                    f"codes must be whole numbers in a 2-d array (records, attributes), got {self.data.ndim}-d "
                    f"{self.data.dtype}; for labels give a data frame"
                )
        elif not isinstance(self.data, Mapping) or not self.data:
            raise DataError(f"codes must be a 2-d array or a mapping of 1-d arrays, got {type(self.data).__name__}")
        elif not all(isinstance(name, str) for name in self.data):
            raise DataError("codes given as a mapping need texts, the attributes' names, as keys")

    def keyed_batches(self, domain: Domain, columns: Sequence[str], key: str | None) -> Iterator[tuple[Codes, Any]]:
        """Codes and the raw person keys (None without `key`); a key column may hold anything with a text.

        DataError if a column is missing or is not an array of whole numbers.
        """
        attributes = [domain[name] for name in columns]
        arrays = [self._column(name, domain) for name in columns]
        keys = None if key is None else arrow_column(self._values(key, domain))
        if keys is not None and key is not None:
            check_key(key, keys.type)
        lengths = {len(array) for array in arrays} | ({len(keys)} if keys is not None else set())
        if len(lengths) > 1:
            raise DataError("code arrays differ in length; each must have one entry per record")

        def batch(start: int) -> tuple[Codes, Any]:
            codes = [
                safe_codes(array[start : start + BATCH_ROWS], attribute.size, attribute.unknown, attribute.name)
                for attribute, array in zip(attributes, arrays, strict=True)
            ]
            return codes, None if keys is None else keys.slice(start, BATCH_ROWS)

        return map(batch, range(0, max(lengths, default=0), BATCH_ROWS))

    def _column(self, name: str, domain: Domain) -> Any:
        values = self._values(name, domain)
        if isinstance(values, (list, tuple)):
            return np.array([_code(value) for value in values], np.int64)
        array = attempt(f"codes of {name!r} are not an array", lambda: np.asarray(values))
        safe_codes(array[:0] if array.ndim else array, 1, 0, f"codes of {name!r}")
        return array

    def _values(self, name: str, domain: Domain) -> Any:
        if isinstance(self.data, Mapping):
            locate("the mapping of code arrays", [name], list(self.data))
            return self.data[name]
        if self.data.shape[1] != len(domain):
            raise DataError(
                f"the code array has {self.data.shape[1]} columns, but the domain has {len(domain)} attributes; "
                "give one column per attribute, in the domain's order"
            )
        if name not in domain:
            raise DataError(f"a code array has no column {name!r} of its own; give a mapping from name to array")
        return self.data[:, domain.names.index(name)]


def arrow_column(values: Any) -> Any:
    """A column of a codes mapping, such as person keys, as an Arrow array; cells without a common type each by itself.

    >>> arrow_column([1, "x"]).to_pylist()
    [1, b'x']
    """
    if hasattr(values, "iloc"):
        array = series(values)
    elif isinstance(values, (pa.Array, pa.ChunkedArray)):
        array = values
    elif hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_c_stream__"):
        array = attempt("a column of the codes mapping cannot be read as Arrow data", lambda: pa.array(values))
    elif isinstance(values, np.ndarray) and values.dtype.kind not in "OUV":
        array = attempt("a column of the codes mapping must be a 1-d array", lambda: pa.array(values))
    else:  # cell by cell: one odd value must not change what the others mean
        array = attempt("a column of the codes mapping is not a sequence", lambda: objects(values))
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _code(value: object) -> int:
    # A list has no one type, so each value stands for itself: what is no whole number is no code, hence unknown.
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return int(value) if whole and 0 <= value < 2**62 else -1  # type: ignore[call-overload, operator]

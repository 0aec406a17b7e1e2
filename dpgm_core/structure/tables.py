"""Tables: the vector space of counts, noisy counts, log-potentials, marginals and gradients over cliques."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dpgm_core._util.arrays import Array, FloatArray, aligned
from dpgm_core.errors import StructureError
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure

__all__ = ["Tables", "margin_of"]

_FLOAT, _INT = np.dtype(np.float64), np.dtype(np.int64)


class Tables:
    """One array per group of a structure, in one contiguous read-only buffer of float64 or int64.

    The repr never shows a value, because the tables may be true counts.

    Parameters
    ----------
    structure : Structure
        Its groups give the shapes.
    values : array, (structure.cells,)
        In the order of `structure.groups`; other number types become int64 or float64.

    Raises
    ------
    StructureError
        For an array of another length.

    Examples
    --------
    >>> from dpgm_core.domain.domain import Domain
    >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 3}), [("a", "b"), ("b",)])
    >>> ones = Tables(structure, np.ones(9))
    >>> (ones + 2 * ones)["b", "a"].shape, ones.dot(ones), Tables.zeros(structure)
    ((3, 2), 9.0, Tables(2 tables, 9 cells, float64))
    """

    __slots__ = ("structure", "values")

    structure: Structure
    values: Array
    __array_ufunc__ = None  # numpy scalars on the left defer to __rmul__ and friends

    def __init__(self, structure: Structure, values: Array) -> None:
        buffer = np.ascontiguousarray(values)
        if buffer.dtype is not _FLOAT and buffer.dtype is not _INT:
            buffer = _numbers(buffer)
        if buffer.shape != (structure.cells,):
            raise StructureError(f"tables over {structure} need {structure.cells} values, got shape {buffer.shape}")
        view = buffer.view()
        view.flags.writeable = False
        self.structure = structure
        self.values = view

    @classmethod
    def _trusted(cls, structure: Structure, values: Array) -> Tables:
        """Tables of a buffer that was made for them, unchecked: contiguous float64 or int64, (cells,).

        The buffer itself becomes read-only. For hot loops, where the checks cost as much as an addition.
        """
        self = object.__new__(cls)
        values.setflags(False)  # type: ignore[call-arg]  # a keyword takes twice the time
        self.structure = structure
        self.values = values
        return self

    @classmethod
    def zeros(cls, structure: Structure, dtype: type[np.float64] | type[np.int64] = np.float64) -> Tables:
        """Return zeros: as log-potentials, the uniform model."""
        return cls(structure, np.zeros(structure.cells, dtype=dtype))

    @classmethod
    def from_arrays(cls, structure: Structure, arrays: Mapping[Any, Any]) -> Tables:
        """Return tables from one array per group, keyed by any clique of the group, in any order of its names.

        The axes follow the key. The result is int64 if all arrays are of integers, else float64. Raises StructureError
        for a missing or surplus table, and for one of another shape.

        >>> from dpgm_core.domain.domain import Domain
        >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 3}), [("a", "b")])
        >>> Tables.from_arrays(structure, {("b", "a"): np.arange(6).reshape(3, 2)})["a", "b"].tolist()
        [[0, 2, 4], [1, 3, 5]]
        """
        if not isinstance(arrays, Mapping):
            raise StructureError(f"tables are given as a mapping from clique to array, got {type(arrays).__name__}")
        parts: list[Array | None] = [None] * len(structure.groups)
        for key, raw in arrays.items():
            number, axes = structure.find(key)
            part = np.asarray(raw)
            if part.dtype.kind not in "iufb":
                raise StructureError(f"table {key!r} must hold numbers, got {part.dtype}")
            shape = structure.shapes[number]
            expected = shape if axes is None else tuple(shape[axis] for axis in axes)
            if part.shape != expected:
                raise StructureError(f"table {key!r} must have shape {expected}, got {part.shape}")
            if parts[number] is not None:
                raise StructureError(f"table {key!r} is given twice (a tied group has one table)")
            parts[number] = part if axes is None else part.transpose(np.argsort(axes))
        missing = [group[0] for group, part in zip(structure.groups, parts, strict=True) if part is None]
        if missing:
            raise StructureError(f"no table for {missing[0]!r}; {len(missing)} of {len(parts)} tables are missing")
        flat = [part.reshape(-1) for part in parts if part is not None]
        integer = all(part.dtype.kind in "iub" for part in flat)
        return cls(structure, np.concatenate(flat).astype(np.int64 if integer else np.float64))

    def __getitem__(self, clique: Sequence[str] | str) -> Array:
        """Return the table of a clique (of its group, if tied), axes in the order of `clique`, as a view."""
        number, axes = self.structure.find(clique)
        part = self.group(number)
        return part if axes is None else part.transpose(axes)

    def group(self, number: int) -> Array:
        """Return the table of the `number`-th group, a view."""
        return self.values[self.structure.slices[number]].reshape(self.structure.shapes[number])

    def items(self) -> Iterator[tuple[Clique, Array]]:
        """Yield (first clique of the group, table) for each group, in order."""
        for number, group in enumerate(self.structure.groups):
            yield group[0], self.group(number)

    def arrays(self) -> list[Array]:
        """Return the tables in the order of the groups, as views."""
        values, structure = self.values, self.structure
        return [values[place].reshape(shape) for place, shape in zip(structure.slices, structure.shapes, strict=True)]

    def like(self, values: Array) -> Tables:
        """Return tables over the same structure with other values."""
        return Tables(self.structure, values)

    def zeros_like(self) -> Tables:
        """Return zeros over the same structure, float64."""
        return Tables.zeros(self.structure)

    def map(self, function: Callable[[Array], Array]) -> Tables:
        """Apply an elementwise function to the buffer.

        >>> from dpgm_core.domain.domain import Domain
        >>> Tables.zeros(Structure(Domain.from_sizes({"a": 2}), [("a",)])).map(np.exp)["a"].tolist()
        [1.0, 1.0]
        """
        return self.like(np.asarray(function(self.values)))

    def astype(self, dtype: type[np.float64] | type[np.int64]) -> Tables:
        """Return the same values as float64 or int64."""
        return self.like(self.values.astype(dtype))

    def dot(self, other: Tables) -> float:
        """Return the inner product over all cells."""
        return float(np.dot(self.values.astype(np.float64, copy=False), self._same(other)))

    def norm(self, order: float = 2) -> float:
        """Return the vector norm over all cells: order 1, 2 or inf."""
        return float(np.linalg.norm(self.values.astype(np.float64, copy=False), ord=order))

    def sums(self) -> FloatArray:
        """Return the sum of each group's table, (groups,), float64."""
        return np.array([float(part.sum(dtype=np.float64)) for part in self.arrays()])

    def repeat(self, per_group: Sequence[float] | FloatArray) -> FloatArray:
        """Return one number per group, repeated over the group's cells: (cells,), float64."""
        return np.repeat(np.asarray(per_group, dtype=np.float64), self.structure.sizes)

    def embed(self, into: Structure) -> Tables:
        """Return log-potentials of the same distribution over a wider structure.

        Each table is added to the smallest clique that contains its own, a tied group's to one for each of its
        members. Raises StructureError if `into` has tied groups (unless it is this structure), and where none of its
        cliques contains one of this structure.

        >>> from dpgm_core.domain.domain import Domain
        >>> domain = Domain.from_sizes({"a": 2, "b": 2})
        >>> one = Tables(Structure(domain, [("a",)]), np.array([1.0, 2.0]))
        >>> one.embed(Structure(domain, [("a", "b")]))["a", "b"].tolist()
        [[1.0, 1.0], [2.0, 2.0]]
        """
        if into == self.structure:
            return self
        if max(into.multiplicities, default=1) > 1:
            raise StructureError("log-potentials cannot be embedded into tied groups; use structure.untied()")
        values = np.zeros(into.cells)
        for number, group in enumerate(self.structure.groups):
            part = self.group(number).astype(np.float64, copy=False)
            for clique in group:
                host = into.covering(clique)
                if host is None:
                    raise StructureError(f"no clique of the larger structure contains {clique!r}")
                target = into.find(host)[0]
                block = values[into.slices[target]].reshape(into.shapes[target])
                block += aligned(part, clique, host)
        return Tables(into, values)

    def __add__(self, other: Tables) -> Tables:
        return Tables._trusted(self.structure, self.values + self._same(other))

    def __sub__(self, other: Tables) -> Tables:
        return Tables._trusted(self.structure, self.values - self._same(other))

    def __mul__(self, factor: float) -> Tables:
        return self.like(self.values * factor)

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> Tables:
        return self.like(self.values / divisor)

    def __neg__(self) -> Tables:
        return Tables._trusted(self.structure, -self.values)

    def _same(self, other: Tables) -> Array:
        if not isinstance(other, Tables):
            raise TypeError(f"Tables go with Tables, not with {type(other).__name__}")
        if other.structure is not self.structure and other.structure != self.structure:
            raise StructureError(f"tables over {other.structure} do not fit tables over {self.structure}")
        return other.values

    def __reduce__(self) -> tuple[Any, ...]:
        return Tables, (self.structure, self.values)

    def __repr__(self) -> str:
        return f"Tables({len(self.structure.groups)} tables, {self.values.size} cells, {self.values.dtype})"


def margin_of(table: Array, has: Sequence[str], names: Sequence[str]) -> Array:
    """Return the table of `names`, its axes in their order, summed from one whose last axes are `has`.

    A view where nothing is summed.

    >>> margin_of(np.array([[1, 2], [3, 4]]), "ab", "b").tolist(), margin_of(np.array([[1, 2]]), "ab", "ba").tolist()
    ([4, 6], [[1], [2]])
    """
    first = table.ndim - len(has)
    others = tuple(first + at for at, name in enumerate(has) if name not in names)
    axes = [name for name in has if name in names]
    table = table.sum(axis=others) if others else table
    return np.asarray(table.transpose([*range(first), *(first + axes.index(name) for name in names)]))


def _numbers(buffer: Array) -> Array:
    """Other number types as int64 where each of their values fits it, else as float64."""
    if buffer.dtype.kind not in "iufb":
        raise StructureError(f"tables must hold numbers, got {buffer.dtype}")
    if buffer.dtype == np.float64 or buffer.dtype == np.int64:
        return buffer
    return buffer.astype(np.int64 if buffer.dtype.kind in "iu" and buffer.dtype.itemsize < 8 else np.float64)

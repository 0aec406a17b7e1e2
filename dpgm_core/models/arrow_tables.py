"""Arrow tables of probabilities with their labels, and of records as labels."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpgm_core._util.arrays import Array, FloatArray
from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import StructureError
from dpgm_core.structure.graphs import Clique

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["probability_table", "record_table"]


def probability_table(
    domain: Domain, names: Clique, columns: Mapping[str, FloatArray], stamp: Mapping[str, Any], *, standing: str
) -> pa.Table:
    """One row per combination of labels, the last attribute's fastest: a column of labels each, then the numbers.

    columns: arrays with one axis per name. standing: of the answer, a column of its own, last. stamp: goes into the
    schema's metadata as JSON, under the key `dpgm`. Raises StructureError where an attribute has the name of one of
    these columns.
    """
    import pyarrow as pa

    taken = next((name for name in names if name in {*columns, "standing"}), None)
    if taken is not None:
        raise StructureError(f"a table cannot have two columns {taken!r}; rename the attribute, or ask for arrays")
    shape = domain.shape(names)
    arrays = []
    for at, name in enumerate(names):
        codes = np.repeat(np.arange(shape[at]), math.prod(shape[at + 1 :]))
        labels = pa.array(domain[name].labels, pa.string())
        arrays.append(labels.take(pa.array(np.tile(codes, math.prod(shape[:at])))))
    arrays += [pa.array(column.reshape(-1)) for column in columns.values()]
    arrays.append(pa.array([standing] * math.prod(shape), pa.string()))
    return pa.table(arrays, names=[*names, *columns, "standing"], metadata={"dpgm": json.dumps(stamp)})


def record_table(columns: Sequence[tuple[Attribute, Array]], stamp: Mapping[str, Any]) -> pa.Table:
    """Records as labels, a column per attribute from its codes. stamp: as in `probability_table`.

    >>> domain = Domain.from_dict({"sex": {"labels": ["F", "M"], "unknown": "F"}})
    >>> record_table([(domain["sex"], np.array([1, 0]))], {}).to_pydict()
    {'sex': ['M', 'F']}
    """
    import pyarrow as pa

    arrays = [pa.array(attribute.labels, pa.string()).take(pa.array(codes)) for attribute, codes in columns]
    return pa.table(arrays, names=[one.name for one, _ in columns], metadata={"dpgm": json.dumps(stamp)})

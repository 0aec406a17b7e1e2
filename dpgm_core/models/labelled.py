"""Numbers with their labels beside them, and records as labels: Arrow tables."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dpgm_core.arrays import Codes, FloatArray
from dpgm_core.domain import Domain
from dpgm_core.errors import StructureError
from dpgm_core.structure import Clique

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["labelled", "records"]


def labelled(domain: Domain, names: Clique, columns: Mapping[str, FloatArray], stamp: Mapping[str, Any]) -> pa.Table:
    """One row per combination of labels, the last attribute's fastest: a column of labels each, then the numbers.

    columns: arrays with one axis per name. stamp: goes into the schema's metadata as JSON, under the key `dpgm`. Raises
    StructureError where an attribute has the name of a column of numbers.

    >>> domain = Domain.from_dict({"sex": ["F", "M"]})
    >>> labelled(domain, ("sex",), {"probability": np.array([0.4, 0.6])}, {}).to_pydict()
    {'sex': ['F', 'M'], 'probability': [0.4, 0.6]}
    """
    import pyarrow as pa

    taken = next((name for name in names if name in columns), None)
    if taken is not None:
        raise StructureError(f"a table cannot have two columns {taken!r}; rename the attribute, or ask for arrays")
    shape = domain.shape(names)
    arrays = []
    for at, name in enumerate(names):
        codes = np.repeat(np.arange(shape[at]), math.prod(shape[at + 1 :]))
        labels = pa.array(domain[name].labels, pa.string())
        arrays.append(labels.take(pa.array(np.tile(codes, math.prod(shape[:at])))))
    arrays += [pa.array(column.reshape(-1)) for column in columns.values()]
    return pa.table(arrays, names=[*names, *columns], metadata={"dpgm": json.dumps(stamp)})


def records(domain: Domain, codes: Codes, stamp: Mapping[str, Any]) -> pa.Table:
    """Records as labels, a column per attribute of the domain. stamp: as in `labelled`.

    >>> domain = Domain.from_dict({"sex": ["F", "M"]})
    >>> records(domain, [np.array([1, 0])], {}).to_pydict()
    {'sex': ['M', 'F']}
    """
    import pyarrow as pa

    columns = [
        pa.array(attribute.labels, pa.string()).take(pa.array(column))
        for attribute, column in zip(domain, codes, strict=True)
    ]
    return pa.table(columns, names=list(domain.names), metadata={"dpgm": json.dumps(stamp)})

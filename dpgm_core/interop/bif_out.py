"""Writing of Bayesian networks in the BIF format of the bnlearn repository."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from dpgm_core.arrays import FloatArray
from dpgm_core.errors import DataError, StructureError, did_you_mean
from dpgm_core.files import BIF_FILE, atomic_write
from dpgm_core.interop.bif import BARE, MAX_BYTES, ROUNDING
from dpgm_core.printable import printable
from dpgm_core.structure.dag import Dag

__all__ = ["write_bif"]

# In a property's text: readers end it at a quote or a semicolon and count braces, wherever they stand,
_SAFE = str.maketrans({'"': "'", ";": ",", "{": "(", "}": ")"})
# and look for comments before they look for quotes.
_COMMENT = re.compile(r"/(?=[/*])")


def write_bif(
    path: str | Path,
    dag: Dag,
    cpds: Mapping[str, FloatArray],
    *,
    name: str = "unknown",
    properties: Mapping[str, str] | None = None,
) -> None:
    """Write a network; `read_network` gives back the same names, labels, parents and doubles.

    cpds: variable -> P(variable | parents), axes the variable, then its parents, as `cpds` and `read_network` make
    them; rows sum to 1 within 0.02, which is what readers take, and are not renormalised. Each number has the digits
    that identify its double. name: of the network. properties: what else the file says of the network, key -> text;
    quotes, semicolons, braces and comment signs in a text are replaced. Of a domain the file holds names and labels,
    but neither bins nor where unknown values go. Older networks are replaced, other files are not.

    Raises DataError for a name or a label that the format cannot hold (blanks, quotes, brackets, commas, semicolons,
    bars, a comment sign, nothing), StructureError for tables that are none of the graph's, ModelFileError when the file
    cannot be written.

    >>> import tempfile
    >>> from dpgm_core.domain import Domain
    >>> answers = {"labels": ["no", "yes"], "unknown": "no"}
    >>> dag = Dag(Domain.from_dict({"rain": answers, "wet": answers}), {"wet": ["rain"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tables = {"rain": np.array([0.7, 0.3]), "wet": np.array([[0.9, 0.2], [0.1, 0.8]])}
    ...     write_bif(Path(folder) / "wet.bif", dag, tables)
    ...     print((Path(folder) / "wet.bif").read_text().splitlines()[-4])
    probability ( wet | rain ) {
    """
    try:
        for one in dag.domain:
            _check_word("the variable", one.name)
            for label in one.labels:
                _check_word(f"the label of {one.name!r},", label)
        _check_word("the network's name", name)
        for key in properties or {}:
            _check_word("a property's key", key)
        tables = _checked(dag, cpds)
    except (DataError, StructureError) as error:
        raise type(error)(f"write {path}: {error}") from None
    lines = [f"network {name} {{"]
    lines += [f'  property {key} "{_safe(text)}";' for key, text in (properties or {}).items()]
    lines.append("}")
    for one in dag.domain:
        lines.append(f"variable {one.name} {{")
        lines.append(f"  type discrete [ {one.size} ] {{ {', '.join(one.labels)} }};")
        lines.append("}")
    for child, above in dag.parents.items():
        lines.append(f"probability ( {child}{' | ' if above else ''}{', '.join(above)} ) {{")
        lines += _rows(dag, child, tables[child])
        lines.append("}")
    content = "\n".join([*lines, ""]).encode()
    if len(content) > MAX_BYTES:
        raise DataError(f"write {path}: the network takes {len(content):,} bytes; at most {MAX_BYTES:,} are read back")
    atomic_write(path, content, BIF_FILE)


def _check_word(what: str, word: object) -> None:
    if not isinstance(word, str) or not BARE.fullmatch(word) or _COMMENT.search(word) or not _is_whole(word):
        raise DataError(
            f"{what} {word!r:.80} cannot stand in a BIF file, whose words have no blanks, quotes, brackets, commas, "
            "semicolons, bars or comment signs, and at least one letter; rename it"
        )


def _is_whole(word: str) -> bool:
    """No halves of characters, which no file holds."""
    return word.encode(errors="replace").decode() == word


def _checked(dag: Dag, cpds: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """The tables as float64. Looser in sum than a model's: what was read from a published file can be written."""
    for name in cpds:
        if name not in dag.parents:
            raise StructureError(
                f"there is a table for {name!r}, which is no variable{did_you_mean(name, dag.parents)}"
            )
    tables = {}
    for child, *above in dag.families:
        shape = dag.domain.shape([child, *above])
        table = np.asarray(cpds[child]) if child in cpds else None
        if table is None or table.dtype.kind not in "iuf" or table.shape != shape:
            got = "nothing" if table is None else f"{table.dtype} of shape {table.shape}"
            raise StructureError(
                f"the table of {child!r} must hold numbers of shape {shape}, axes {' x '.join([child, *above])}; got "
                f"{got}"
            )
        tables[child] = table = table.astype(np.float64)
        if not ((table >= 0) & (table < np.inf)).all():
            raise StructureError(f"the table of {child!r} holds negative, NaN or infinite values")
        for row in np.moveaxis(table, 0, -1).reshape(-1, shape[0]).tolist():
            if abs(math.fsum(row) - 1.0) > ROUNDING:
                raise StructureError(
                    f"a row of the table of {child!r} sums to {math.fsum(row):g}, not to 1; its first axis is the "
                    "child's"
                )
    return tables


def _rows(dag: Dag, child: str, table: FloatArray) -> Iterator[str]:
    """One line for each state of the parents, the last parent's fastest."""
    labels = [dag.domain[parent].labels for parent in dag.parents[child]]
    numbers = np.moveaxis(table, 0, -1).reshape(-1, len(table)).tolist()
    for states, row in zip(itertools.product(*labels), numbers, strict=True):
        head = f"({', '.join(states)})" if states else "table"
        yield f"  {head} {', '.join(map(repr, row))};"


def _safe(text: object) -> str:
    """A property's text in one line that no reader stumbles over."""
    return _COMMENT.sub("/ ", printable(" ".join(str(text).split())).translate(_SAFE))

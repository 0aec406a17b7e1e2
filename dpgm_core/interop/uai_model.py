"""Reading of the UAI competition's model files.

A `.uai` file holds `MARKOV` or `BAYES`, the sizes of the variables, the scopes of the factors and their tables, last
variable fastest. It knows no names, so a sidecar `X.uai.names` (JSON) may carry them: `{"domain": {...}}` in the
format of a domain file suffices; `write_uai` adds the structure and the exact log-potentials, bound to the model file
by a digest. With the sidecar, what is read equals what was written bit for bit. Without it the tables read are the
doubles in the file, which are exp of the log-potentials rounded once.
"""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

import numpy as np
from attrs import frozen

from dpgm_core.arrays import FloatArray
from dpgm_core.attribute import parse_number
from dpgm_core.domain import Domain
from dpgm_core.errors import DataError, DpgmError
from dpgm_core.files import bounded_bytes
from dpgm_core.structure import Clique, Structure
from dpgm_core.tables import Tables

__all__ = ["UaiModel", "names_path", "parse_uai", "read_bounded", "read_uai"]

# Bytes of a model file that are read at all; its numbers take about ten times as much while they are parsed.
MAX_BYTES = 2**28
# Labels of all variables together, beyond the numbers in the file: a header may declare sizes that no table backs.
MAX_LABELS = 10**5


@frozen(kw_only=True)
class UaiModel:
    """A model file: kind is "MARKOV" or "BAYES", potentials are nats, -inf for zeros."""

    kind: str
    structure: Structure
    potentials: Tables


def names_path(path: str | Path) -> Path:
    """Where the names of a model file are: beside it.

    >>> names_path("x.uai").name
    'x.uai.names'
    """
    return Path(f"{path}.names")


def read_uai(path: str | Path, *, names: bool = True) -> UaiModel:
    """Read a model file, and its names sidecar if there is one and `names` is true.

    Factors on the same variables, in any order, are multiplied into one; a factor of no variables becomes the empty
    clique. Variables are x0, x1, ... without a sidecar. Raises DataError, naming the file, for anything malformed; a
    header cannot make it allocate more than the file itself backs.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "m.uai"
    ...     _ = path.write_text("MARKOV 2 2 2 1 2 0 1 4 1 0 0 1")
    ...     read_uai(path).potentials["x0", "x1"].tolist()
    [[0.0, -inf], [-inf, 0.0]]
    """
    raw = read_bounded(path)
    model = parse_uai(raw.decode("ascii", "replace"), where=str(path))
    sidecar = names_path(path)
    if not names or not sidecar.exists():
        return model
    return _with_names(model, sidecar, hashlib.sha256(raw).hexdigest())


def parse_uai(text: str, *, where: str = "the model") -> UaiModel:
    """Read a model from text; `where` names it in errors.

    >>> parse_uai("BAYES 1 3 1 1 0 3 .2 .3 .5").structure.cliques
    (('x0',),)
    """
    head, *words = text.split() or [""]
    kind = head.upper()
    if kind not in ("MARKOV", "BAYES"):
        raise DataError(f"{where} must begin with MARKOV or BAYES, got {head[:40]!r}")
    numbers = _Numbers(where, words)
    sizes = [numbers.whole("the size of a variable", 1) for _ in range(numbers.count("the number of variables"))]
    most = MAX_LABELS + len(words)
    if sum(sizes) > most:
        raise DataError(
            f"{where}: {len(sizes)} variables of {sum(sizes):,} states in all; at most {most:,} fit a file of "
            f"{len(words):,} numbers"
        )
    if not sizes:
        raise DataError(f"{where} has no variables; a model needs at least one")
    domain = Domain.from_sizes({f"x{i}": size for i, size in enumerate(sizes)})
    scopes: list[tuple[int, ...]] = []
    for number in range(numbers.count("the number of factors")):
        order = numbers.count(f"the number of variables of factor {number}")
        scope = tuple(numbers.whole(f"a variable of factor {number}", 0) for _ in range(order))
        if any(i >= len(sizes) for i in scope):
            raise DataError(f"{where}: factor {number} names variable {max(scope)}, but there are {len(sizes)}")
        if len(set(scope)) < len(scope):
            raise DataError(f"{where}: factor {number} names a variable twice")
        scopes.append(scope)

    tables: dict[frozenset[int], tuple[Clique, FloatArray]] = {}
    for number, scope in enumerate(scopes):
        shape = tuple(sizes[i] for i in scope)
        entries = numbers.count(f"the number of entries of factor {number}")
        if entries != math.prod(shape):
            raise DataError(f"{where}: factor {number} of shape {shape} has {entries} entries, not {math.prod(shape)}")
        cells = numbers.take(entries)
        if not (cells >= 0).all() or not (cells < np.inf).all():
            raise DataError(f"{where}: factor {number} has an entry that is negative or not finite")
        with np.errstate(divide="ignore"):
            table = np.log(cells).reshape(shape)
        names = tuple(f"x{i}" for i in scope)
        first = tables.get(frozenset(scope))
        if first is not None:
            names, before = first
            table = before + table.transpose([scope.index(int(name[1:])) for name in names])
        tables[frozenset(scope)] = (names, table)
    numbers.end()
    if not tables:
        tables[frozenset()] = ((), np.zeros(()))
    structure = Structure(domain, [names for names, _ in tables.values()])
    values = np.concatenate([table.reshape(-1) for _, table in tables.values()])
    return UaiModel(kind=kind, structure=structure, potentials=Tables(structure, values))


class _Numbers:
    """The numbers of a file, taken one after the other; every count is checked against what is left."""

    def __init__(self, where: str, words: list[str]) -> None:
        self.where = where
        try:
            if any("_" in word for word in words):  # Python's float() takes underscores, no data file means them
                raise ValueError
            self.values = np.fromiter(map(float, words), np.float64, count=len(words))
        except ValueError:
            wrong = next(word for word in words if parse_number(word.encode()) is None)
            raise DataError(f"{where}: after the first word all must be numbers, got {wrong[:40]!r}") from None
        self.next = 0

    def take(self, count: int) -> FloatArray:
        if count > self.values.size - self.next:
            raise DataError(
                f"{self.where} ends too soon: {count:,} more numbers are announced, {self.values.size - self.next:,} "
                "are left"
            )
        self.next += count
        return self.values[self.next - count : self.next]

    def whole(self, what: str, least: int) -> int:
        value = float(self.take(1)[0])
        if not least <= value < 2**53 or value != int(value):
            raise DataError(f"{self.where}: {what} must be a whole number of at least {least}, got {value:g}")
        return int(value)

    def count(self, what: str) -> int:
        value = self.whole(what, 0)
        if value > self.values.size - self.next:
            left = self.values.size - self.next
            raise DataError(f"{self.where}: {what} is {value:,}, but only {left:,} numbers are left in the file")
        return value

    def end(self) -> None:
        if self.next < self.values.size:
            left = self.values.size - self.next
            raise DataError(f"{self.where}: {left:,} numbers are left after the last table; check the counts")


def _with_names(model: UaiModel, sidecar: Path, digest: str) -> UaiModel:
    """The model with the sidecar's names, and its structure and exact potentials if it has them."""
    try:
        plain = json.loads(read_bounded(sidecar))
        domain = Domain.from_dict(plain["domain"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(f"{sidecar} is no names file ({error!r}); delete it to read plain x0, x1, ...") from None
    except DpgmError as error:
        raise DataError(f"{sidecar}: {error}") from None
    sizes = list(model.structure.domain.sizes.values())
    if list(domain.sizes.values()) != sizes:
        raise DataError(f"{sidecar} names variables of other sizes than the model's; delete it or write both again")
    if "log_potentials" not in plain:
        names = dict(zip(model.structure.domain.names, domain.names, strict=True))
        cliques = [tuple(names[name] for name in clique) for clique in model.structure.cliques]
        structure = Structure(domain, cliques)
        return UaiModel(kind=model.kind, structure=structure, potentials=Tables(structure, model.potentials.values))
    if plain.get("sha256") != digest:
        raise DataError(f"{sidecar} belongs to another model file (digests differ); delete it or write both again")
    try:
        structure = Structure(domain, [], tied=[[tuple(clique) for clique in group] for group in plain["groups"]])
        values = np.array([-math.inf if value is None else value for value in plain["log_potentials"]], dtype=float)
        return UaiModel(kind=model.kind, structure=structure, potentials=Tables(structure, values))
    except (DpgmError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{sidecar} is damaged ({error}); delete it to read plain x0, x1, ...") from None


def read_bounded(path: str | Path, limit: int = MAX_BYTES) -> bytes:
    """The bytes of a file; DataError when it cannot be read or is larger than `limit`."""
    path = Path(path)
    try:
        return bounded_bytes(path, limit)
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None

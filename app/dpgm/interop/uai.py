"""Models as UAI files."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from attrs import frozen

from dpgm_core._util.arrays import FloatArray
from dpgm_core._util.files import NAMES_FILE, UAI_FILE, atomic_write, bounded_bytes, check_writable, plain
from dpgm_core.domain.domain import Domain
from dpgm_core.domain.values import parse_number
from dpgm_core.errors import DataError, DpgmError, StructureError
from dpgm_core.structure.dag import Dag
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

__all__ = ["UaiModel", "names_path", "parse_uai", "read_bounded", "read_uai", "write_uai"]


# --- Reading ---
#
# A `.uai` file holds `MARKOV` or `BAYES`, the sizes of the variables, the scopes of the factors and their tables, last
# variable fastest. It knows no names, so a sidecar `X.uai.names` (JSON) may carry them: `{"domain": {...}}` in the
# format of a domain file suffices; `write_uai` adds the structure and the exact log-potentials, bound to the model file
# by a digest. With the sidecar, what is read equals what was written bit for bit. Without it the tables read are the
# doubles in the file, which are exp of the log-potentials rounded once.

# Bytes of a model file that are read at all; its numbers take about ten times as much while they are parsed.
MAX_BYTES = 2**28
# Labels of all variables together, beyond the numbers in the file: a header may declare sizes that no table backs.
MAX_LABELS = 10**5


@frozen(kw_only=True)
class UaiModel:
    """Content of a UAI model file.

    Attributes
    ----------
    kind
        "MARKOV" or "BAYES".
    potentials
        Log-potentials, nats; -inf for zeros.
    """

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
    """Read a UAI model file, and its sidecar of names if there is one and `names` is true.

    Raises
    ------
    DataError
        Naming the file, for anything malformed. Memory is allocated in proportion to the file, whatever its header
        states.

    Notes
    -----
    Factors on the same variables, in any order, are multiplied into one; a factor of no variables becomes the empty
    clique. Without a sidecar variables are x0, x1, ...

    Examples
    --------
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
        raise DataError(f"{sidecar} is not a file of names ({error!r}); delete it to read plain x0, x1, ...") from None
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


# --- Writing ---

# exp(700) and exp(-700) are ordinary doubles; a wider table is written as a product of several.
WIDEST = 700.0
#: How far a row of a network's tables may be from 1 in sum: published networks are rounded.
ROUNDING = 1e-6


def write_uai(
    path: str | Path,
    structure: Structure,
    potentials: Tables,
    *,
    kind: Literal["MARKOV", "BAYES"] = "MARKOV",
    stamp: Mapping[str, Any] | None = None,
) -> None:
    """Write a UAI model file and its sidecar of names; `read_uai` reads back the same structure and potentials.

    Parameters
    ----------
    path : path
        An older model is replaced, another file is not.
    structure : Structure
    potentials : Tables
        Log-potentials over `structure`, nats. The file has their exponentials, each number with the digits that
        identify its double.
    kind : {"MARKOV", "BAYES"}
        "MARKOV" takes any potentials. A table with finite potentials beyond +-700 is written as a product of n equal
        factors exp(potentials / n) on the same variables, so that nothing overflows and no possible record becomes
        impossible. Tied groups are written clique by clique, and constraints of the domain as factors of 0 and 1.
        "BAYES" takes structures of families (`Dag.of`) whose potentials are log P(child | parents). It writes one
        factor for each attribute, in the domain's order, parents first and the child last, as the format requires.
    stamp : mapping, optional
        Further facts for the sidecar, plain values, such as `Model.stamp()`.

    Raises
    ------
    DataError
        For NaN, +inf, finite potentials beyond +-700,000, and probabilities of a network that no double can hold.
    StructureError
        For "BAYES" of another structure than a network.
    ModelFileError
        If the files cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from dpgm_core.domain.domain import Domain
    >>> from dpgm.interop.uai import read_uai
    >>> structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_uai(Path(folder) / "m.uai", structure, Tables(structure, np.array([0.1, -1e3])))
    ...     read_uai(Path(folder) / "m.uai").potentials["a"].tolist()
    [0.1, -1000.0]
    """
    if kind not in ("MARKOV", "BAYES"):
        raise DataError(f"write {path}: the kinds are MARKOV and BAYES, got {kind!r:.80}")
    if potentials.structure != structure:
        raise DataError(f"write {path}: the potentials are over {potentials.structure}, not over {structure}")
    potentials = potentials.astype(np.float64)
    values = potentials.values
    if not (values < np.inf).all():
        raise DataError(f"write {path}: the potentials hold NaN or +inf; they must be finite or -inf")
    try:
        factors = _network(potentials) if kind == "BAYES" else _factors(potentials)
    except (DataError, StructureError) as error:
        raise type(error)(f"write {path}: {error}") from None
    place = {name: str(i) for i, name in enumerate(structure.domain.names)}
    scopes = [" ".join([str(len(clique)), *(place[name] for name in clique)]) for clique, _ in factors]
    tables = [f"{table.size}\n" + " ".join(map(repr, table.reshape(-1).tolist())) for _, table in factors]
    sizes = " ".join(str(size) for size in structure.domain.sizes.values())
    head = [kind, str(len(structure.domain)), sizes, str(len(scopes))]
    content = "\n".join([*head, *scopes, "", *tables, ""]).encode()
    facts = {
        "domain": structure.domain.to_dict(),
        "groups": [[list(clique) for clique in group] for group in structure.groups],
        "log_potentials": [value if value > -math.inf else None for value in values.tolist()],
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    if stamp is not None:
        facts["stamp"] = plain(stamp)
    # The names and the stamp come first: whatever ends this halfway, no model is without its own, nor with another's.
    check_writable(path, UAI_FILE)
    atomic_write(names_path(path), json.dumps(facts, allow_nan=False).encode(), NAMES_FILE)
    atomic_write(path, content, UAI_FILE)


def _factors(potentials: Tables) -> list[tuple[Clique, FloatArray]]:
    """Each clique with its table, one that is too wide several times over with a root of it."""
    factors = []
    for group, table in zip(potentials.structure.groups, potentials.arrays(), strict=True):
        widest = float(np.abs(table[table > -np.inf]).max(initial=0.0))
        if widest > 1000 * WIDEST:
            raise DataError(f"a potential of {widest:g} nats cannot be written as numbers; at most 700,000")
        times = max(1, math.ceil(widest / WIDEST))
        root = np.exp(table / times)
        factors += [(clique, root) for clique in group for _ in range(times)]
    domain = potentials.structure.domain
    factors += [(one.columns, np.where(one.mask, 0.0, 1.0)) for one in domain.rules]
    return factors


def _network(potentials: Tables) -> list[tuple[Clique, FloatArray]]:
    """Each attribute's parents and itself, with its conditional table, whose last axis is its own."""
    factors = []
    for child, *above in Dag.of(potentials.structure).families:
        logs = potentials[child, *above]
        with np.errstate(over="ignore"):
            table = np.exp(logs)
        worst = float(np.abs(table.sum(axis=0) - 1).max())
        if not worst <= ROUNDING:
            raise StructureError(
                f"the table of {child!r} is not a conditional probability: the sum of a row differs "
                f"from 1 by {worst:.3g}; kind 'MARKOV' takes any potentials"
            )
        if (lost := logs[(table == 0) & (logs > -np.inf)]).size:
            raise DataError(
                f"a probability of {child!r}, exp({lost.max():g}), is smaller than any double, and 0 would make "
                "records impossible; use kind 'MARKOV'"
            )
        factors.append(((*above, child), np.moveaxis(table, 0, -1)))
    Dag.of(potentials.structure).check_constraints({names[-1]: np.moveaxis(table, -1, 0) for names, table in factors})
    return factors

"""Reading of Bayesian networks in the BIF format of the bnlearn repository."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dpgm_core.arrays import FloatArray
from dpgm_core.attribute import Attribute, parse_number
from dpgm_core.domain import Domain
from dpgm_core.errors import DataError, DpgmError
from dpgm_core.files import bounded_bytes
from dpgm_core.structure import Clique, Structure
from dpgm_core.structure.dag import Dag
from dpgm_core.structure.directed import cycle_text, directed_cycle
from dpgm_core.tables import Tables

__all__ = ["BARE", "ROUNDING", "parse_bif", "read_bif", "read_network"]

MAX_BYTES = 2**26
# Cells of all tables, beyond the words in the file: a few words can declare parents whose table no memory holds.
MAX_CELLS = 10**6
#: How far the probabilities of one row may be from 1 in sum: published networks are rounded to two digits.
ROUNDING = 0.02
#: A word that stands without quotes. No word is reserved: where a name or a label stands, none is looked for.
BARE = re.compile(r'[^\s{}()\[\],;|"]+')

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_TOKEN = re.compile(r'"[^"]*"|[{}()\[\],;|]|' + BARE.pattern)


def read_network(path: str | Path) -> tuple[Dag, dict[str, FloatArray]]:
    """Read a network: its graph, and variable -> P(variable | parents), axes the variable, then its parents.

    The numbers are the doubles of the file, never renormalised; parents stand in the file's order. Labels are read as
    `read_bif` reads them: in its domain a value that is none of them counts as the first, so for records make one that
    says where such values go, as `domain = "asia.bif"` in a spec does. Raises DataError, naming the file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "coin.bif"
    ...     _ = path.write_text("variable c { type discrete [2] {h, t}; } probability ( c ) { table 0.25, 0.75; }")
    ...     dag, cpds = read_network(path)
    >>> dag.parents, cpds["c"].tolist()
    ({'c': ()}, [0.25, 0.75])
    """
    domain, tables = _parsed(_text(path), str(path))
    try:
        dag = Dag(domain, {child: clique[1:] for child, (clique, _) in tables.items()})
    except DpgmError as error:
        raise DataError(f"{path}: {error}") from None
    return dag, {name: tables[name][1] for name in domain.names}


def read_bif(path: str | Path) -> tuple[Structure, Tables]:
    """Read a network: one clique (child, *parents) per table, potentials log p(child | parents), -inf for zeros.

    Labels may hold any character but blanks and brackets (`Asy/Patch`, `<5`). Unknown and null values go to an
    attribute's first label. Tables are taken as they are, not renormalised. Raises DataError, naming the file, and
    spells variables out that are their own ancestors, from parent to child.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "coin.bif"
    ...     _ = path.write_text("variable c { type discrete [2] {h, t}; } probability ( c ) { table 0.25, 0.75; }")
    ...     structure, potentials = read_bif(path)
    >>> structure.domain["c"].labels, np.exp(potentials["c"]).round(6).tolist()
    (('h', 't'), [0.25, 0.75])
    """
    return parse_bif(_text(path), where=str(path))


def parse_bif(text: str, *, where: str = "the network") -> tuple[Structure, Tables]:
    """Read a network from text; `where` names it in errors.

    >>> parse_bif("variable c { type discrete [1] {x}; } probability (c) { table 1; }")[0].cliques
    (('c',),)
    """
    domain, tables = _parsed(text, where)
    structure = Structure(domain, [clique for clique, _ in tables.values()])
    with np.errstate(divide="ignore"):
        return structure, Tables(structure, np.log(np.concatenate([t.reshape(-1) for _, t in tables.values()])))


def _text(path: str | Path) -> str:
    path = Path(path)
    try:
        return bounded_bytes(path, MAX_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError) as error:  # ValueError: too large, or a NUL in the path
        raise DataError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None


def _parsed(text: str, where: str) -> tuple[Domain, dict[str, tuple[Clique, FloatArray]]]:
    """The variables, and child -> its family and its table, in the file's order; checked to be a network."""
    words = _Words(where, _TOKEN.findall(_COMMENT.sub(" ", text)))
    attributes: list[Attribute] = []
    tables: dict[str, tuple[Clique, FloatArray]] = {}
    domain: Domain | None = None
    while words.left():
        word = words.take("network, variable or probability")
        if word == "network":
            words.skip_block()
        elif word == "variable":
            attributes.append(_variable(words))
        elif word == "probability":
            # All variables stand before the first table.
            domain = domain or _build(where, attributes)
            clique, table = _probability(words, domain)
            if clique[0] in tables:
                raise DataError(f"{where}: variable {clique[0]!r} has two tables")
            tables[clique[0]] = (clique, table)
        else:
            raise DataError(f"{where}: network, variable or probability is expected, got {word[:40]!r}")
    domain = _build(where, attributes)
    without = [name for name in domain.names if name not in tables]
    if without:
        raise DataError(f"{where}: variable {without[0]!r:.80} has no table")
    cycle = directed_cycle({child: clique[1:] for child, (clique, _) in tables.items()})
    if cycle:
        raise _round(where, cycle)
    return domain, tables


def _round(where: str, cycle: Sequence[str]) -> DataError:
    return DataError(
        f"{where}: variables are their own ancestors: {cycle_text(cycle)}; a Bayesian network has no directed cycle, "
        "take a parent out"
    )


class _Words:
    """The words of a file, taken one after the other."""

    def __init__(self, where: str, words: list[str]) -> None:
        self.where, self.words, self.next = where, words, 0
        self.cells = MAX_CELLS + len(words)  # that its tables may still have

    def left(self) -> bool:
        return self.next < len(self.words)

    def take(self, what: str) -> str:
        if not self.left():
            raise DataError(f"{self.where} ends where {what} is expected")
        self.next += 1
        return self.words[self.next - 1].strip('"')

    def expect(self, *wanted: str) -> str:
        word = self.take(" or ".join(map(repr, wanted)))
        if word not in wanted:
            raise DataError(f"{self.where}: {' or '.join(map(repr, wanted))} is expected, got {word[:40]!r}")
        return word

    def until(self, end: str) -> list[str]:
        """The words before `end`, commas left out."""
        words = []
        while (word := self.take(repr(end))) != end:
            if word != ",":
                words.append(word)
        return words

    def skip_block(self) -> None:
        self.until("{")
        depth = 1
        while depth:
            depth += {"{": 1, "}": -1}.get(self.take("'}'"), 0)

    def numbers(self) -> list[float]:
        texts = self.until(";")
        values = [parse_number(text.encode()) for text in texts]
        for text, value in zip(texts, values, strict=True):
            if value is None or not 0 <= value < math.inf:
                raise DataError(f"{self.where}: a probability is expected, got {text[:40]!r}")
        return [value for value in values if value is not None]


def _variable(words: _Words) -> Attribute:
    name = words.take("a variable's name")
    words.expect("{")
    labels: list[str] = []
    while (word := words.expect("type", "property", "}")) != "}":
        if word == "property":
            words.until(";")
            continue
        words.expect("discrete")
        words.expect("[")
        size = words.until("]")
        words.expect("{")
        labels = words.until("}")
        words.expect(";")
        if size != [str(len(labels))]:
            raise DataError(f"{words.where}: variable {name!r} has {len(labels)} labels, but [{' '.join(size)[:40]}]")
    if not labels:
        raise DataError(f"{words.where}: variable {name!r} has no type")
    try:
        return Attribute.of_labels(name, labels, unknown=labels[0])
    except DpgmError as error:
        raise DataError(f"{words.where}: {error}") from None


def _build(where: str, attributes: list[Attribute]) -> Domain:
    try:
        return Domain(attributes)
    except DpgmError as error:
        raise DataError(f"{where}: {error}") from None


def _probability(words: _Words, domain: Domain) -> tuple[Clique, FloatArray]:
    words.expect("(")
    names = [name for name in words.until(")") if name != "|"]
    for name in names:
        if name not in domain:
            raise DataError(f"{words.where}: a table names {name[:40]!r}, which is no variable declared before it")
    if names and names[0] in names[1:]:
        raise _round(words.where, names[:1])
    if not names or len(set(names)) < len(names):
        raise DataError(f"{words.where}: a table needs a variable and distinct parents, got {names!r}")
    child, *parents = names
    shape = domain.shape(names)
    if math.prod(shape) > words.cells:
        raise DataError(
            f"{words.where}: the table of {child!r} has {math.prod(shape):,} cells; a file of this size may have "
            f"{words.cells:,} more"
        )
    words.cells -= math.prod(shape)
    rows = np.full((*shape[1:], shape[0]), np.nan)  # the child last, one row per state of the parents
    default: list[float] | None = None
    words.expect("{")
    while (word := words.expect("table", "default", "(", "property", "}")) != "}":
        if word == "property":
            words.until(";")
            continue
        if word == "default":
            default = _row(words, child, shape[0])
            continue
        states = words.until(")") if word == "(" else []
        if len(states) != len(parents):
            raise DataError(
                f"{words.where}: a row of {child!r} names {len(states)} parent states, there are {len(parents)} parents"
            )
        try:
            codes = tuple(domain[parent].label_code(state) for parent, state in zip(parents, states, strict=True))
        except DpgmError as error:
            raise DataError(f"{words.where}: a row of {child!r}: {error}") from None
        if not np.isnan(rows[codes]).any():
            raise DataError(f"{words.where}: {child!r} has two rows for ({', '.join(states)})")
        rows[codes] = _row(words, child, shape[0])
    missing = np.isnan(rows[..., 0])
    if missing.any():
        if default is None:
            raise DataError(f"{words.where}: the table of {child!r} lacks {int(missing.sum())} rows")
        rows[missing] = default
    return tuple(names), np.ascontiguousarray(np.moveaxis(rows, -1, 0))


def _row(words: _Words, child: str, size: int) -> list[float]:
    row = words.numbers()
    if len(row) != size:
        raise DataError(f"{words.where}: a row of {child!r} needs {size} probabilities, got {len(row)}")
    if abs(math.fsum(row) - 1.0) > ROUNDING:
        raise DataError(f"{words.where}: a row of {child!r} sums to {math.fsum(row):g}, not to 1")
    return row

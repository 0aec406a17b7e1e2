"""Bayesian networks as BIF files."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from dpgm_core._util.arrays import FloatArray
from dpgm_core._util.files import BIF_FILE, atomic_write, bounded_bytes
from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.domain import Domain
from dpgm_core.domain.values import parse_number
from dpgm_core.errors import DataError, DomainError, DpgmError, StructureError, did_you_mean, printable
from dpgm_core.structure.builders import cycle_text, directed_cycle
from dpgm_core.structure.dag import Dag
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

__all__ = [
    "BARE",
    "ROUNDING",
    "UNKNOWN",
    "bif_domain",
    "bif_structure",
    "parse_bif",
    "read_bif",
    "read_network",
    "write_bif",
]


# --- Reading ---

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
    """Read a Bayesian network from a BIF file.

    Returns
    -------
    dag : Dag
        The graph, with parents in the file's order.
    cpds : dict
        Variable -> P(variable | parents), with the axes of the variable and then of its parents. The numbers are the
        doubles of the file, never renormalised.

    Raises
    ------
    DataError
        Naming the file.

    Notes
    -----
    Labels are read as by `read_bif`: in the domain of the result, a value that is none of the labels counts as the
    first one. For records use a domain that states where such values go, as `domain = "asia.bif"` in a spec does.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "coin.bif"
    ...     _ = path.write_text("variable c { type discrete [2] {h, t}; } probability ( c ) { table 0.25, 0.75; }")
    ...     dag, cpds = read_network(path)
    >>> dag.parents, cpds["c"].tolist()
    ({'c': ()}, [0.25, 0.75])
    """
    domain, tables = _parse(_text(path), str(path))
    try:
        dag = Dag(domain, {child: clique[1:] for child, (clique, _) in tables.items()})
    except DpgmError as error:
        raise DataError(f"{path}: {error}") from None
    return dag, {name: tables[name][1] for name in domain.names}


def read_bif(path: str | Path) -> tuple[Structure, Tables]:
    """Read a Bayesian network from a BIF file, as a structure with one clique (child, *parents) for each table.

    Returns
    -------
    structure : Structure
    potentials : Tables
        log p(child | parents), -inf for zeros. Tables are not renormalised.

    Raises
    ------
    DataError
        Naming the file. For a directed cycle it lists the variables from parent to child.

    Notes
    -----
    Labels may hold any character but blanks and brackets (`Asy/Patch`, `<5`). Unknown and null values go to an
    attribute's first label.

    Examples
    --------
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
    domain, tables = _parse(text, where)
    structure = Structure(domain, [clique for clique, _ in tables.values()])
    with np.errstate(divide="ignore"):
        return structure, Tables(structure, np.log(np.concatenate([t.reshape(-1) for _, t in tables.values()])))


def _text(path: str | Path) -> str:
    path = Path(path)
    try:
        return bounded_bytes(path, MAX_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError) as error:  # ValueError: too large, or a NUL in the path
        raise DataError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None


def _parse(text: str, where: str) -> tuple[Domain, dict[str, tuple[Clique, FloatArray]]]:
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
            domain = domain or _build_domain(where, attributes)
            clique, table = _probability(words, domain)
            if clique[0] in tables:
                raise DataError(f"{where}: variable {clique[0]!r} has two tables")
            tables[clique[0]] = (clique, table)
        else:
            raise DataError(f"{where}: network, variable or probability is expected, got {word[:40]!r}")
    domain = _build_domain(where, attributes)
    without = [name for name in domain.names if name not in tables]
    if without:
        raise DataError(f"{where}: variable {without[0]!r:.80} has no table")
    cycle = directed_cycle({child: clique[1:] for child, (clique, _) in tables.items()})
    if cycle:
        raise _cycle_error(where, cycle)
    return domain, tables


def _cycle_error(where: str, cycle: Sequence[str]) -> DataError:
    return DataError(
        f"{where}: variables are their own ancestors: {cycle_text(cycle)}; a Bayesian network has no directed cycle, "
        "so remove a parent"
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


def _build_domain(where: str, attributes: list[Attribute]) -> Domain:
    try:
        return Domain(attributes)
    except DpgmError as error:
        raise DataError(f"{where}: {error}") from None


def _probability(words: _Words, domain: Domain) -> tuple[Clique, FloatArray]:
    words.expect("(")
    names = [name for name in words.until(")") if name != "|"]
    for name in names:
        if name not in domain:
            raise DataError(f"{words.where}: a table names {name[:40]!r}, which is not a variable declared before it")
    if names and names[0] in names[1:]:
        raise _cycle_error(words.where, names[:1])
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


# --- Writing ---

# In a property's text: readers end it at a quote or a semicolon and count braces, wherever they stand,
_REPLACED_SIGNS = str.maketrans({'"': "'", ";": ",", "{": "(", "}": ")"})
# and look for comments before they look for quotes.
_COMMENT_SIGN = re.compile(r"/(?=[/*])")


def write_bif(
    path: str | Path,
    dag: Dag,
    cpds: Mapping[str, FloatArray],
    *,
    name: str = "unknown",
    properties: Mapping[str, str] | None = None,
) -> None:
    """Write a Bayesian network as a BIF file; `read_network` reads back the same names, labels, parents and doubles.

    Parameters
    ----------
    path : path
        An older network is replaced, another file is not.
    dag : Dag
        The graph. Of its domain the file holds names and labels, but neither bins nor where unknown values go.
    cpds : mapping
        Variable -> P(variable | parents), with the axes of the variable and then of its parents, as `cpds` and
        `read_network` return them. Rows sum to 1 within 0.02, the tolerance of readers, and are not renormalised. Each
        number is written with the digits that identify its double.
    name : str
        Name of the network.
    properties : mapping, optional
        Properties of the network, key -> text. Quotes, semicolons, braces and comment signs in a text are replaced.

    Raises
    ------
    DataError
        For a name or a label that the format cannot hold: blanks, quotes, brackets, commas, semicolons, bars, a comment
        sign, or an empty text.
    StructureError
        For tables that do not belong to the graph.
    ModelFileError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from dpgm_core.domain.domain import Domain
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
    if not isinstance(word, str) or not BARE.fullmatch(word) or _COMMENT_SIGN.search(word) or not _is_whole(word):
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
                f"there is a table for {name!r}, which is not a variable{did_you_mean(name, dag.parents)}"
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
    return _COMMENT_SIGN.sub("/ ", printable(" ".join(str(text).split())).translate(_REPLACED_SIGNS))


# --- Domains and graphs for records ---
#
# A network has no place for a value that is none of its labels, and a file of records may hold any: a slip of the pen,
# an empty field, another spelling of every label. Readers of networks send such values to the first label, which
# counts them as an answer that nobody gave. So a domain made here has a label of its own for them, unless the owner
# names one that they shall be counted as. A label more makes the tables larger; the remark says so, and how to do
# without it.

#: The label of values that are none of the file's, where nobody names another.
UNKNOWN = "unknown"
_MAX_NAMED = 20


def bif_domain(path: Path, unknown: str | Mapping[str, str] = UNKNOWN) -> tuple[Domain, list[str]]:
    """Names and labels of a network, and what its owner should know of them.

    unknown: the label of values that are none of the file's, for all attributes or name -> label; one that an attribute
    does not have is appended to its labels, after those of the file. Raises DataError for the file and DomainError.
    """
    read = read_network(path)[0].domain
    if isinstance(unknown, Mapping):
        for name in unknown:
            if name not in read:
                raise DomainError(
                    f"domain.unknown names {name!r}, which is not a variable of {path.name}"
                    f"{did_you_mean(name, read.names)}"
                )
    labels = {name: unknown.get(name, UNKNOWN) if isinstance(unknown, Mapping) else unknown for name in read.names}
    for name, label in labels.items():
        if not isinstance(label, str) or not label:
            raise DomainError(f"domain.unknown: a label in quotes is needed for {name!r}, got {label!r:.80}")
    domain = Domain(Attribute.of_labels(one.name, one.labels, unknown=labels[one.name]) for one in read)
    remarks = [_ignored(path)]
    longer = [one.name for one in domain if one.size > read[one.name].size]
    if longer:
        shown = " or ".join(map(repr, dict.fromkeys(labels[name] for name in longer)))
        remarks.append(
            f"{len(longer)} of {len(domain)} attributes have a label more than in {path.name}, {shown}, for values "
            f"that are none of its labels: {_named(longer)}; to count them as one of its own, say domain = {{ bif = "
            "..., unknown = LABEL }, or { NAME = LABEL } for each"
        )
    return domain, remarks


def bif_structure(path: Path, domain: Domain) -> tuple[Structure, list[str]]:
    """The families of a network's graph over a domain that has its variables, and what its owner should know of them.

    The labels are the domain's; its other attributes have no parents. Raises DataError for the file, StructureError
    for a variable that is no attribute, TooLarge for a family whose table cannot be counted.
    """
    parents = read_network(path)[0].parents
    for name in parents:
        if name not in domain:
            raise StructureError(
                f"{path.name} has the variable {name!r}, which is not an attribute of the domain"
                f"{did_you_mean(name, domain.names)}; use a domain that has all its variables"
            )
    alone = [name for name in domain.names if name not in parents]
    remarks = [_ignored(path)]
    if alone:
        remarks.append(
            f"independent of all others, as {path.name} does not have them: {_named(alone)}; parents = {{ ... }} "
            "instead of bif gives them parents"
        )
    return Dag(domain, parents).structure(), remarks


def _ignored(path: Path) -> str:
    return f"the probabilities in {path.name} are ignored: what is learned comes from the records alone"


def _named(names: Sequence[str]) -> str:
    more = f", and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(names[:_MAX_NAMED]) + more

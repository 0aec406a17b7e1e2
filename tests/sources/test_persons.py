"""At most r rows of a person are kept, whatever their order; hashes choose which."""

import hashlib
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgm_core.domain.domain import Domain
from dpgm_core.sources import as_source
from dpgm_core.sources.persons import PersonSource, digests, mixed, part_of


def place(key, row, sizes):
    """Where a row stands among those of its person, in pure Python: SHA-256 of the key, splitmix64 of the codes."""
    found = int.from_bytes(hashlib.sha256((key or "").encode()).digest()[:8], "little")
    words, cells = [0], 1
    for code, size in zip(row, sizes, strict=True):
        if cells * size > 2**63:
            words.append(0)
            cells = 1
        words[-1] = words[-1] * size + code
        cells *= size
    for word in words:
        found ^= word
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
            found = (found ^ found >> shift) * factor % 2**64
    return found


def first_rows(persons, domain, r):
    sizes = [attribute.size for attribute in domain]
    return Counter(
        row for key, rows in persons.items() for row in sorted(rows, key=lambda row: (place(key, row, sizes), row))[:r]
    )


def kept_by_hand(domain, table, r):
    persons = {}
    for record in table.to_pylist():
        row = tuple(a.code(None if record[a.name] is None else str(record[a.name])) for a in domain)
        persons.setdefault(None if record["id"] is None else str(record["id"]), []).append(row)
    return first_rows(persons, domain, r)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("r", [1, 3])
def test_every_way_in_keeps_the_same_rows_of_a_person(keyed_way, r, tmp_path, visits):
    table = visits.table()
    source = PersonSource(source=as_source(keyed_way(table, tmp_path)), person="id", rows_per_person=r)
    assert visits.codes(source) == kept_by_hand(visits.domain, table, r)


@settings(max_examples=25)
@given(st.integers(0, 60), st.integers(1, 4), st.integers(1, 20), st.randoms(use_true_random=False))
def test_truncation_ignores_row_order_and_batches(visits, rows, r, chunk, random):
    """Any order of the rows and any batches keep the same rows, whichever columns are counted."""
    table = visits.table(rows, seed=3)
    order = random.sample(range(rows), rows)
    shuffled = table.take(pa.array(order, pa.int64())).to_reader(max_chunksize=chunk)
    source = PersonSource(source=as_source(shuffled), person="id", rows_per_person=r)
    wanted = kept_by_hand(visits.domain, table, r)
    found = list(source.batches(visits.domain, ["coded", "town"]))
    assert Counter(pair for batch in found for pair in zip(*(part.tolist() for part in batch), strict=True)) == Counter(
        pair for row, times in wanted.items() for pair in [(row[3], row[0])] * times
    )


def test_many_merges_keep_what_one_would(monkeypatch, visits):
    from dpgm_core.sources import arrow, persons

    table = visits.table(2000, seed=4)
    monkeypatch.setattr(persons, "BATCH_ROWS", 4)
    monkeypatch.setattr(arrow, "BATCH_ROWS", 16)
    source = PersonSource(source=as_source(table), person="id", rows_per_person=2)
    assert visits.codes(source) == kept_by_hand(visits.domain, table, 2)


def test_rows_beyond_one_word_count_whole(visits):
    """Rows of 40 attributes do not fit 64 bits; each of them counts."""
    rng = np.random.default_rng(5)
    domain = Domain.from_sizes({f"x{i}": int(size) for i, size in enumerate(rng.integers(1, 400, 40))})
    raw = {name: rng.integers(0, min(size, 2), 60) for name, size in domain.sizes.items()}
    person = rng.integers(0, 9, 60)
    persons = {}
    for who, *row in zip(person.tolist(), *(column.tolist() for column in raw.values()), strict=True):
        persons.setdefault(str(who), []).append(tuple(row))
    source = PersonSource(source=as_source(raw | {"id": person}), person="id")
    assert visits.codes(source, domain) == first_rows(persons, domain, 1)


@pytest.mark.parametrize("r", [1, 2])
def test_no_row_of_a_person_is_favoured(r):
    """Of 4,000 persons with four rows each, every row counts for a share r / 4 of them, within 5 deviations of at most
    0.008 (false alarm 3e-6; the key is fixed)."""
    domain = Domain.from_sizes({"day": 4, "ward": 7})
    rows = {"id": np.repeat(np.arange(4000), 4), "day": np.tile(np.arange(4), 4000), "ward": np.arange(16000) % 7}
    source = PersonSource(source=as_source(rows), person="id", rows_per_person=r)
    days = np.concatenate([batch[0] for batch in source.batches(domain, ["day"])])
    assert len(days) == 4000 * r
    assert np.bincount(days, minlength=4) / 4000 == pytest.approx(r / 4, abs=0.04)


def test_keys_compare_as_texts_and_missing_keys_are_one_person(tmp_path, visits):
    """1 and "1" are one person; empty and null keys are one person; malformed lines belong to it."""
    domain = Domain.from_sizes({"a": 9}, unknown=8)
    path = tmp_path / "x.csv"
    path.write_bytes(b"id,a\n1,3\n1,2\n,5\n,4\nbroken\n01,7\n")
    wanted = first_rows({"1": [(3,), (2,)], None: [(5,), (4,), (8,)], "01": [(7,)]}, domain, 1)
    assert visits.codes(PersonSource(source=as_source(path), person="id"), domain) == wanted
    for ids in (pa.array([1, 1, None]), pa.array([1, 1, None], pa.uint8()), pa.array(["1", "1", ""])):
        table = pa.table({"id": ids, "a": [3, 2, 5]})
        wanted = first_rows({"1": [(3,), (2,)], None: [(5,)]}, domain, 1)
        assert visits.codes(PersonSource(source=as_source(table), person="id"), domain) == wanted


def test_a_source_without_keys_cannot_serve_persons(visits):
    """A third party's plain source is refused before anything is read."""

    class Plain:
        def batches(self, domain, columns):
            raise AssertionError

    assert "keyed_batches" in visits.refusal(lambda: PersonSource(source=Plain(), person="id"))


@pytest.mark.parametrize(
    ("batch", "keys"),
    [
        ([np.array([0.5])], pa.array(["SECRET"])),
        ([np.array([0])], pa.array(["SECRET", "SECRET"])),
        ([np.array([0])], ["SECRET"]),
        ([], pa.array(["SECRET"])),
    ],
)
def test_a_third_partys_keyed_batches_are_checked(batch, keys, visits):
    """Faults name the source; codes out of range are unknown instead of another record's."""

    class Mine:
        def batches(self, domain, columns):
            raise AssertionError

        def keyed_batches(self, domain, columns, key):
            yield [np.array([9, -1])], pa.array(["p", "q"])
            yield batch, keys

    domain = Domain.from_sizes({"a": 3}, unknown=2)
    assert "source Mine" in visits.refusal(lambda: visits.codes(PersonSource(source=Mine(), person="id"), domain))
    batch[:], keys = [np.array([1])], pa.array(["p"])
    found = visits.codes(PersonSource(source=Mine(), person="id", rows_per_person=2), domain)
    assert found == Counter([(1,), (2,), (2,)])


def test_digests_are_of_the_texts_alone():
    texts = [b"", b"abc"]
    assert digests(texts).tolist() == [int.from_bytes(hashlib.sha256(one).digest()[:8], "little") for one in texts]


def test_mixing_is_one_to_one_and_leaves_its_argument():
    """Near words end far apart: half of the bits differ on average; and none falls on another."""
    words = np.arange(4096, dtype=np.uint64)
    found = mixed(words)
    assert len(np.unique(found)) == len(words) and words.tolist() == list(range(4096))
    flipped = np.unpackbits((found[1:] ^ found[:-1]).view(np.uint8)).sum()  # numpy 1.26 counts no bits
    assert abs(flipped / (len(words) - 1) - 32) < 0.5


def test_parts_are_of_the_texts_alone_and_about_as_many_in_each():
    """Against the definition in pure Python; 20,000 keys that count up fill 64 parts evenly, as they are fixed."""

    def by_hand(text, parts):
        found = int(mixed(np.array([len(text)], np.uint64))[0])
        for at in range(len(text), max(0, len(text) - 128), -8):
            word = int.from_bytes(text[max(0, at - 8) : at], "little")
            found = int(mixed(np.array([found ^ word], np.uint64))[0])
        return (found >> 32) * parts >> 32

    texts = [b"", b"a", b"7 bytes", b"8 bytes.", b"9 bytes..", b"\xff"]
    texts += [b"x" * 100, b"x" * 127 + b"y", b"y" + b"x" * 128]
    lengths, letters = np.array(list(map(len, texts))), np.frombuffer(b"".join(texts), np.uint8)
    for parts in (1, 10, 2**16):
        assert part_of(lengths, letters, parts).tolist() == [by_hand(text, parts) for text in texts]
    keys = [b"%d" % number for number in range(20_000)]
    found = part_of(np.array(list(map(len, keys))), np.frombuffer(b"".join(keys), np.uint8), 64)
    assert abs(np.bincount(found, minlength=64) - 20_000 / 64).max() < 5 * (20_000 / 64) ** 0.5

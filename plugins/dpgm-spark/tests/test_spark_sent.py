"""What runs on the executors, without Spark: the marks of a pass, and what stands for work that cannot be opened."""

import pickle

import numpy as np
import pyarrow as pa
import pytest
from dpgm_spark import sent

from dpgm_core import Domain
from dpgm_core.sources import Reading, Shipped

COLUMNS = ("a", "b", "c")
SIZES = {"a": 3, "b": 300, "c": 2}
KEY = tuple(int(word) for word in np.random.default_rng(7).integers(0, 2**63, 2 * len(COLUMNS) + 2))


class Rows:
    """A reduction: the number of rows."""

    columns, cells = ("b",), 1

    def partial(self, codes, lengths):
        return np.array([len(codes[0])], np.int64)

    def check(self, sums):
        pass


def codes(rows, seed=0):
    """Random codes, in the types that core would use."""
    rng = np.random.default_rng(seed)
    kinds = (np.uint8, np.uint16, np.uint8)
    return [rng.integers(0, size, rows).astype(kind) for size, kind in zip(SIZES.values(), kinds, strict=True)]


def marks(some, lengths=None):
    """The two cells."""
    lengths = None if lengths is None else np.array(lengths)
    return sent.Marked(Rows(), False, COLUMNS, KEY).partial(some, lengths)[1:].tolist()


def test_marks_are_those_of_a_set_of_rows():
    """Any order and any cut into pieces gives the same marks, beyond the rows that are hashed at once."""
    whole = codes(40_000)
    order = np.random.default_rng(1).permutation(40_000)
    halves = [marks([column[order][part] for column in whole]) for part in (slice(0, 13), slice(13, None))]
    added = np.array(halves).astype(np.int64).sum(axis=0)
    assert marks(whole) == added.tolist() and marks(whole)[1] == 40_000


@pytest.mark.parametrize("column", range(3))
def test_one_other_code_gives_other_marks(column):
    """As does a row more, and a row twice in place of another."""
    whole = codes(1000)
    other = [part.copy() for part in whole]
    other[column][500] = (int(other[column][500]) + 1) % list(SIZES.values())[column]
    assert marks(other) != marks(whole)
    assert marks([np.append(part, part[:1]) for part in whole]) != marks(whole)
    twice = [part.copy() for part in whole]
    for part in twice:
        part[1] = part[0]
    assert marks(twice) != marks(whole)


def test_the_same_columns_joined_otherwise_give_other_marks():
    """Each column alone is as before, so a hash that is a sum over columns would not see it."""
    whole = codes(1000)
    assert marks([whole[0], np.roll(whole[1], 1), whole[2]]) != marks(whole)


def test_marks_tell_whose_rows_they_are():
    """The same rows of other persons are other records; persons may come in any order."""
    some = codes(4)
    assert marks(some, [2, 2]) != marks(some, [1, 3])
    turned = [np.concatenate([part[2:], part[:2]]) for part in some]
    assert marks(some, [2, 2]) == marks(turned, [2, 2])
    assert marks([part[:0] for part in some], []) == [0, 0]


def test_another_key_gives_other_marks():
    """The key is drawn for each pinning, so marks tell nothing to who sees them."""
    other = sent.Marked(Rows(), False, COLUMNS, tuple(word ^ 2**40 for word in KEY)).partial(codes(10), None)
    assert marks(codes(10)) != other[1:].tolist()


def test_what_cannot_be_opened_is_handed_over_as_such():
    """No dpgm-core there, or another one: no task raises, and what is added up stays a failure."""
    broken = b"\x80\x04cno_such_module\nThing\n."
    with pytest.raises(ModuleNotFoundError):
        pickle.loads(broken)
    batch = pa.record_batch({"c0": ["x"]})
    for task in (sent.summed(broken, ("a",)), sent.block(broken, ("a",)), sent.spread(broken, ("a",), 3)):
        (row,) = task([batch])
        assert row.column("content").to_pylist() == [sent.UNOPENED]
    assert list(sent.total(broken)([b"C"])) == list(sent.limit_rows(broken)([(0, b"K")])) == [sent.UNOPENED]
    work = pickle.dumps((Shipped(reading=Reading(domain=Domain.from_sizes(SIZES), columns=COLUMNS)), Rows()))
    assert list(sent.total(work)([sent.UNOPENED])) == [sent.UNOPENED]
    sound = next(sent.total(work)([]))
    assert list(sent.merged([sound, sent.UNOPENED, sound])) == [sent.UNOPENED]
    assert list(sent.merged([])) == [] and list(sent.merged([sound])) == [sound]


def test_instants_are_told_in_one_zone():
    """Whatever the zone of the session; a time without a zone stays as it is."""
    instants = pa.array([0], pa.timestamp("us", "America/New_York"))
    (batch,) = sent.named([pa.record_batch({"x": instants, "y": instants.cast(pa.timestamp("us"))})], ("a", "b"))
    assert batch.schema.names == ["a", "b"]
    assert batch.schema.types == [pa.timestamp("us", "UTC"), pa.timestamp("us")]
    assert batch.column(0).cast(pa.int64()).to_pylist() == [0]

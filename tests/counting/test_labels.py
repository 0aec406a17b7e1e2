"""Persons by label, and ranks of edges compared with their definition."""

import numpy as np
import pyarrow as pa
import pytest
from attrs import evolve

from dpgm_core import Attribute, DataError
from dpgm_core.counting.labels import MAX_LABEL_BYTES, persons_by_label
from dpgm_core.counting.scores import rank_scores, ranks_of
from dpgm_core.domain.bins import PrivateLabels
from dpgm_core.domain.labels import Matching
from dpgm_core.domain.shapes import CELLS, PARTS, SHAPES
from dpgm_core.privacy.bins import RankDistance
from dpgm_core.sources import as_source
from dpgm_core.sources.arrow import ArrowSource
from dpgm_core.sources.contract import RawBatch

OPEN = Attribute.of_labels("a", ["label 1"], unknown="other", null="missing")


def counted(values, attribute=OPEN, **more):
    if not isinstance(values, ArrowSource):
        values = as_source(pa.table({"a": values, **{name: column for name, column in more.items() if name == "id"}}))
    return persons_by_label(values, [attribute], "id" if "id" in more else None, more.get("rows", 1))[0]


def test_what_is_no_label_counts_for_none():
    """Null, null texts, labels that are there anyway, and texts that are too long, broken or not printable."""
    bad = [None, b"", b"other", b"missing", b"a" * (MAX_LABEL_BYTES + 1), b"\xff", b"a\nb", "\x85".encode(), b"\0"]
    good = [b"cook", b"a" * MAX_LABEL_BYTES, "é".encode(), b"label 1", b"cook"]
    found = counted(pa.array(bad + good, pa.binary()))
    assert found == {"a" * MAX_LABEL_BYTES: 1, "cook": 2, "label 1": 1, "é": 1}
    assert counted(pa.array([1.0, float("nan"), 2.5, 1.0])) == {"1": 2, "2.5": 1}
    assert counted(pa.array([], pa.string())) == {}


def test_spellings_are_one_label():
    """What is counted, and therefore published, is the form in which texts are compared."""
    attribute = evolve(OPEN, matching=Matching(case=False, blanks="strip"))
    assert counted(["Cook", " cook", "COOK ", "Other", "?"], attribute) == {"?": 1, "cook": 3}
    assert counted(pa.array(["Cook", None, "cook "]).dictionary_encode(), attribute) == {"cook": 2}


def test_numbers_are_written_so_that_they_match_themselves():
    """With the signs of a country in texts, without them in numbers; a label falls on its own code."""
    attribute = evolve(OPEN, matching=Matching(numbers=True, thousands=".", decimal=","), private=PrivateLabels(keep=9))
    found = counted(["1.250,50", "1250,5", "1,50", "07", "7"], attribute)
    assert found == {"1,5": 1, "1250,5": 2, "7": 2}
    assert counted(pa.array([1.5, 7.0, None, 1.5]), attribute) == {"1,5": 2, "7": 1}
    pd = pytest.importorskip("pandas")
    mixed = pd.Series([1.5, "1,5", 7, "x", None], dtype=object)
    assert counted(as_source(pd.DataFrame({"a": mixed})), attribute) == {"1,5": 2, "7": 1, "x": 1}
    settled = attribute.with_labels(sorted(found))
    assert [settled.code(text) for text in (b"1.250,50", b"1,50", b"07", b"1.5")] == [1, 0, 2, 3]


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_a_person_moves_at_most_r_counts_by_one(rows):
    """With any person taken away no count moves by more than one, and at most r move, whatever the others have."""
    generator = np.random.default_rng(5)
    who, what = generator.integers(0, 6, 60), generator.integers(0, 9, 60)
    keys = [None if one == 0 else "" if one == 1 and place % 2 else f"p{one}" for place, one in enumerate(who)]
    labels = [f"l{one}" for one in what]
    whole = counted(labels, id=keys, rows=rows)
    moved = set()
    for out in {key or None for key in keys}:
        kept = [place for place, key in enumerate(keys) if (key or None) != out]
        less = counted([labels[place] for place in kept], id=[keys[place] for place in kept], rows=rows)
        gone = {label: whole.get(label, 0) - less.get(label, 0) for label in whole.keys() | less.keys()}
        assert set(gone.values()) <= {0, 1}
        moved.add(sum(gone.values()))
        own = {labels[place] for place, key in enumerate(keys) if (key or None) == out}
        assert sum(gone.values()) == min(rows, len(own))
    assert max(moved) == rows


def test_order_and_batches_do_not_matter():
    generator = np.random.default_rng(6)
    keys, labels = generator.integers(0, 9, 400), [f"l{one}" for one in generator.integers(0, 30, 400)]
    order = generator.permutation(400)
    whole = counted(labels, id=keys, rows=4)
    assert whole == counted([labels[place] for place in order], id=keys[order], rows=4)
    pieces = pa.chunked_array([labels[:7], [], labels[7:300], labels[300:]])
    assert whole == counted(pieces, id=pa.array([str(key) for key in keys]), rows=4)
    assert counted(pieces) == counted(labels)


def test_a_source_that_yields_anything_else_is_refused():
    """Arrays of unequal lengths would shift values to other persons."""

    class Odd:
        def names(self):
            return ("a", "id")

        def raw_batches(self, columns):
            yield RawBatch([pa.array(["x"]), pa.array(["p", "q"])])

    with pytest.raises(DataError, match="one raw array of one length"):
        persons_by_label(Odd(), [OPEN], "id", 1)


@pytest.mark.parametrize("rows", [1, 2])
def test_a_person_moves_at_most_r_shapes_by_one(rows):
    """All shapes, cells and parts have a count; a person counts once for one and for at most r of them."""
    generator = np.random.default_rng(6)
    who = generator.integers(0, 6, 80)
    texts = generator.choice(["1", "2", "3", "0.5", "cook", "2019-01-02", "09:30", "1024"], 80)
    attribute = Attribute.from_dict("a", {"private": True})

    def shapes(keep):
        table = as_source(pa.table({"id": [f"p{n}" for n in who[keep]], "a": texts[keep]}))
        labels, *places = persons_by_label(table, [attribute], "id", rows, shaped=[attribute])
        assert sum(labels.values()) <= 6 * rows
        return places

    for at, all_of_them in enumerate((SHAPES, CELLS, PARTS)):
        every = shapes(who >= 0)[at]
        assert set(every) == set(all_of_them) and 0 < sum(every.values()) <= 6 * rows
        for person in range(6):
            less = shapes(who != person)[at]
            moved = [every[one] - less[one] for one in all_of_them if every[one] != less[one]]
            assert moved and set(moved) == {1} and len(moved) <= rows
    alone = as_source(pa.table({"a": ["1", "x", None, "", "NA", "3"]}))
    _, counted_shapes, counted_cells, counted_parts = persons_by_label(alone, [attribute], None, 1, shaped=[attribute])
    assert {shape: count for shape, count in counted_shapes.items() if count} == {
        "integer 2^0": 1,
        "integer 2^1": 1,
        "word": 1,
    }
    assert {cell: count for cell, count in counted_cells.items() if count} == {"2^0 0": 1, "2^1 32": 1, "word x": 1}
    assert {part: count for part, count in counted_parts.items() if count} == {"part 0": 2}


def test_scores_are_those_of_the_definition():
    """Claim: an edge scores its distance from the median and that of the next edge towards it, in every node."""
    codes = np.random.default_rng(0).integers(0, 9, 200)
    ranks = ranks_of(np.bincount(codes, minlength=9))
    for first in range(8):
        for last in range(first + 2, 10):
            inside = codes[(codes >= first) & (codes < last)]
            off = [2 * int((inside < edge).sum()) - len(inside) for edge in range(first, last + 1)]
            wanted = [-abs(off[at]) - max(0, off[at - 1], -off[at + 1]) for at in range(1, last - first)]
            assert rank_scores(ranks, RankDistance(first=first, last=last)).tolist() == wanted


def test_a_heavy_cell_is_cut_off_whatever_empty_stretch_is_beside_it():
    """Claim: of all edges with the same ranks the one next to the heavy cell has the best score, on either side."""
    counts = np.zeros(50, np.int64)
    counts[[20, 45]] = 1000, 10
    nodes = [RankDistance(first=first, last=last) for first, last in ((0, 50), (0, 21), (20, 50))]
    best = [node.candidates[int(np.argmax(rank_scores(ranks_of(counts), node)))] for node in nodes]
    assert best == [21, 20, 21]

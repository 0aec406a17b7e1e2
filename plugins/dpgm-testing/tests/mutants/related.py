"""Deliberately wrong sources of two related tables, each killed by the check meant for it."""

import hashlib
from collections import defaultdict

import numpy as np
from attrs import evolve, field, frozen

from dpgm_core.domain.attribute import code_dtype

from .family import Family, replaces

related = Family("related")


def hashed(*parts):
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "little")


@frozen(kw_only=True)
class Plain:
    """The source the mutants are made from: pyarrow tables, key by key."""

    root = field()
    children = field()
    related = field()
    draws = field(default=1)

    def repeated(self, draws):
        return evolve(self, draws=draws)

    def batches(self, domain, columns):
        rows = [list(row.values()) for row in self.root.to_pylist()]
        keyed = defaultdict(list)
        for place, row in enumerate(self.children.to_pylist()):
            for key in self.keys(row):
                keyed[key].append((place, row))
        found = []
        for number, (key, *root) in enumerate(self.roots(rows)):
            own = [row for _, row in sorted(keyed[key], key=lambda one, key=key: self.place(key, *one))]
            found += [self.record(key, number, root, own, keyed, k) for k in range(self.times(own))]
        for row in self.more(keyed, {key or None for key, *_ in rows}):
            found.append(row)
        for start in range(0, len(found), 7):
            part = [dict(zip(self.related.pair.names, row, strict=True)) for row in found[start : start + 7]]
            yield [np.array([row[name] for row in part], code_dtype(domain[name].size)) for name in columns]

    def keys(self, row):
        return [row["id"] or None]

    def roots(self, rows):
        chosen = {}
        for key, *root in rows:
            chosen.setdefault(key or None, []).append(root)
        return [(key, *min(several, key=lambda one, key=key: hashed(key, one))) for key, several in chosen.items()]

    def place(self, key, place, row):
        line = row["line"] if self.related.order is not None else 0
        return line, hashed(key, row["of"], row["turn"])

    def times(self, own):
        return self.draws

    def record(self, key, number, root, own, keyed, k=0):
        some = own[: self.most(keyed)]
        count, this = len(some), 0
        if count > 1:
            this = 1 + (self.draw(key, number, keyed) + k) % (count - 1)
        slots = [some[0] if some else None, some[this] if count > 1 else None, some[this - 1] if this > 1 else None]
        codes = [code for child in slots for code in ((child["of"], child["turn"]) if child else (64, 12))]
        return [*root, count, min(this, 2), *codes][: len(self.related.pair)]

    def most(self, keyed):
        return self.related.max_children

    def draw(self, key, number, keyed):
        return hashed("draw", key)

    def more(self, keyed, keys):
        return []


@related.each
class PlainFaults(Plain):
    @replaces("keys", "a-child-counts-under-its-own-root")
    def under_two_roots(self, row):
        """A child counts under two roots: its own and that of the next key."""
        key = row["id"]
        return [key, f"k{int(key[1:]) + 1}"] if key and key[1:].isdigit() else [key or None]

    @replaces("record", "children-beyond-r-do-not-count")
    def size_beyond_r(self, key, number, root, own, keyed, k=0):
        """The size is that of all children, as far as the labels go: r + 1."""
        record = super().record(key, number, root, own, keyed, k)
        record[len(root)] = min(len(own), self.related.max_children + 1)
        return record

    @replaces("record", "children-beyond-r-do-not-count", "The child that is looked at is one of all, also beyond r.")
    def siblings_beyond_r(self, key, number, root, own, keyed, k=0):
        record = super().record(key, number, root, own, keyed, k)
        if len(own) > 2 and self.related.max_children > 1:
            last = own[1 + self.draw(key, number, keyed) % (len(own) - 1)]
            at = len(root) + 4
            record[at : at + 2] = [last["of"], last["turn"]]
        return record

    @replaces("place", "the-order-is-followed", "The first child is the first in the file.")
    def file_order(self, key, place, row):
        return place

    @replaces("place", "row-order-and-batches-change-nothing")
    def file_order_without_column(self, key, place, row):
        """Without a column that orders the first child is the first in the file."""
        return super().place(key, place, row) if self.related.order is not None else (0, place)

    @replaces("draw", "row-order-and-batches-change-nothing", "j is drawn by the number of the row.")
    def draws_by_row_number(self, key, number, keyed):
        return hashed("draw", number)

    @replaces("more", "orphans-do-not-count", "Children without a root are records, of the first root.")
    def counts_orphans(self, keyed, keys):
        return [
            self.record(key, 0, [0], [row for _, row in rows], keyed)
            for key, rows in list(keyed.items())
            if key not in keys
        ]

    @replaces("roots", "one-root-of-a-key-remains", "The first row of a key in the file remains.")
    def first_root(self, rows):
        chosen = {}
        for key, *root in rows:
            chosen.setdefault(key or None, root)
        return [(key, *root) for key, root in chosen.items()]

    @replaces("roots", "one-root-of-a-key-remains", "All rows of a key remain.")
    def all_roots(self, rows):
        return [(key or None, *root) for key, *root in rows]

    @replaces("draw", "each-of-the-others-is-drawn", "The second child is looked at, always.")
    def always_the_second(self, key, number, keyed):
        return 0

    @replaces("draw", "a-key-changes-its-own-record-alone", "j is drawn by a hash that sees the other keys.")
    def draws_by_other_keys(self, key, number, keyed):
        return hashed("draw", key, sorted(map(str, (other for other, rows in keyed.items() if rows))))

    @replaces("most", "a-key-changes-its-own-record-alone")
    def largest_family(self, keyed):
        """r is the largest number of children in the data, less one."""
        return min(self.related.max_children, max(map(len, keyed.values()), default=0) - 1)

    @replaces("times", "repeated-records-are-so-many-of-each-root")
    def weights_above_one(self, own):
        """The weights of a root with three children or more sum above 1."""
        return self.draws + (len(own) > 2)

    @replaces("record", "repeated-records-are-so-many-of-each-root")
    def independent_draws(self, key, number, root, own, keyed, k=0):
        """Draws are independent, so that some children have two of three."""
        return super().record(key, number, root, own, keyed, hashed(key, k))

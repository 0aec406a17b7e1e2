"""Roots with children: three generated worlds of unlike kinds, households out of ACS, and errors of two tables.

`couples` are households: a head, mostly a partner of the other sex and near in age, then their offspring. `visits` are
patients of three hidden kinds whose visits are independent given the kind; some have none. `episodes` are chains: each
depends on the one before it and on the root. A world's tables are drawn from the number of the world, its records from
a seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from attrs import frozen

from dpgm_core._util.arrays import FloatArray, IntArray

__all__ = ["KINDS", "MAX_CHILDREN", "Roots", "acs", "distances", "generated", "resampled"]

#: Children that count for each root, in all tables here.
MAX_CHILDREN = 5

#: Worlds that can be generated.
KINDS = ("couples", "visits", "episodes")

_ROOT = {"own": 2, "density": 4, "income": 5}
_CHILD = {"age": 8, "sex": 2, "status": 6, "edu": 5}


@frozen(kw_only=True)
class Roots:
    """Roots and their children, as codes.

    root, child: sizes of the attributes. roots: column -> (roots,). size: children of each root. children: column ->
    (children,), root by root, in their order.
    """

    root: Mapping[str, int]
    child: Mapping[str, int]
    roots: Mapping[str, IntArray]
    size: IntArray
    children: Mapping[str, IntArray]

    @property
    def keys(self) -> IntArray:
        """The number of the root of each child."""
        return np.repeat(np.arange(len(self.size)), self.size)

    @property
    def places(self) -> IntArray:
        """The place of each child among those of its root, from 0."""
        return np.arange(self.size.sum()) - np.repeat(np.cumsum(self.size) - self.size, self.size)


# --- Generated worlds -----------------------------------------------------------------------------


def generated(kind: str, count: int, seed: int, world: int = 0) -> Roots:
    """Return so many roots of a world."""
    make = {"couples": _couples, "visits": _visits, "episodes": _episodes}[kind]
    return make(count, np.random.default_rng([seed, 1]), np.random.default_rng([world, 7]))


def _draw(tables: FloatArray, state: IntArray, rng: np.random.Generator) -> IntArray:
    """Return a code for each state from its row of probabilities."""
    upto = np.cumsum(tables, axis=-1)
    upto /= upto[..., -1:]
    return np.minimum((upto[state] < rng.random(len(state))[:, None]).sum(axis=1), tables.shape[-1] - 1)


def _dirichlet(world: np.random.Generator, shape: tuple[int, ...], spread: float) -> FloatArray:
    return world.dirichlet(np.full(shape[-1], spread), shape[:-1])


def _roots_from(
    kinds: IntArray, rng: np.random.Generator, world: np.random.Generator, spread: float
) -> dict[str, IntArray]:
    """Return root columns that depend on a hidden kind, half as much as their tables do."""
    found = {}
    for name, size in _ROOT.items():
        table = _dirichlet(world, (int(kinds.max()) + 1, size), spread)
        found[name] = _draw(0.5 * table + 0.5 * table.mean(axis=0), kinds, rng)
    return found


def _visits(count: int, rng: np.random.Generator, world: np.random.Generator) -> Roots:
    sizes = np.array(
        [[0.1, 0.45, 0.25, 0.1, 0.05, 0.05], [0.05, 0.2, 0.25, 0.3, 0.1, 0.1], [0, 0.05, 0.1, 0.2, 0.25, 0.4]]
    )
    kinds = rng.choice(3, count, p=[0.5, 0.3, 0.2])
    roots = _roots_from(kinds, rng, world, 0.6)
    size = _draw(sizes, kinds, rng)
    of = np.repeat(kinds, size)
    children = {name: _draw(_dirichlet(world, (3, many), 0.6), of, rng) for name, many in _CHILD.items()}
    return Roots(root=_ROOT, child=_CHILD, roots=roots, size=size, children=children)


def _episodes(count: int, rng: np.random.Generator, world: np.random.Generator) -> Roots:
    kinds = rng.choice(4, count)
    roots = _roots_from(kinds, rng, world, 0.8)
    size = 1 + _draw(_dirichlet(world, (2, 5, MAX_CHILDREN), 3.0)[roots["own"], roots["income"]], np.arange(count), rng)
    started = {name: _dirichlet(world, (_ROOT["income"], many), 1.0) for name, many in _CHILD.items()}
    moved = {name: _dirichlet(world, (many, many), 0.5) for name, many in _CHILD.items()}
    pushed = {name: _dirichlet(world, (_ROOT["density"], many), 1.0) for name, many in _CHILD.items()}
    linked = _dirichlet(world, (_CHILD["age"], _CHILD["status"]), 0.5)
    ends = np.cumsum(size)
    children = {name: np.zeros(int(ends[-1]), np.int64) for name in _CHILD}
    for place in range(MAX_CHILDREN):
        here = np.flatnonzero(size > place)
        at = ends[here] - size[here] + place
        for name in _CHILD:
            if place == 0:
                children[name][at] = _draw(started[name], roots["income"][here], rng)
                continue
            stays = rng.random(len(here)) < 0.3
            table = 0.7 * moved[name][children[name][at - 1]] + 0.3 * pushed[name][roots["density"][here]]
            drawn = _draw(table, np.arange(len(here)), rng)
            children[name][at] = np.where(stays, children[name][at - 1], drawn)
        follows = rng.random(len(here)) < 0.5
        children["status"][at] = np.where(follows, _draw(linked, children["age"][at], rng), children["status"][at])
    return Roots(root=_ROOT, child=_CHILD, roots=roots, size=size, children=children)


def _couples(count: int, rng: np.random.Generator, world: np.random.Generator) -> Roots:
    """Codes of age are bins: 0 to 17, 18 to 24, then decades, and 75 and more; of status: 0 minor, 1 partnered, 2 to 5
    others."""
    kinds = rng.choice(4, count, p=[0.3, 0.35, 0.2, 0.15])  # alone, couple, family, other
    roots = _roots_from(kinds, rng, world, 0.8)
    offspring = 1 + rng.binomial(3, 0.35, count)
    others = 1 + rng.binomial(2, 0.3, count)
    size = np.choose(kinds, [np.ones(count, np.int64), np.full(count, 2), 2 + offspring, 1 + others]).clip(
        1, MAX_CHILDREN
    )
    years = np.where(kinds == 2, rng.normal(42, 8, count), rng.normal(np.choose(kinds, [58, 56, 42, 45]), 16))
    years = years.clip(18, 95) + 2.0 * roots["own"]
    schooling = _dirichlet(world, (_ROOT["income"], _CHILD["edu"]), 1.5)
    single = _dirichlet(world, (8, 4), 1.0)
    ends = np.cumsum(size)
    children = {name: np.zeros(int(ends[-1]), np.int64) for name in _CHILD}
    ages = np.zeros(int(ends[-1]))
    for place in range(MAX_CHILDREN):
        here = np.flatnonzero(size > place)
        at = ends[here] - size[here] + place
        head = ends[here] - size[here]
        kind = kinds[here]
        partnered = (kind == 1) | (kind == 2)
        if place == 0:
            ages[at] = years[here]
            children["sex"][at] = (rng.random(len(here)) < 0.45).astype(np.int64)
        else:
            partner = partnered & (place == 1)
            kid = (kind == 2) & (place > 1)
            young = (kind == 3) & (rng.random(len(here)) < 0.6)
            near = ages[at - 1] - rng.gamma(2.0, 1.5, len(here))
            born = ages[head] - rng.normal(30, 5, len(here)).clip(17, 45)
            next_kid = np.where(kid & (place > 2), near, born)
            drawn = np.where(
                partner, ages[head] + rng.normal(-1, 4, len(here)), rng.normal(40, 20, len(here)).clip(18, 90)
            )
            ages[at] = np.where(kid | young, next_kid, drawn)
            ages[at] = np.where(partner, ages[at].clip(18, 95), ages[at].clip(0, 95))
            other = (rng.random(len(here)) < 0.03) ^ (children["sex"][head] == 0)
            children["sex"][at] = np.where(partner, other, rng.random(len(here)) < 0.5).astype(np.int64)
        age = np.digitize(ages[at], [18, 25, 35, 45, 55, 65, 75])
        children["age"][at] = age
        alone = 2 + _draw(single, age, rng)
        status = np.where(partnered & (place < 2), 1, alone)
        children["status"][at] = np.where(age == 0, 0, status)
        edu = _draw(schooling, roots["income"][here], rng)
        if place:
            edu = np.where(rng.random(len(here)) < 0.4, children["edu"][at - 1], edu)
        children["edu"][at] = np.where(age == 0, 0, edu)
    return Roots(root=_ROOT, child=_CHILD, roots=roots, size=size, children=children)


# --- Households of the American Community Survey ----------------------------------------------------


def acs(path: Path) -> Roots:
    """Return households and their members out of adjacent rows of ma2019.csv with equal columns of the household."""
    import pandas as pd

    rows = pd.read_csv(path, dtype=str)
    rows = rows[rows.HOUSING_TYPE == "1"]
    key = ["PUMA", "NPF", "NOC", "OWN_RENT", "DENSITY", "WGTP"]
    starts = (rows[key] != rows[key].shift()).any(axis=1).to_numpy()
    group = np.cumsum(starts) - 1

    def number(column: str) -> FloatArray:
        return np.asarray(pd.to_numeric(rows[column], errors="coerce").fillna(-1), dtype=np.float64)

    place = np.arange(len(rows)) - np.flatnonzero(starts)[group]
    counts = place < MAX_CHILDREN
    status = number("MSP")
    columns = {
        "age": np.digitize(number("AGEP"), [18, 25, 35, 45, 55, 65, 75]),
        "sex": number("SEX").astype(np.int64) - 1,
        "status": np.where(status < 0, 0, status - 1).astype(np.int64) % 6,
        "edu": np.digitize(number("EDU"), [1, 5, 7, 9]),
    }
    roots = {
        "own": (rows.OWN_RENT == "2").to_numpy().astype(np.int64)[starts],
        "density": np.digitize(number("DENSITY"), [1500, 2500, 5000])[starts],
        "income": np.digitize(number("POVPIP"), [0, 150, 300, 500])[starts],
    }
    return Roots(
        root=_ROOT,
        child=_CHILD,
        roots=roots,
        size=np.bincount(group[counts]),
        children={name: column[counts] for name, column in columns.items()},
    )


def resampled(roots: Roots, count: int, seed: int) -> Roots:
    """Return so many roots drawn with replacement, each with its children."""
    chosen = np.random.default_rng([seed, 3]).integers(len(roots.size), size=count)
    size = roots.size[chosen]
    start = (np.cumsum(roots.size) - roots.size)[chosen]
    at = np.repeat(start - (np.cumsum(size) - size), size) + np.arange(size.sum())
    return Roots(
        root=roots.root,
        child=roots.child,
        roots={name: column[chosen] for name, column in roots.roots.items()},
        size=size,
        children={name: column[at] for name, column in roots.children.items()},
    )


# --- Errors -----------------------------------------------------------------------------------------


def distances(truth: Roots, other: Roots) -> dict[str, float]:
    """Return mean total variation distances of two-way tables, by kind.

    cross: a root column or the number of children, and a child column, over children. within: two columns of a child.
    sibling: ordered pairs of two children of one root. later: the same column of two children without the first.
    size: the number of children of roots. root: two columns of roots.
    """
    ours, theirs = _tables(truth), _tables(other)
    found: dict[str, list[float]] = {}
    for key, table in ours.items():
        found.setdefault(key[0], []).append(0.5 * float(np.abs(table - theirs[key]).sum()))
    return {kind: float(np.mean(values)) for kind, values in found.items()}


def _tables(data: Roots) -> dict[tuple[str, ...], FloatArray]:
    keys, places = data.keys, data.places
    above = {**data.roots, "size": data.size}
    sizes = {**data.root, **data.child, "size": MAX_CHILDREN + 1}
    found: dict[tuple[str, ...], FloatArray] = {}
    names = list(data.child)
    columns = {name: column[keys] for name, column in above.items()} | dict(data.children)

    def add(kind: str, first: str, second: str, one: IntArray, other: IntArray) -> None:
        table = np.bincount(one * sizes[second] + other, minlength=sizes[first] * sizes[second])
        found[kind, first, second] = table / max(int(table.sum()), 1)

    for first in above:
        for second in names:
            add("cross", first, second, columns[first], columns[second])
    for at, first in enumerate(names):
        for second in names[at + 1 :]:
            add("within", first, second, columns[first], columns[second])
    one, other = _siblings(data)
    later = (places[one] > 0) & (places[other] > 0)
    for at, first in enumerate(names):
        for second in names[at:]:
            add("sibling", first, second, columns[first][one], columns[second][other])
        add("later", first, first, columns[first][one[later]], columns[first][other[later]])
    table = np.bincount(data.size, minlength=MAX_CHILDREN + 1)
    found["size", "size"] = table / table.sum()
    heads = list(data.root)
    for at, first in enumerate(heads):
        for second in [*heads[at + 1 :], "size"]:
            add("root", first, second, above[first], above[second])
    return found


def _siblings(data: Roots) -> tuple[IntArray, IntArray]:
    """Return the numbers of children of all ordered pairs of two children of one root."""
    start = np.cumsum(data.size) - data.size
    ones, others = [], []
    for one in range(MAX_CHILDREN):
        for other in range(MAX_CHILDREN):
            if one != other:
                here = start[data.size > max(one, other)]
                ones.append(here + one)
                others.append(here + other)
    return np.concatenate(ones), np.concatenate(others)

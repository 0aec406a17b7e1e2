"""Two directed graphs over the Adult table: one of common sense, and a wrong one of the same shape."""

from __future__ import annotations

import math

import numpy as np

from dpgm_core import Dag, Domain, StructureError

__all__ = ["SENSE", "sensible", "wrong"]

#: Written down from what the attributes mean, before any table, score or result of this benchmark was seen, and not
#: changed since. Age, sex and country of origin come first. Schooling goes with age, marriage with age and sex, the
#: place in the household with marriage and sex; the job with schooling and sex, the class of worker with the job,
#: hours with the class of worker and sex; income with schooling, the job and marriage; capital with income. The
#: survey's weight (fnlwgt) is made from population figures by origin.
SENSE = {
    "race": ("native-country",),
    "education-num": ("age",),
    "marital-status": ("age", "sex"),
    "relationship": ("marital-status", "sex"),
    "occupation": ("education-num", "sex"),
    "workclass": ("occupation",),
    "hours-per-week": ("workclass", "sex"),
    "income>50K": ("education-num", "occupation", "marital-status"),
    "capital-gain": ("income>50K",),
    "capital-loss": ("income>50K",),
    "fnlwgt": ("race",),
}

#: Cells of a family in the wrong graph: those of the sensible one have up to 3,360.
MOST = 5000


def sensible(domain: Domain) -> Dag:
    """The graph of common sense."""
    return Dag(domain, SENSE)


def wrong(domain: Domain) -> Dag:
    """The same graph with the attributes' names dealt anew, by chance and from public facts alone.

    The first deal that joins no two attributes which the sensible graph joins, with families of at most 5,000 cells.
    """
    rng = np.random.default_rng(0)
    joined = {frozenset((child, parent)) for child, above in SENSE.items() for parent in above}
    names = list(domain.names)
    for _ in range(200_000):
        other = dict(zip(names, rng.permutation(names).tolist(), strict=True))
        parents = {other[child]: tuple(other[parent] for parent in above) for child, above in SENSE.items()}
        if any(frozenset((child, parent)) in joined for child, above in parents.items() for parent in above):
            continue
        if all(math.prod(domain.shape((child, *above))) <= MOST for child, above in parents.items()):
            return Dag(domain, parents)
    raise StructureError(f"no deal of the attributes makes a wrong graph with families of at most {MOST} cells")

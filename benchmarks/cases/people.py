"""Two directed graphs over the Adult table: one of common sense, and a wrong one of the same shape."""

from __future__ import annotations

import numpy as np

from dpgm_core import Dag, Domain, StructureError

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
    rng, names = np.random.default_rng(0), domain.names
    place = {name: at for at, name in enumerate(names)}
    arcs = np.array([(place[child], place[parent]) for child, above in SENSE.items() for parent in above])
    joined = np.zeros((len(names), len(names)), dtype=bool)
    joined[arcs[:, 0], arcs[:, 1]] = joined[arcs[:, 1], arcs[:, 0]] = True
    families = [[place[child], *(place[parent] for parent in above)] for child, above in SENSE.items()]
    sizes = np.array(domain.shape(names))
    for _ in range(1000):
        deals = rng.permuted(np.tile(np.arange(len(names)), (2000, 1)), axis=1)
        good = ~joined[deals[:, arcs[:, 0]], deals[:, arcs[:, 1]]].any(axis=1)
        for family in families:
            good &= np.prod(sizes[deals[:, family]], axis=1) <= MOST
        if good.any():
            deal = deals[int(np.argmax(good))]
            named = [[names[deal[at]] for at in family] for family in families]
            return Dag(domain, {child: above for child, *above in named})
    raise StructureError(f"no deal of the attributes makes a wrong graph with families of at most {MOST} cells")

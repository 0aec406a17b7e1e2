"""A session with every kind of step, before or after some codes were merged."""

from fractions import Fraction

import numpy as np

from dpgm_core import Domain, SeededRandomness, Structure, TableDistance, Workload
from dpgm_core.privacy.descent import NodeGradients, Regressions
from tests.fixtures import live_curator

DOMAIN = Domain.from_sizes({"a": 3, "b": 2, "c": 4})
MERGES = {"a": [0, 1, 0], "c": [1, 0, 0, 2]}
WORKLOAD = Workload.all(DOMAIN, order=2)
CODES = np.random.default_rng(4).integers(0, [3, 2, 4], (300, 3))
PAIRS = [("a", "b"), ("a", "c"), ("b", "c")]


def merged(codes):
    found = np.array(codes)
    for place, name in enumerate(DOMAIN.names):
        if name in MERGES:
            found[:, place] = np.array(MERGES[name])[found[:, place]]
    return found


def opened(codes, domain, budget, **more):
    settings = {"randomness": SeededRandomness(5), "budget": budget} | more
    return live_curator(codes, Structure(domain, [domain.names[:1]]), **settings)


def scores(domain, contrast=False):
    """Distances of all pairs from a table that none of them is near."""
    pairs = Structure(domain, PAIRS)
    return TableDistance(candidates=pairs, predicted=7.0 * np.arange(pairs.cells), contrast=contrast)


def gradients(domain):
    """Regressions of labels on labels, at no weights."""
    own = Regressions(candidates=Structure(domain, PAIRS), loss="pairs")
    return NodeGradients(regressions=own, weights=own.zeros(), radius=2, clip="0.3")


def steps(session, domain, *, pairs, share=Fraction(1, 15)):
    """One step of each kind that the session can pay; pairs: whether tables of two attributes are measured too."""
    each = session.budget * share
    found = [session.measure([("a",), ("c",), *([("b", "c")] if pairs else [])], each)]
    found += [session.select(scores(domain), each, 2)]
    if each.kind == "zcdp":
        found += [session.score(scores(domain), each), session.score(scores(domain), each, mean=True)]
    found += [session.descend(gradients(domain), each), session.measure({("b",): each, ("c",): each})]
    return found

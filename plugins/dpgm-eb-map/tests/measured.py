"""Structures of attributes of several sizes, and releases of records under Gaussian noise."""

import dpgm_core as dpgm
from dpgm_core import Attribute, Domain, Structure

BINNED = Domain([*(Attribute.of_bins(name, range(5), unknown="?") for name in "ab"), Attribute.of_size("c", 3)])
MIXED = Domain.from_sizes({"a": 2, "b": 3, "c": 4, "d": 1, "e": 3})
STRUCTURES = {
    "pairs": Structure(MIXED, [("a", "b"), ("c", "b"), ("e", "c")]),
    "orders 1 to 3, nested": Structure(MIXED, [("c", "a", "b"), ("b", "a"), ("e", "b"), ("c",)]),
    "bins": Structure(BINNED, [("a", "b"), ("c", "b"), ("a",)]),
    "one label": Structure(MIXED, [("d", "a"), ("d",)]),
    "tied": Structure(MIXED, [("a", "b"), ("a", "e")], tied=[[("b", "c"), ("e", "c")]]),
}


def measure(codes, structure, rho, seed=1, *, split="even", **terms):
    """A seeded release under zCDP."""
    stated = dpgm.Terms(**{"neighbours": "add-remove"} | terms)
    seeded = {"terms": stated, "split": split, "randomness": dpgm.SeededRandomness(seed)}
    return dpgm.release(codes, structure, dpgm.Budget.zcdp(rho), "gaussian", **seeded)

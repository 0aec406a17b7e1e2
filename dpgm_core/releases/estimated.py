"""The number of records, as stated by the terms or as estimated from noisy tables."""

from __future__ import annotations

import numpy as np

from dpgm_core.arrays import FloatArray
from dpgm_core.privacy.contributions import Contributions
from dpgm_core.privacy.terms import Terms
from dpgm_core.tables import Tables

__all__ = ["estimate_total", "stated_total"]


def stated_total(terms: Terms, records: int) -> float:
    """N as the terms state it, `records` where it is public, at least 1 then; 0 where it is estimated.

    >>> [stated_total(Terms(neighbours="add-remove", total=total), 70) for total in ("public", 50, "estimated")]
    [70.0, 50.0, 0.0]
    """
    return max(1.0, float(records)) if terms.total_policy == "public" else terms.declared_total or 0.0


def estimate_total(
    tables: Tables, variances: FloatArray, contributions: Contributions | None = None, *, contrasts: bool = False
) -> tuple[float, float]:
    """(N_hat, its variance): the minimum-variance estimate from the noisy sums; records, at least 1.

    N_hat = sum_g m_g s_g/(K_g sigma_g^2) / sum_g m_g^2/(K_g sigma_g^2), s_g the noisy sum and K_g the cells of
    group g (DESIGN section 4). Post-processing: free. With contributions N is in persons, and m_g is what one person
    adds to a table at most; some add less, to some tables. contrasts: N is that of the empty clique, one of the tables.

    >>> from dpgm_core import Domain, Structure
    >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a",), ("b",)])
    >>> estimate_total(Tables(structure, np.array([4, 5, 6, 5])), np.array([1.0, 1.0]))
    (10.0, 1.0)
    """
    structure = tables.structure
    if contrasts:
        number, _ = structure.find(())
        return max(1.0, float(tables.group(number))), float(variances[number])
    cells = np.asarray(structure.sizes, dtype=np.float64)
    tied = (
        np.asarray(structure.multiplicities, np.float64) if contributions is None else contributions.wholes(structure)
    )
    weights = tied / (cells * variances)
    precision = float(np.sum(weights * tied))
    return max(1.0, float(np.sum(weights * tables.sums()) / precision)), 1.0 / precision

"""Regressions of a few attributes on each other."""

from dpgm_core import Domain, Structure
from dpgm_core.privacy.descent import Regressions


def regressions(loss, k=2, p=3, cliques=None):
    """All pairs of p attributes with k labels, or some cliques."""
    domain = Domain.from_sizes(dict.fromkeys("abcdef"[:p], k))
    candidates = Structure.complete(domain) if cliques is None else Structure(domain, cliques)
    return Regressions(candidates=candidates, loss=loss)

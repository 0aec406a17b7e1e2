"""Candidates that a session may be asked for, and checks of core's own scores, gradients and voters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dpgm_core.domain import Domain
from dpgm_core.errors import OptionError, StructureError
from dpgm_core.structure import Clique, Structure
from dpgm_core.workload import Workload

__all__ = ["Candidates", "check_exact_type"]


def check_exact_type(value: object, what: str, moved: str, *kinds: type) -> None:
    """Refuse, with OptionError, what is not exactly of these types: a child could say that nobody moves it.

    what: it is, and moved: what a person moves, in words.

    >>> check_exact_type("records", "scores", "a score", int)
    Traceback (most recent call last):
    dpgm_core.errors.OptionError: scores must be int, got str; core alone knows how far one person moves a score, so ...
    """
    if type(value) not in kinds:
        raise OptionError(
            f"{what} must be {' or '.join(kind.__name__ for kind in kinds)}, got {type(value).__name__}; core alone "
            f"knows how far one person moves {moved}, so no other is computed from records"
        )


class Candidates:
    """The candidates of a workload, by their attributes in any order.

    >>> workload = Workload.all(Domain.from_sizes({"a": 2, "b": 2}))
    >>> Candidates(workload).named([("b", "a"), "a"], workload.domain).cliques
    (('a', 'b'), ('a',))
    """

    def __init__(self, workload: Workload) -> None:
        self._named = {frozenset(clique): clique for clique in workload.candidates}

    def named(self, cliques: Iterable[Clique], domain: Domain) -> Structure:
        """The cliques as a structure over a domain, as the workload names them; StructureError for any that is none."""
        if isinstance(cliques, str) or not isinstance(cliques, Iterable):
            raise StructureError(f"cliques must be a list of cliques, got {type(cliques).__name__}")
        cliques_named = []
        for one in cliques:
            clique = tuple(one) if isinstance(one, Sequence) and not isinstance(one, str) else (one,)
            named = self._named.get(frozenset(clique)) if all(isinstance(name, str) for name in clique) else None
            if named is None or len(named) != len(clique):
                raise StructureError(
                    f"{' x '.join(map(str, clique)) or '()'} is not a candidate of the workload: its cliques do not "
                    "hold it, it has too many cells, or it is under `never`"
                )
            cliques_named.append(named)
        if len(set(cliques_named)) < len(cliques_named):
            raise StructureError("a table was named twice in one step; name it once")
        return Structure(domain, cliques_named)

    def own(self, candidates: Structure, domain: Domain) -> Structure:
        """The same candidates over the session's domain as it is; StructureError for any that is none, or is named in
        another order of its attributes.

        A plugin's child of Domain could call an attribute of four codes binary, and find itself equal to any domain:
        how far one person moves a sum is worked out by the domain that records are coded by.
        """
        if candidates.domain != domain:
            raise StructureError("the candidates are over another domain than the session counts by; see its `domain`")
        structure = self.named(candidates.cliques, domain)
        if structure.cliques != candidates.cliques:
            raise StructureError("candidates name their attributes in the order of the domain, as the workload does")
        return structure

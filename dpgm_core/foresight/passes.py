"""What a source that sums where its rows are will be asked for, from public sizes alone: passes, tables and bytes."""

from __future__ import annotations

from dpgm_core.components.registry import default_registry
from dpgm_core.counting.passes import Passes
from dpgm_core.curator.counted import candidates_to_count
from dpgm_core.privacy.terms import Terms
from dpgm_core.sources.contract import AnySource, ReducingSource
from dpgm_core.structure import Structure, human_bytes
from dpgm_core.workload import Workload

__all__ = ["describe_release_passes", "describe_session_passes"]


def describe_release_passes(source: AnySource, structure: Structure, terms: Terms) -> tuple[str, ...]:
    """Of a release of a structure's tables, what is counted in how many passes; nothing of a source that is read here.

    >>> from dpgm_core.domain import Domain
    >>> from dpgm_core.sources import as_source
    >>> structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    >>> describe_release_passes(as_source("visits.csv"), structure, Terms(neighbours="add-remove"))
    ()
    """
    if not isinstance(source, ReducingSource):
        return ()
    passes = Passes.under(structure, terms.contributions)
    return (f"{_sums(source)} {_tables(len(structure.groups), structure.cells)} in {_passes(passes)}",)


def describe_session_passes(source: AnySource, workload: Workload) -> tuple[str, ...]:
    """Of a session over a workload, what is counted before it is charged, and what when a step asks for it.

    Private bins are as many as they may become.
    """
    if not isinstance(source, ReducingSource):
        return ()
    domain, candidates = workload.domain, workload.candidates
    ahead = candidates_to_count(domain, candidates)
    together = Structure(domain, ahead)
    first = f"{_sums(source)} {_tables(len(ahead), together.cells)} in {_passes(Passes.under(together))}"
    after_bins = f", once the bins of {', '.join(domain.undetermined)} are found" if domain.undetermined else ""
    if len(ahead) == len(candidates):
        return (f"{first}{after_bins or ', before anything is charged'}",)
    left = _tables(len(candidates) - len(ahead), Structure(domain, candidates).cells - together.cells)
    return (f"{first}{after_bins}; {left} more do not fit beside them and are counted when a step asks for them",)


def _sums(source: AnySource) -> str:
    name = default_registry().name_of("source", source)
    return f"source {type(source).__name__ if name is None else repr(name)} sums where its rows are:"


def _tables(number: int, cells: int) -> str:
    return f"{number:,} {'table' if number == 1 else 'tables'} ({human_bytes(8 * cells)})"


def _passes(passes: Passes) -> str:
    number = len(passes.statistics)
    return "one pass" if number == 1 else f"{number} passes, of at most {human_bytes(8 * passes.cells)} each"

"""Learner of conditional tables, each from its own noisy counts, after all tables were made to agree; no inference."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from dpgm_bayes_net.tables import Counts, conditionals, counts_of, faint_rows, make_tables_agree, reorder_families
from dpgm_core import (
    Clique,
    Curator,
    Dag,
    Fit,
    Inference,
    Model,
    NoisyTables,
    Progress,
    Randomness,
    Structure,
    Tables,
    at_least_zero,
    option,
)
from dpgm_core.learning import Resources

__all__ = ["Local"]

#: Bytes of the largest table on the way of exact inference, above which a note says that queries may not fit.
_ROOMY = 2**30


@frozen(kw_only=True)
class Local:
    """A Bayesian network over the structure's directed graph, each conditional table from its family's counts alone.

    >>> Local(smoothing=0).smoothing
    0
    """

    smoothing: float = option(
        0.25,
        help="pseudo-count added to each cell after negative counts are taken as 0; empty rows come out near uniform",
        unit="standard deviations of the noise in the cell",
        validator=at_least_zero,
    )

    def check(self, structure: Structure, inference: Inference) -> None:
        """Refuse a structure that is no directed graph, StructureError, and one whose conditional tables could not hold
        the domain's constraints. No engine is made: there is no inference."""
        Dag.of(structure).check_constraints()

    def estimate_resources(self, structure: Structure, inference: Inference) -> Resources:
        """Estimate by the number of cells, as measured on one table of 1000 x 500 labels; see `ResourceEstimator`."""
        return Resources.by_cells(structure, each=300, cpu_seconds=1e-5, calls=0)

    def learn(self, curator: Curator, inference: Inference, *, randomness: Randomness, progress: Progress) -> Fit:
        """Take one release and read the conditional tables off it. Raises StructureError for no directed graph."""
        Dag.of(curator.structure).check_constraints()  # before anything is paid
        return self._fit(curator.release(), curator.structure)

    def fitter(self, inference: Inference) -> Callable[[NoisyTables, Structure, Fit | None], Fit]:
        """Each fit is one of its own; the last one helps nothing."""
        return lambda release, structure, before: self._fit(release, structure)

    def refitter(self, model: Model, inference: Inference) -> Callable[[NoisyTables], Tables]:
        """The potentials that `learn` finds from each release."""
        return lambda release: self._fit(release, model.structure).model.potentials

    def _fit(self, release: NoisyTables, structure: Structure) -> Fit:
        dag = Dag.of(structure)
        counts = counts_of(*make_tables_agree(release), dag.families)
        network = Model.from_cpds(dag, conditionals(counts, self.smoothing, dag))
        return Fit(model=reorder_families(network, structure), notes=_notes(dag, counts))


def _notes(dag: Dag, counts: dict[str, Counts]) -> list[str]:
    notes = faint_rows(counts)
    partly = [family for family in dag.families if set(counts[family[0]].measured) != set(family)]
    if partly:
        notes.append(
            f"{len(partly)} of {len(dag.families)} families are in no table as a whole, {_spelled(partly[0])} the "
            "first; their conditional tables are of those parents that were measured with the child"
        )
    needed = 8 * dag.structure().elimination.peak
    if needed > _ROOMY:
        notes.append(
            "learning took no inference, but queries may not fit: exact inference over this graph needs a table of "
            f"10^{len(str(needed)) - 1} bytes; model.using('loopy-bp') answers approximately"
        )
    return notes


def _spelled(family: Clique) -> str:
    return " x ".join(family)

"""Binary models of interactions of up to t attributes: all parities at once, and exact maximum entropy over 2^p states.

Source: Zhang, Kamath, Kulkarni and Wu (2020), for the models; the release is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import attrs
import numpy as np
from attrs import frozen

from dpgm_core import (
    Clique,
    Curator,
    Fit,
    FloatArray,
    Inference,
    IntArray,
    Model,
    NoisyTables,
    OptionError,
    Progress,
    Randomness,
    Structure,
    StructureError,
    Tables,
    TooLarge,
    option,
    positive,
    whole,
)
from dpgm_mrf.entropy import Solution, maximum_entropy
from dpgm_mrf.polynomials import clique_of, local, maximal, monomials_of, potentials, strongest, transform
from dpgm_mrf.published_method import PublishedMethod

__all__ = ["MrfWalsh", "Parities", "parities_of"]

#: Attributes; all 2^16 states are held.
_MAX_ATTRIBUTES = 16
#: What `order` is unless said otherwise; it serves fewer attributes too.
_ORDER = 3


@frozen(kw_only=True)
class MrfWalsh:
    """A model of products of up to `order` binary attributes, fitted to noisy sums of these products.

    "release" measures every product inside the structure's cliques once, or tables that hold them, and takes the
    distribution of most entropy whose means are as measured, up to the noise: it minimises log Z(x) - x . y +
    sum_I v_I x_I^2 / 2, v_I the variance of the mean y_I, that of its noise (Laplace noise counts by its variance, as
    if it were Gaussian) and 1 / N for the records, which keeps x finite where the records rule something out.
    "paper" is the reproduction: half of the budget for Frank-Wolfe regressions, half for private multiplicative
    weights.

    Source: Zhang, Kamath, Kulkarni, Wu (2020); the specification's section 8 for the release.

    >>> MrfWalsh(order=2).method
    'release'
    """

    order: int = option(_ORDER, help="attributes of the largest products, at most", validator=whole)
    method: Literal["release", "paper"] = option(
        "release",
        help="release: all products at once, then maximum entropy; paper: the published algorithm, for comparison",
    )
    split: Literal["sharper", "contrasts", "even", "optimal"] = option(
        "sharper",
        help="contrasts: the sums of products themselves are measured, one noise for all; even, optimal: tables that "
        "hold them; sharper: contrasts where they have less noise than even tables, which pure budgets and cliques of "
        "very unequal size may turn round",
    )
    least: float | None = option(
        None,
        help="the least interaction that matters: the model's cliques are then the largest products above half of it, "
        "and it is fitted again to those; none: the model is over the structure given, nothing left out",
        unit="nats",
        validator=attrs.validators.optional(positive),
    )
    width: float | None = option(
        None,
        help="for method = 'paper', which needs it: the most that an attribute's interactions add up to, as public "
        "knowledge",
        unit="nats",
        validator=attrs.validators.optional(positive),
    )

    @property
    def takes_contrasts(self) -> bool:
        """True."""
        return True

    def check(self, structure: Structure, inference: Inference) -> None:
        """Refuse other than binary attributes and tied cliques, StructureError; more than 16 attributes, TooLarge; and
        an order that is too large, and the paper's method without a width, OptionError. No engine is asked."""
        self._attributes(structure)

    def planned_tables(self, structure: Structure) -> tuple[Structure, str | None] | None:
        """What the release measures: the products of up to `order` attributes inside the cliques; None of the paper's
        session. Raises what `check` raises."""
        self._attributes(structure)
        if self.method == "paper":
            return None
        return Structure(structure.domain, self._measured(structure)), self.split

    def learn(self, curator: Curator, inference: Inference, *, randomness: Randomness, progress: Progress) -> Fit:
        """Take one release of products, or what a saved one has, and fit it; "paper": a session, or a saved one.

        Raises StructureError, OptionError, TooLarge and BudgetError before anything is charged.
        """
        structure = curator.structure
        attributes = self._attributes(structure)
        if self.method == "paper":
            return self._published(curator, progress)
        if curator.replayed:  # whatever it holds, tables of cells too
            release = curator.release()
        else:
            release = curator.release(cliques=self._measured(structure), split=self.split)
        solution = self._solved(release, structure)
        if self.least is not None:
            structure = strongest(structure, attributes, solution.coefficients, self.least / 2)
            solution = self._solved(release, structure, solution.coefficients)
        return self._fit(solution, structure)

    def _published(self, curator: Curator, progress: Progress) -> Fit:
        """Learn by the paper's algorithm, in a new session or from the steps of a saved one."""
        structure, attributes = curator.structure, self._attributes(curator.structure)
        run = PublishedMethod(structure=structure, attributes=attributes, order=self.order, width=self.width or 0.0)
        release = curator.release() if curator.replayed else run.measure(curator, progress)
        coefficients = run.coefficients(release, 0.0 if self.least is None else self.least / 2)
        if self.least is not None:
            structure = strongest(structure, attributes, coefficients, 0.0)
        return Fit(
            model=Model(structure, potentials(structure, attributes, coefficients)),
            notes=[
                "the paper's algorithm, for comparison: interactions are those of regressions, and the model's tables "
                "are not fitted to the records; method = 'release' is more accurate at the same budget"
            ],
        )

    def fitter(self, inference: Inference) -> Callable[[NoisyTables, Structure, Fit | None], Fit]:
        """Fits over each structure as it is, `least` or not; the last fit helps nothing. OptionError for "paper"."""
        self._check_released()
        return lambda release, structure, before: self._fit(self._solved(release, structure), structure)

    def refitter(self, model: Model, inference: Inference) -> Callable[[NoisyTables], Tables]:
        """Fits to releases like the model's, over its structure. Raises OptionError for "paper"."""
        self._check_released()
        return lambda release: self._fit(self._solved(release, model.structure), model.structure).model.potentials

    def _check_released(self) -> None:
        if self.method == "paper":
            raise OptionError(
                "method = 'paper' opens a session of its own and learns from no other release; use method = 'release'"
            )

    def _attributes(self, structure: Structure) -> tuple[str, ...]:
        """Return the attributes in cliques, in the domain's order; raise what `check` raises."""
        if max(structure.multiplicities) > 1:
            raise StructureError("mrf-walsh cannot tie cliques: each has products of its own; untie them")
        within = {name for clique in structure.cliques for name in clique}
        sizes = structure.domain.sizes
        names = tuple(name for name in structure.domain.names if name in within)
        other = [f"{name!r} ({sizes[name]})" for name in names if sizes[name] != 2]
        if other:
            raise StructureError(
                f"mrf-walsh learns attributes of two labels, and these have another number: {', '.join(other[:8])}"
                f"{', ...' if len(other) > 8 else ''}; leave them out, merge their labels, or use eb-map"
            )
        if len(names) > _MAX_ATTRIBUTES:
            raise TooLarge(
                f"{len(names)} attributes have 2^{len(names)} states, and mrf-walsh holds all states of at most "
                f"{_MAX_ATTRIBUTES}; name cliques of fewer attributes, or choose pairs by mrf-select and learn them "
                "with eb-map"
            )
        if self.order > max(len(names), _ORDER):
            raise OptionError(
                f"order = {self.order} asks for products of more attributes than the {len(names)} there are; set order "
                f"to at most {max(len(names), 1)}"
            )
        if self.method == "paper" and not names:
            raise StructureError("method = 'paper' needs attributes, and the structure's cliques have none")
        if self.method == "paper" and self.width is None:
            raise OptionError(
                "method = 'paper' needs width, the most that an attribute's interactions add up to, as public "
                "knowledge; state it, or use method = 'release', which needs none"
            )
        return names

    def _measured(self, structure: Structure) -> list[Clique]:
        """The largest products of at most `order` attributes inside the cliques."""
        attributes = self._attributes(structure)
        largest = maximal(monomials_of(structure, attributes, self.order), 1 << len(attributes))
        return [clique_of(one, attributes) for one in largest] or [()]

    def _solved(self, release: NoisyTables, structure: Structure, start: FloatArray | None = None) -> Solution:
        attributes = self._attributes(structure)
        parities = parities_of(release, attributes, monomials_of(structure, attributes, self.order))
        variances = parities.variances + 1 / release.total
        return maximum_entropy(1 << len(attributes), parities.monomials, parities.values, variances, start=start)

    def _fit(self, solution: Solution, structure: Structure) -> Fit:
        notes = []
        if not solution.converged:
            notes.append(
                f"not converged: the largest derivative is {solution.slope:.2g} after {len(solution.trace)} steps; the "
                "measured products contradict each other by more than their noise"
            )
        return Fit(
            model=Model(structure, potentials(structure, self._attributes(structure), solution.coefficients)),
            trace=[{"gradient": slope} for slope in solution.trace],
            converged=solution.converged,
            certificate={"gradient": solution.slope},
            notes=notes,
        )


# --------------------------------------------------------------------------------------------------
# Noisy parities from a release of contrasts or of tables of cells. Post-processing.


@frozen(kw_only=True, eq=False)
class Parities:
    """Noisy means of monomials.

    monomials: (m,), each once. values: their noisy means, (m,), between -1 and 1. variances: of their noise, (m,).
    """

    monomials: IntArray
    values: FloatArray
    variances: FloatArray


def parities_of(release: NoisyTables, attributes: Sequence[str], monomials: IntArray) -> Parities:
    """The means of those of the monomials wanted that the release tells, each over all its tables by their noise.

    A table of contrasts tells the product of its own clique. A table of cells tells all monomials inside it, each with
    noise of 2^k times a cell's variance, and with independent noise where the cells' is Gaussian. What noise takes
    beyond -1 and 1 is put there.
    """
    contrasts = release.measurement.contrasts
    precision, weighted = np.zeros((2, 1 << len(attributes)))
    for number, group in enumerate(release.structure.groups):
        own, size = local(group[0], attributes), release.structure.sizes[number]
        total = release.totals[number]
        with np.errstate(over="ignore"):
            variance = release.variances[number] / total * (size / total)
        if not 0 < variance < np.inf:
            continue  # noise so wide tells nothing
        means = transform(release.tables.group(number).reshape(-1).astype(np.float64)) / total
        inside = slice(size - 1, size) if contrasts else slice(0, size)
        precision[own[inside]] += 1 / variance
        weighted[own[inside]] += means[inside] / variance
    measured = monomials[precision[monomials] > 0]
    return Parities(
        monomials=measured,
        values=np.clip(weighted[measured] / precision[measured], -1.0, 1.0),
        variances=1 / precision[measured],
    )

"""Subjects of checks: a component, how to make it, and the capabilities it declares or shows by its behaviour."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from dpgm_core._util.randomness import Randomness, SeededRandomness, SystemRandomness
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import BudgetError, OptionError, StructureError, TooLarge
from dpgm_core.inference.collective.contract import Collective
from dpgm_core.inference.contract import Batched, Engine, Inference, SecondOrder
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.learning.contract import ContrastLearner, Learner
from dpgm_core.learning.selector import Selector, VotingSelector
from dpgm_core.learning.selector_run import split_votes
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.mechanism import Mechanism, Noise
from dpgm_core.privacy.sensitivity import Sensitivity
from dpgm_core.privacy.terms import Terms
from dpgm_core.sources.contract import AnySource
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.workload import Workload
from dpgm_testing.cases import BINARY_CHAIN, CHAIN, DIRECTED_CHAIN, SHAPES, binary_form, directed_form, shapes_of
from dpgm_testing.check import CheckFailed, Profile, Unserved

__all__ = [
    "ClassSubject",
    "CollectiveSubject",
    "InferenceSubject",
    "LearnerSubject",
    "MechanismSubject",
    "SelectorSubject",
    "SourceSubject",
    "Subject",
]

ONE = Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)

#: Plain cliques, both relations, tied tables (one cell moved by 3) and several rows: how one person may move counts.
SENSITIVITIES = {
    "one cell": ONE,
    "two cells": Sensitivity(l0=2, l1=2, l2_squared=2, linf=1),
    "five cells": Sensitivity(l0=5, l1=5, l2_squared=5, linf=1),
    "one cell by three": Sensitivity(l0=3, l1=3, l2_squared=9, linf=3),
    "two cells by three": Sensitivity(l0=6, l1=6, l2_squared=18, linf=3),
    "two tables, two rows": Sensitivity(l0=4, l1=4, l2_squared=8, linf=2),
}

#: One of each kind is asked for; what is refused with BudgetError is not supported.
BUDGETS = {
    "pure": (Budget.pure("1/100"), Budget.pure("1/10"), Budget.pure(1), Budget.pure("7/3")),
    "zcdp": (Budget.zcdp("1/20000"), Budget.zcdp("1/200"), Budget.zcdp("1/2"), Budget.zcdp(2)),
    "approx": (Budget.approx(1, "1e-6"), Budget.approx("1/2", "1e-3"), Budget.approx(2, "1e-9")),
    "gdp": (Budget.gdp("1/100"), Budget.gdp("1/10"), Budget.gdp("1/2"), Budget.gdp(2)),
}


class Subject:
    """A component under test.

    component: a ready instance (a source's class). profile: how far to go. name: how to call it in messages.
    """

    def __init__(self, component: Any, profile: Profile, name: str) -> None:
        self.component, self.profile, self.name = component, profile, name

    @cached_property
    def capabilities(self) -> frozenset[str]:
        """What it declares, or shows by what it refuses."""
        return frozenset()

    def why_skipped(self, needs: str) -> str:
        """Why a check that needs this capability is not run."""
        return f"needs {needs!r}, which {self.name} does not declare"


class ClassSubject(Subject):
    """A class of core itself (LiveCurator, Ledger) or a patched copy; `component` is the class."""


class MechanismSubject(Subject):
    """A mechanism; its capabilities are the budget kinds it does not refuse."""

    component: Mechanism

    @cached_property
    def capabilities(self) -> frozenset[str]:
        """Budget kinds served, and "argument" unless the noise draws from randomness of its own."""
        own = {"argument"} if self.component.own_randomness is None else set()
        return frozenset(own | {kind for kind, budgets in BUDGETS.items() if self._serves(budgets[1])})

    def _serves(self, budget: Budget) -> bool:
        try:
            self.component.noise(ONE, budget)
        except BudgetError:
            return False
        except Exception:  # not a refusal: the checks of this kind shall run, and say so
            return True
        return True

    def randomness(self, seed: int) -> Randomness:
        """Repeatable, unless the noise draws from randomness of its own, which no seed can steer."""
        return SeededRandomness(seed) if "argument" in self.capabilities else SystemRandomness()

    @property
    def draws(self) -> int:
        """How many samples a statistical check takes: a tenth of the profile's from randomness of its own, because
        other libraries' samplers are slow (an error of the scale below 3 % then goes unseen).
        """
        return self.profile.draws if "argument" in self.capabilities else self.profile.draws // 10

    def exact(self, noise: Noise) -> bool:
        """Whether the noise is whole-numbered, as it declares (`integers-in-integers-out` holds it to that)."""
        return noise.exact

    def served(self, sensitivity: Sensitivity, budget: Budget) -> Noise | None:
        """The noise, or None where it is refused with BudgetError (too wide, say)."""
        try:
            return self.component.noise(sensitivity, budget)
        except BudgetError:
            return None

    def noises(self, kind: str | None = None) -> list[tuple[str, Sensitivity, Budget, Noise]]:
        """(what it is, sensitivity, budget, noise) for every sensitivity and budget of the kinds served.

        Calibrated once: a noise is a frozen value, and a dozen checks look at it.
        """
        kinds = [one for one in BUDGETS if one in self.capabilities] if kind is None else [kind]
        for one in kinds:
            if one not in self._calibrated:
                self._calibrated[one] = [
                    (f"{budget}, {what}", sensitivity, budget, self.component.noise(sensitivity, budget))
                    for budget in BUDGETS[one]
                    for what, sensitivity in SENSITIVITIES.items()
                ]
        return [case for one in kinds for case in self._calibrated[one]]

    @cached_property
    def _calibrated(self) -> dict[str, list[tuple[str, Sensitivity, Budget, Noise]]]:
        return {}

    def one_per_kind(self) -> list[tuple[str, Sensitivity, Budget, Noise]]:
        """One middling noise for each budget kind served, calibrated to one person moving one cell by three."""
        what = "one cell by three"
        return [
            (f"{budget}, {what}", SENSITIVITIES[what], budget, self.component.noise(SENSITIVITIES[what], budget))
            for budget in (BUDGETS[kind][-2] for kind in BUDGETS if kind in self.capabilities)
        ]


class InferenceSubject(Subject):
    """An inference engine's factory; compiles structures once.

    A component that serves small cliques only says so in `max_order`, the most attributes of several labels in one.
    """

    component: Inference

    def engine(self, structure: Structure) -> Engine:
        """The engine for a structure, fresh. Beyond `max_order`: Unserved if it is refused, else CheckFailed."""
        most = self.component.max_order
        sizes = structure.domain.sizes
        order = max(sum(sizes[name] > 1 for name in clique) for clique in structure.cliques)
        if most is None or order <= most:
            return self.component.compile(structure)
        try:
            self.component.compile(structure)
        except (StructureError, TooLarge):
            raise Unserved(f"cliques of {order} attributes are beyond max_order = {most}") from None
        raise CheckFailed(f"max_order is {most}, but a clique of {order} attributes is compiled, not refused")

    @cached_property
    def capabilities(self) -> frozenset[str]:
        """What its engines declare for a chain, "exact" if they call themselves exact there, "curvature" and "many" if
        they have the methods, and "constraints" if they say so of a constrained domain."""
        from dpgm_testing.cases import constrained_structures
        from dpgm_testing.strategies import awkward_structures

        found: set[str] = set()
        try:
            engine = self.engine(awkward_structures()["chain"])
            found |= set(engine.capabilities) | ({"exact"} if engine.exact else set())
            found |= {"curvature"} if isinstance(engine, SecondOrder) else set()  # learners ask for the method
            found |= {"many"} if isinstance(engine, Batched) else set()
            found |= {"constraints"} & self.engine(constrained_structures()["derived"]).capabilities
        except TooLarge:
            pass
        except Exception:  # not a refusal: every check shall run, and say so
            found |= {"exact"}
        return frozenset(found)


class CollectiveSubject(Subject):
    """A collective engine's factory."""

    component: Collective

    @cached_property
    def capabilities(self) -> frozenset[str]:
        """ "certificate" if it gives a duality gap over an exact engine."""
        from dpgm_testing.evidence import solved

        try:
            return frozenset({"certificate"} if solved(self.component, "chain").gap is not None else ())
        except Exception:  # not a declaration: every check shall run, and say so
            return frozenset({"certificate"})


class LearnerSubject(Subject):
    """A learner; its capabilities are what it takes alone, or besides, as its `check` shows.

    "directed": directed graphs alone. "binary": attributes of two labels alone. "restricted": it refuses some of
    SHAPES, or other labels. "contrasts": it says that it learns from contrasts.
    """

    component: Learner

    @cached_property
    def directed(self) -> bool:
        """Whether it takes directed graphs alone: `check` refuses a chain with StructureError, not its graph."""
        return self._takes_only(DIRECTED_CHAIN)

    @cached_property
    def binary(self) -> bool:
        """Whether it takes attributes of two labels alone: `check` refuses those of three with StructureError."""
        return not self.directed and self._takes_only(BINARY_CHAIN)

    @cached_property
    def refused(self) -> frozenset[str]:
        """Which of SHAPES its `check` refuses with StructureError, though it takes a chain."""
        if self.directed or not self._takes(self.chain):
            return frozenset()
        return frozenset(name for name, structure in SHAPES.items() if self._refuses(structure))

    def _takes_only(self, form: Structure) -> bool:
        return self._refuses(CHAIN) and self._takes(form)

    def _refuses(self, structure: Structure) -> bool:
        try:
            self.component.check(structure, JunctionTree())
        except StructureError:
            return True
        except Exception:  # not a refusal: the checks shall run, and say so
            return False
        return False

    def _takes(self, structure: Structure) -> bool:
        try:
            self.component.check(structure, JunctionTree())
        except Exception:
            return False
        return True

    @property
    def chain(self) -> Structure:
        """What most checks have it learn."""
        return BINARY_CHAIN if self.binary else CHAIN

    def in_domain(self, structure: Structure) -> Structure:
        """The structure, over attributes of two labels for a learner of no other."""
        return binary_form(structure) if self.binary else structure

    @cached_property
    def capabilities(self) -> frozenset[str]:
        """What it shows by what it refuses, and says."""
        shown = {
            "directed": self.directed,
            "binary": self.binary,
            "restricted": self.binary or self.refused,
            "contrasts": isinstance(self.component, ContrastLearner),
        }
        return frozenset(name for name, one in shown.items() if one)

    def why_skipped(self, needs: str) -> str:
        """What it does instead."""
        if needs == "contrasts":
            return f"about learners that learn from contrasts; {self.name} does not say so"
        if needs == "restricted":
            return f"about learners that take some structures alone; {self.name} refuses none of the kit's"
        return f"about learners that take directed graphs alone; {self.name} takes a chain of cliques"

    def served(self, structure: Structure) -> Structure:
        """The structure, in its directed form or its binary one for a learner that takes no other; Unserved where there
        is none, and where it is of a shape that the learner refuses."""
        structure = self.in_domain(structure)
        shapes = shapes_of(structure) & self.refused
        if shapes and self._refuses(structure):
            raise Unserved(f"{structure} has {', '.join(sorted(shapes))}, which {self.name} refuses")
        if not self.directed:
            return structure
        form = directed_form(structure)
        if form is None:
            raise Unserved(f"{structure} has no directed form, and {self.name} takes no other")
        return form


def plan_by(selector: Selector, workload: Workload, budget: Budget, terms: Terms) -> object:
    """What a selector plans for a session of this budget, its votes announced if it has some; raises its refusals."""
    votes, left = split_votes(selector, budget)
    if votes is not None and isinstance(selector, VotingSelector):
        selector.foretell(workload, votes, terms)
    return selector.plan(workload, left, terms)


class SelectorSubject(Subject):
    """A selector; its capabilities are the budget kinds that its plan does not refuse.

    kept: what checks have found out and others may look at, by name.
    """

    component: Selector

    def __init__(self, component: Any, profile: Profile, name: str) -> None:
        super().__init__(component, profile, name)
        self.kept: dict[str, Any] = {}

    @cached_property
    def capabilities(self) -> frozenset[str]:
        """Of "pure" and "zcdp" those served, and "approx" of one that has records vote, who serves no other."""
        budgets = {"pure": Budget.pure(1), "zcdp": Budget.zcdp("1/2")}
        if isinstance(self.component, VotingSelector):
            budgets["approx"] = Budget.approx(5, "1e-6")
        return frozenset(kind for kind, budget in budgets.items() if self._serves(budget))

    def _serves(self, budget: Budget) -> bool:
        workload = Workload.all(Domain.from_sizes(dict.fromkeys("abc", 2)), order=2)
        try:
            plan_by(self.component, workload, budget, Terms(neighbours="add-remove"))
        except BudgetError:
            return False
        except Exception:  # not a refusal: the checks of this kind shall run, and say so
            return True
        return True


class SourceSubject(Subject):
    """A kind of source; `open` makes one that holds the given records.

    open(table, folder): table is a pyarrow Table of texts, codes, numbers and nulls; folder is empty and may be
    written to. None: nothing is known of how to give it records, so checks that need "records" are skipped.
    kept: what one check has found out and others look at too, by name, because a sum may be slow to begin.
    """

    def __init__(
        self,
        component: Any,
        profile: Profile,
        name: str,
        open_records: Callable[[Any, Path], AnySource] | None,
        features: Mapping[str, bool],
    ) -> None:
        super().__init__(component, profile, name)
        self.open_records, self.features = open_records, features
        self.kept: dict[str, Any] = {}

    @cached_property
    def capabilities(self) -> frozenset[str]:
        """ "records" if the kit can give it records, and then the features it declares; nothing without."""
        if self.open_records is None:
            return frozenset()
        return frozenset({"records"} | {name for name, present in self.features.items() if present})

    def why_skipped(self, needs: str) -> str:
        """Why a check is not run; where no records can be given, what would do."""
        if self.open_records is not None:
            return super().why_skipped(needs)
        return (
            f"needs records, and {self.name} does not say how it is given some: declare "
            "Component(..., records='package.module:function')"
        )

    def open(self, table: Any, folder: Path) -> AnySource:
        """A source that holds the table's records. Raises CheckFailed for anything else."""
        if self.open_records is None:
            raise OptionError(f"{self.name} does not say how it is given records")
        made: AnySource = self.open_records(table, folder)
        if not issubclass(type(made), self.component):  # another class could be right where this one is wrong
            raise CheckFailed(f"records made a {type(made).__name__}, not a {self.component.__name__} with the rows")
        return made

"""Dry runs of learners without records: their requests, for plans and for refusals before a charge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import NoReturn

from attrs import field, frozen

from dpgm_core._util.progress import silent
from dpgm_core._util.randomness import SeededRandomness
from dpgm_core.errors import BudgetError, DpgmError, IncompatiblePlugin, OptionError
from dpgm_core.inference.contract import Inference
from dpgm_core.learning.contract import Learner, MeasuresOtherTables
from dpgm_core.privacy.budget import Budget, check_split
from dpgm_core.privacy.mechanism import Noise
from dpgm_core.privacy.rounds import check_rounds_budget
from dpgm_core.privacy.terms import Terms
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure

__all__ = ["DryRun", "planned_tables"]


def planned_tables(learner: object, structure: Structure) -> tuple[Structure | None, str | None]:
    """Return the tables that a learner plans to measure for a model over the structure, and its split of the budget.

    (None, None) without a plan: it is expected to release the structure's tables, with the run's split. Raises what the
    learner raises, and IncompatiblePlugin for an answer that no curator would follow.
    """
    if not isinstance(learner, MeasuresOtherTables):
        return None, None
    wrong = f"learner {type(learner).__name__} plans "
    answer: object = learner.planned_tables(structure)
    if answer is None:
        return None, None
    if not isinstance(answer, tuple) or len(answer) != 2 or not isinstance(answer[0], Structure):
        raise IncompatiblePlugin(f"{wrong}{type(answer).__name__}, not a pair of a Structure and a split")
    measured, split = answer
    if measured.domain != structure.domain:
        raise IncompatiblePlugin(f"{wrong}tables over another domain than the model's")
    for clique in measured.cliques:
        if structure.covering(clique) is None:
            raise IncompatiblePlugin(f"{wrong}a table of {clique!r}, which no clique of the model contains")
    if split is None:
        return measured, None
    try:
        return measured, check_split(split)
    except OptionError as error:
        raise IncompatiblePlugin(f"{wrong}no split: {error}") from None


@frozen(kw_only=True)
class DryRun:
    """A learner and all that it would learn with, except records.

    served: the tables of the one saved release that the curator replays; None: the curator has records. noises: of its
    tables, where they are known.
    """

    learner: Learner
    inference: Inference
    structure: Structure
    terms: Terms
    budget: Budget
    served: Structure | None = None
    noises: tuple[Noise, ...] = ()

    def requests(self) -> tuple[str, ...]:
        """Return what the learner asks a curator for, in the words of `Probe`, where each request is refused.

        Empty if it fails before the first, for a reason that it can tell with a release at hand. Raises its refusal, if
        that comes before any request.
        """
        probe = Probe(
            structure=self.structure, terms=self.terms, budget=self.budget, served=self.served, noises=self.noises
        )
        try:
            self.learner.learn(probe, self.inference, randomness=SeededRandomness(0), progress=silent)
        except DpgmError:
            if not probe.requests:
                raise
        except Exception:  # a fault, which is reported where it costs
            pass
        return tuple(probe.requests)

    def first_request(self) -> str | None:
        """Return the first of `requests`, or None."""
        return next(iter(self.requests()), None)


@frozen(kw_only=True, eq=False)
class Probe:
    """Curator that records requests and refuses them.

    served: the tables of the saved release that it seems to replay; None: it seems to have records. requests:
    "release", "part" for a release of a part of the budget, "tables" for other tables than those served, "rounds" or
    "session".
    """

    structure: Structure
    terms: Terms
    budget: Budget
    released: tuple[NoisyTables, ...] = ()
    conversion_delta: Fraction | None = None
    pooled: bool = False
    contrasts: bool = False
    served: Structure | None = None
    noises: tuple[Noise, ...] = ()
    requests: list[str] = field(factory=list)

    @property
    def replayed(self) -> bool:
        """Whether it seems to replay a saved release."""
        return self.served is not None

    @property
    def remaining(self) -> Budget:
        """The whole budget."""
        return self.budget

    def release(
        self,
        *,
        budget: object = None,
        cliques: Iterable[Clique] | None = None,
        accept: Callable[[Sequence[Noise]], None] | None = None,
        **_: object,
    ) -> NoReturn:
        """Raise BudgetError, or what `accept` raises: a rehearsal is over then, and the request comes after."""
        what = "release" if budget in (None, self.budget) else "part"
        if what == "release" and cliques is not None and self.served is not None:
            named = {frozenset((one,) if isinstance(one, str) else one) for one in cliques}
            what = what if named == {frozenset(one) for one in self.served.cliques} else "tables"
        if accept is not None:
            if self.noises:
                accept(self.noises)  # what it refuses of them counts, as no request came before
            self.requests.append(what)
            accept(())
        self._refuse(what)

    def rounds(self, n: int, **_: object) -> NoReturn:
        """Raise BudgetError, which is core's own refusal for mu."""
        check_rounds_budget(self.budget)
        self._refuse("rounds")

    def session(self, **_: object) -> NoReturn:
        """Raise BudgetError."""
        self._refuse("session")

    def _refuse(self, what: str) -> NoReturn:
        self.requests.append(what)
        raise BudgetError("this curator only finds out what a learner asks for")

"""Dry runs of learners without records: their requests, for plans and for refusals before a charge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import NoReturn

from attrs import field, frozen

from dpgm_core.errors import BudgetError, DpgmError, IncompatiblePlugin, OptionError
from dpgm_core.inference.contract import Inference
from dpgm_core.learning.contract import Learner, MeasuresOtherTables
from dpgm_core.noise.contract import Noise
from dpgm_core.noise.split import check_split
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.terms import Terms
from dpgm_core.progress import silent
from dpgm_core.randomness import SeededRandomness
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure import Clique, Structure

__all__ = ["Probe", "first_asked", "planned_tables", "in_turn"]


def planned_tables(learner: object, structure: Structure) -> tuple[Structure | None, str | None]:
    """The tables that a learner says it will measure for a model over the structure, and how it divides the budget.

    (None, None) of one that says nothing: it is expected to release the structure's tables, divided as the run says.
    Raises what the learner raises, and IncompatiblePlugin for an answer that no curator would follow.
    """
    if not isinstance(learner, MeasuresOtherTables):
        return None, None
    wrong = f"learner {type(learner).__name__} foresees "
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


def first_asked(
    learner: Learner,
    inference: Inference,
    structure: Structure,
    terms: Terms,
    budget: Budget,
    served: Structure | None = None,
) -> str | None:
    """What it asks a curator with this budget for first, in the words of `Probe`; None if it fails before, for a reason
    that it can tell with a release in hand. Raises its refusal, if that comes before it has asked for anything.

    served: the tables of the one saved release that the curator replays; None: the curator has records.
    """
    return next(iter(in_turn(learner, inference, structure, terms, budget, served)), None)


def in_turn(
    learner: Learner,
    inference: Inference,
    structure: Structure,
    terms: Terms,
    budget: Budget,
    served: Structure | None = None,
) -> tuple[str, ...]:
    """All that it asks for, one after the other, where each is refused; see `first_asked`."""
    probe = Probe(structure=structure, terms=terms, budget=budget, served=served)
    try:
        learner.learn(probe, inference, randomness=SeededRandomness(0), progress=silent)
    except DpgmError:
        if not probe.asked:
            raise
    except Exception:  # a fault, which is told where it costs
        pass
    return tuple(probe.asked)


@frozen(kw_only=True, eq=False)
class Probe:
    """A curator that notes what it is asked for and gives nothing.

    served: the tables of the saved release that it seems to replay; None: it seems to have records. asked: "release",
    "part" for a release of a part of the budget, "tables" for other tables than those served, "rounds" or "session".
    """

    structure: Structure
    terms: Terms
    budget: Budget
    released: tuple[NoisyTables, ...] = ()
    conversion_delta: Fraction | None = None
    pooled: bool = False
    contrasts: bool = False
    served: Structure | None = None
    asked: list[str] = field(factory=list)

    @property
    def replayed(self) -> bool:
        """Whether it seems to replay a saved release."""
        return self.served is not None

    @property
    def remaining(self) -> Budget:
        """All of it."""
        return self.budget

    def release(
        self,
        *,
        budget: object = None,
        cliques: Iterable[Clique] | None = None,
        accept: Callable[[Sequence[Noise]], None] | None = None,
        **_: object,
    ) -> NoReturn:
        """Raises BudgetError, or what `accept` raises: a rehearsal is over then, and what is asked for comes after."""
        what = "release" if budget in (None, self.budget) else "part"
        if what == "release" and cliques is not None and self.served is not None:
            named = {frozenset((one,) if isinstance(one, str) else one) for one in cliques}
            what = what if named == {frozenset(one) for one in self.served.cliques} else "tables"
        if accept is not None:
            self.asked.append(what)
            accept(())
        self._refuse(what)

    def rounds(self, n: int, **_: object) -> NoReturn:
        """Raises BudgetError."""
        self._refuse("rounds")

    def session(self, **_: object) -> NoReturn:
        """Raises BudgetError."""
        self._refuse("session")

    def _refuse(self, what: str) -> NoReturn:
        self.asked.append(what)
        raise BudgetError("this curator only finds out what a learner asks for")

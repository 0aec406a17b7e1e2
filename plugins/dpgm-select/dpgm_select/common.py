"""Helpers of all selectors: refusals, one-way tables with merged codes, and scores of candidates against a model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from attrs import field, frozen

from dpgm_core import (
    Budget,
    BudgetError,
    Clique,
    Fit,
    Fitting,
    FloatArray,
    Session,
    Structure,
    StructureError,
    TableDistance,
    Terms,
    TooLarge,
    Workload,
    flag,
    option,
)
from dpgm_core.learning import Limits, ModelSize, fit_bytes, fit_seconds, share_of
from dpgm_core.privacy import temperature
from dpgm_select.merging import find_merges, measured_before, merge_session_codes
from dpgm_select.spending import epsilon_of, noise_of

__all__ = [
    "Growth",
    "Options",
    "check_choice",
    "check_workload",
    "choose_forest",
    "count_edges",
    "informative_candidates",
    "score_candidates",
    "larger_candidates",
    "noise_alone",
    "measure_attributes",
    "single_candidates",
    "clique_text",
    "predict_tables",
]


@frozen(kw_only=True)
class Options:
    """The options that all selectors have."""

    merge: bool = option(
        True, help="first merge codes whose noisy counts are below 2 standard deviations", validator=flag
    )
    max_fit_seconds: float = fit_seconds(
        1.0,
        "tables with which a fit's exact inferences are predicted to take longer are left out",
    )
    max_fit_bytes: int = fit_bytes(2**22)

    @property
    def merges_codes(self) -> bool:
        """See `MergingSelector`."""
        return self.merge

    def limits(self, share: float = 1.0, *, least: ModelSize | None = None) -> Limits:
        """The limits at this share of the budget used. least: a model that is within them whatever they are."""
        seconds, memory = (0.0, 0) if least is None else (least.seconds(), least.memory())
        share = min(share, 1.0)
        return Limits(
            seconds=max(seconds, self.max_fit_seconds * share),
            memory=max(memory, math.floor(self.max_fit_bytes * share)),
        )

    def check_room(self, workload: Workload) -> list[str]:
        """Refuse limits that no pair can meet; where only merged codes may meet them that is a note, and so is how many
        candidates they leave out from the start."""
        limits, candidates = self.limits(), larger_candidates(workload)
        if workload.domain.scopes:  # whose cliques are in every model
            size = ModelSize(workload.domain, single_candidates(workload))
            if any(size.fits(pair, limits) for pair in larger_candidates(workload, 2)):
                return []
        else:
            alone = sum(workload.domain.sizes[name] for (name,) in single_candidates(workload))
            if limits.allows(workload.max_cells, max(map(len, workload.weights)), outside=alone):
                return []  # without a look at what may be 100,000 candidates
            shapes = [workload.domain.shape(clique) for clique in candidates]
            cells = [min(math.prod(one), workload.max_cells) for one in shapes]  # once codes are merged
            fitting = [
                limits.allows(most, len(one), outside=alone - sum(one)) for most, one in zip(cells, shapes, strict=True)
            ]
            if any(fits and len(shape) == 2 for fits, shape in zip(fitting, shapes, strict=True)):
                return self.left_out(fitting.count(False), len(candidates))
        why = f"with any pair of attributes the inferences of a fit would take {self._beyond}"
        if workload.domain.scopes:
            why += ", the tables of constraints among them"
        if not self.merge:
            raise TooLarge(f"{why}, so there is nothing to choose; raise them")
        return [
            f"{why}, unless enough rare codes are merged; else single attributes get all of the budget, so raise them"
        ]

    def left_out(self, count: int, candidates: int, when: str = "") -> list[str]:
        """Return a note on so many of the candidates that the limits leave out, if there are any."""
        why = f"with any of them the inferences of a fit would take {self._beyond}"
        return [f"{count:,} of {candidates:,} candidates are left out{when}, as {why}"] if count else []

    @property
    def _beyond(self) -> str:
        limits = f"max_fit_seconds = {self.max_fit_seconds:g} or max_fit_bytes = {self.max_fit_bytes:,}"
        return f"more than {limits}, as predicted"

    def limits_by_name(self) -> dict[str, float]:
        """Return the limits as a plan states them."""
        return {"max_fit_seconds": self.max_fit_seconds, "max_fit_bytes": self.max_fit_bytes}


@frozen(kw_only=True, eq=False)
class Growth:
    """The tables measured so far, each once, and the size of a model of them."""

    session: Session
    size: ModelSize
    cliques: dict[Clique, None] = field(factory=dict)

    def add(self, *cliques: Clique) -> None:
        """Take tables that were measured."""
        for clique in cliques:
            self.cliques[clique] = None
            self.size.add(clique)

    @property
    def structure(self) -> Structure:
        """One clique for each measured table, nested ones too: learners then judge each by itself."""
        return Structure(self.session.domain, list(self.cliques))

    def fitted(self, fitting: Fitting, before: Fit | None = None) -> Fit:
        """The learner's model of all that was measured."""
        return fitting(self.session.pooled(), self.structure, before)

    def widest(self) -> dict[Clique, float]:
        """The tables that no other one holds, at equal weights; without those of merged codes alone."""
        sizes = self.session.domain.sizes
        widest = [one for one in self.cliques if not any(set(one) < set(other) for other in self.cliques)]
        informative = [one for one in widest if any(sizes[name] > 1 for name in one)]
        return dict.fromkeys(informative or widest, 1.0)

    def left_out(self, candidates: Sequence[Clique], options: Options) -> list[str]:
        """Return a note on candidates that can no longer be measured for the time that they would take."""
        count = sum(not self.size.may_fit(clique, options.limits()) for clique in candidates)
        return options.left_out(count, len(candidates), " at the end")


def single_candidates(workload: Workload) -> list[Clique]:
    """The candidates of one attribute: all attributes of the workload."""
    return [clique for clique in workload.candidates if len(clique) == 1]


def larger_candidates(workload: Workload, most: int | None = None) -> list[Clique]:
    """The candidates of two attributes and more, up to `most`."""
    return [clique for clique in workload.candidates if 1 < len(clique) <= (most or len(clique))]


def informative_candidates(session: Session, most: int | None = None) -> list[Clique]:
    """The candidates of two attributes and more, up to `most`, without those that have more than `max_cells` cells as
    codes are counted now, and those that hold an attribute of one code.

    Merging may leave an attribute one code. A table with it is the table of its other attributes, which are a candidate
    themselves, or one of the attributes that were measured alone.
    """
    sizes = session.domain.sizes
    return [
        one
        for one in session.workload.measurable(session.domain)
        if 1 < len(one) <= (most or len(one)) and all(sizes[name] > 1 for name in one)
    ]


def noise_alone(alone: Budget, terms: Terms, workload: Workload) -> float:
    """The standard deviation of the noise in the tables of one attribute, which share this budget; records."""
    return noise_of(share_of(alone, 1 / len(single_candidates(workload))), terms, workload)


def check_workload(name: str, workload: Workload, budget: Budget) -> None:
    """Refuse a workload with nothing to choose from, and a budget of a session's that is none."""
    if not larger_candidates(workload, 2):
        if len(workload.domain) == 1:
            why = "domain has one attribute; name it as the one clique"
        elif max(map(len, workload.weights)) == 1:
            why = "workload is of single attributes; ask for larger sets, by order = 2, targets or weights"
            try:
                Workload.all(workload.domain, order=2)
            except TooLarge:  # which is why its default is of single ones
                why = (
                    f"workload is of single attributes, as {len(workload.domain)} of them have too many pairs to "
                    'choose from; name targets = ["COLUMN"] under [workload], leave columns out of the domain, or '
                    "measure each column alone by structure = { singletons = true }"
                )
        else:
            why = "workload has none that may be measured; raise max_cells, take from `never`, or name the cliques"
        raise StructureError(f"selector {name!r} chooses between pairs of attributes, but the {why}")
    if budget.kind == "approx":
        raise BudgetError(f"a session spends epsilon or rho, not {budget}; plan with its zcdp_within()")


def check_choice(name: str, each: Budget, terms: Terms) -> None:
    """Refuse, in a plan, choices for so little each that the session would refuse them."""
    try:
        temperature(each, 1, TableDistance.move(terms))
    except BudgetError:
        rows = f", or fewer rows_per_person than {terms.rows_per_person:,}" if terms.rows_per_person > 1 else ""
        raise BudgetError(
            f"selector {name!r} would choose by epsilon = {epsilon_of(each):.2g} at a time, so every candidate would "
            f"be as likely as any other; give more budget, or fewer attributes{rows}"
        ) from None


def measure_attributes(session: Session, budget: Budget, merge: bool) -> tuple[Growth, list[str]]:
    """Measure every attribute alone and merge rare codes; what was measured, and notes."""
    alone = single_candidates(session.workload)
    measured = session.measure(alone, budget)
    notes = merge_session_codes(session, find_merges(measured, session)) if merge else []
    if notes and not informative_candidates(session):
        few = f"no two attributes with several codes each, and at most {session.workload.max_cells:,} cells together"
        notes.append(f"{few}, were left, so no table of several is measured")
    growth = Growth(session=session, size=ModelSize(session.domain))
    growth.add(*alone, *measured_before(session))
    return growth, notes


def score_candidates(
    session: Session,
    cliques: Sequence[Clique],
    probabilities: Mapping[Clique, FloatArray],
    total: float,
    a_cell: float = 0.0,
    *,
    weighted: bool = True,
) -> TableDistance:
    """The candidates' scores: how far each is from a model's table, less a_cell records for each of its cells.

    probabilities: probabilities by clique. total: N. weighted: by the workload.
    """
    structure = Structure.of_distinct(session.domain, cliques)
    return TableDistance(
        candidates=structure,
        predicted=np.concatenate([probabilities[clique].reshape(-1) for clique in cliques]) * total,
        weights=tuple(session.workload.weight(clique) for clique in cliques) if weighted else (),
        offsets=tuple(a_cell * cells for cells in structure.sizes),
    )


def predict_tables(fit: Fit, cliques: Sequence[Clique]) -> dict[Clique, FloatArray]:
    """The model's probabilities of each clique, over the codes as the session counts them now."""
    return fit.model.coarse.marginals_of(cliques)


def clique_text(clique: Clique) -> str:
    """A clique as traces have it."""
    return " x ".join(clique)


class _Components:
    """Connected components of the attributes, by tables that were measured already."""

    def __init__(self, alone: Sequence[Clique], measured: Iterable[Clique] = ()) -> None:
        self._of = {name: name for (name,) in alone}
        for first, *others in measured:
            for other in others:
                self.join((first, other))

    def together(self, pair: Clique) -> bool:
        """Whether both are joined already."""
        return self._of[pair[0]] == self._of[pair[1]]

    def join(self, pair: Clique) -> None:
        """Put an edge between them."""
        one, two = self._of[pair[0]], self._of[pair[1]]
        self._of = {name: one if component == two else component for name, component in self._of.items()}


def count_edges(workload: Workload, pairs: Iterable[Clique] | None = None, measured: Iterable[Clique] = ()) -> int:
    """Return the number of edges of a spanning forest of pairs: of all the workload's, if none are named.

    measured: cliques whose attributes are connected before.
    """
    joined, count = _Components(single_candidates(workload), measured), 0
    for pair in larger_candidates(workload, 2) if pairs is None else pairs:
        if not joined.together(pair):
            joined.join(pair)
            count += 1
    return count


def choose_forest(
    growth: Growth,
    pairs: Iterable[Clique],
    fitting_in: Callable[[Sequence[Clique]], list[Clique]],
    scored: Callable[[Sequence[Clique]], TableDistance],
    each: Budget,
) -> list[Clique]:
    """Choose a spanning forest by the exponential mechanism, and add its pairs to a growth.

    fitting_in: those of some pairs that the model has room for. scored: their scores. each: budget of an edge. A pair
    for which there is no room once the edges before it are in is left out, and its budget is lost.
    """
    session, chosen, left = growth.session, list[Clique](), count_edges(growth.session.workload)
    alone, out = single_candidates(session.workload), set[Clique]()
    while left:
        joined = _Components(alone, growth.cliques)
        fitting = fitting_in([one for one in pairs if one not in out and not joined.together(one)])
        picks = min(left, count_edges(session.workload, fitting, growth.cliques))
        if not picks:
            break
        connected = [clique for clique in growth.cliques if len(clique) > 1]
        for pair in session.select(scored(fitting), each * picks, picks, forest=connected).cliques:
            if fitting_in([pair]):
                growth.add(pair)
                chosen.append(pair)
            else:
                out.add(pair)
        left -= picks
    return chosen

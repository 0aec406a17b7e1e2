"""Two neighbouring data sets through a whole curator, from the source to the release, many times.

A release has many blocks of cells. Person j lives in block j of every table and moves nothing else, so one release is
one draw per block: the two data sets differ in block j by person j, who is there or not (add-remove), or in one cell of
the block or in the other (replace-one). To have all blocks at once, all persons are in the one state or all in the
other. What block j shows is the same as if person j alone had changed, because noise is independent for each cell: the
mechanism's contract. `blocks=1` needs no such word: there the two data sets are neighbours as they stand.
"""

import math
from collections.abc import Iterator
from fractions import Fraction

import attrs
import numpy as np
from attrs import frozen

from dpgm_core import (
    Array,
    Budget,
    BudgetError,
    ClippedScore,
    Contributions,
    Domain,
    LiveCurator,
    Mechanism,
    Noise,
    NoisyTables,
    Randomness,
    Sensitivity,
    Structure,
    Tables,
    Terms,
    make,
)
from dpgm_core.components.registry import default_registry
from dpgm_core.privacy import analytic_delta, least_variance
from dpgm_core.sources import as_source

#: Of one draw: large enough that 5 % shows, small enough that 10^6 draws see both sides.
BUDGETS = {"pure": Budget.pure(3), "zcdp": Budget.zcdp(1), "approx": Budget.approx("43/20", "67/1000")}
#: What a kind of noise costs without slack; other budgets it serves by a conversion, which hides a few percent.
TIGHT = {"laplace": ("pure",), "gaussian": ("zcdp", "approx")}
RELATIONS = ("add-remove", "replace-one")
RATE = Fraction(1, 2)
# A cell is half of it away at most, all others less than one unit, which is truncated to nothing: see ClippedScores.
CLIP = ClippedScore(norm=Fraction(1, 2), grid=512)
CLIP_BLOCKS = 1000


@frozen(kw_only=True)
class Case:
    """One claim to be audited. name: the mechanism's. kind: of release. budget: of one draw."""

    name: str
    mechanism: Mechanism
    relation: str
    kind: str
    budget: Budget

    def __str__(self) -> str:
        return f"{self.name}, {self.relation}, {self.kind}, {self.budget}"

    @property
    def tight(self) -> bool:
        """Whether the claim has no slack, so that a little less noise breaks it."""
        event = self.mechanism.noise(Sensitivity(l0=1, l1=1, l2_squared=1, linf=1), self.budget).event
        return self.budget.kind in next(kinds for law, kinds in TIGHT.items() if law in event.kind)


def all_cases() -> Iterator[Case]:
    """Every registered mechanism with every budget it serves, under both relations, for each kind of release."""
    for name in sorted(offer.component.name for offer in default_registry() if offer.component.kind == "mechanism"):
        mechanism = make("mechanism", name)
        for kind, budget in BUDGETS.items():
            try:
                mechanism.noise(Sensitivity(l0=1, l1=1, l2_squared=1, linf=1), budget)
            except BudgetError:
                continue
            for relation in RELATIONS:
                whole = ["tables", "contributions"] + (["rounds"] if kind != "approx" else [])
                part = ["sampled rounds"] if kind == "pure" else []
                clipped = ["clipped rounds"] if kind == "zcdp" and relation == "add-remove" else []
                for how in whole + part + clipped:
                    case = Case(name=name, mechanism=mechanism, relation=relation, kind=how, budget=budget)
                    if how != "clipped rounds" or case.tight:  # an L1 over all cells hides what one cell shows
                        yield case


def draws(case: Case, present: bool, count: int, blocks: int) -> tuple[Array, Array, Noise]:
    """What `count` blocks show when their persons are in one state or the other; (count, cells of a block).

    Also the change of a block between the states, (cells of a block,), in units of the release, and its noise.
    """
    if case.kind == "clipped rounds":
        blocks = CLIP_BLOCKS
    wide = 1 if case.relation == "add-remove" else 2
    names = ["a"] if case.kind in ("contributions", "clipped rounds") else ["a", "b"]
    structure = Structure(Domain.from_sizes(dict.fromkeys(names, blocks * wide)), [(name,) for name in names])
    persons = np.arange(blocks) if present or wide == 2 else np.arange(0)
    codes = persons * wide + (0 if present or wide == 1 else 1)
    releases = -(-count // blocks)
    if case.kind in ("tables", "contributions"):
        made = _released(case, structure, codes, releases)
    else:
        made = _rounds(case, structure, codes, releases)
    shown = []
    for one in made:
        shown.append(np.concatenate([table.reshape(blocks, wide) for table in one.tables.arrays()], axis=1))
    unit = {"contributions": 5040, "clipped rounds": int(CLIP.norm * CLIP.grid)}.get(case.kind, 1)
    shift = np.tile([unit] if wide == 1 else [unit, -unit], len(names))
    return np.concatenate(shown)[:count], shift, one.noise[0]


def _released(case: Case, structure: Structure, codes: Array, releases: int) -> Iterator[NoisyTables]:
    terms, rows = Terms(neighbours=case.relation, total=1000), 1
    if case.kind == "contributions":
        rows = 2  # of each person, in the same cell
        terms = Terms(
            neighbours=case.relation, person="id", rows_per_person=rows, contributions=Contributions(per="clique")
        )
    columns = {name: np.repeat(codes, rows) for name in structure.domain.names}
    source = as_source({"id": np.repeat(np.arange(len(codes)), rows)} | columns)
    for _ in range(releases):
        curator = LiveCurator(source, structure, case.mechanism, terms=terms, budget=case.budget)
        curator.release()
        yield curator.released[0]


def _rounds(case: Case, structure: Structure, codes: Array, releases: int) -> Iterator[NoisyTables]:
    source = as_source(dict.fromkeys(structure.domain.names, codes))
    terms = Terms(neighbours=case.relation, total=1000)
    clipped = case.kind == "clipped rounds"
    uniform = make("inference", "junction-tree").compile(structure).infer(Tables.zeros(structure))
    curator = LiveCurator(source, structure, case.mechanism, terms=terms, budget=case.budget * releases)
    opened = curator.rounds(
        releases, sampling_rate=RATE if case.kind == "sampled rounds" else 1, clip=CLIP if clipped else None
    )
    with opened as rounds:
        for _ in range(releases):
            yield rounds.next(uniform if clipped else None)


@frozen(kw_only=True)
class _ThinNoise:
    """Says what `inner` says, and draws from `thin`."""

    inner: Noise
    thin: Noise

    cost = property(lambda self: self.inner.cost)
    event = property(lambda self: self.inner.event)
    variance = property(lambda self: self.inner.variance)
    dual = property(lambda self: self.inner.dual)
    exact = property(lambda self: self.inner.exact)
    unsafe = property(lambda self: self.inner.unsafe)
    support = property(lambda self: self.inner.support)
    log_concave = property(lambda self: self.inner.log_concave)

    def draw(self, shape: tuple[int, ...], randomness: Randomness) -> Array:
        return self.thin.draw(shape, randomness)

    def logpdf(self, residual: Array) -> Array:
        return self.inner.logpdf(residual)

    def score(self, residual: Array) -> Array:
        return self.inner.score(residual)


@frozen(kw_only=True)
class Thin:
    """A mechanism whose noise is `factor` as wide as its claim needs, and says in every word that it is wide enough."""

    inner: Mechanism
    factor: Fraction

    own_randomness = property(lambda self: self.inner.own_randomness)

    def noise(self, sensitivity: Sensitivity, budget: Budget) -> Noise:
        honest = self.inner.noise(sensitivity, budget)
        width = Fraction(honest.event.scale) * self.factor
        if budget.kind == "approx" and sensitivity.linf > 1:  # where the mechanism's own proof takes up to 2 % more
            needed = least_variance(analytic_delta, sensitivity, budget.epsilon, budget.delta)
            width = Fraction(math.sqrt(needed)) * self.factor
        if "laplace" in honest.event.kind:
            more = Budget.pure(sensitivity.l1 / width)
        else:
            more = Budget.zcdp(sensitivity.l2_squared / (2 * width**2))
        return _ThinNoise(inner=honest, thin=self.inner.noise(sensitivity, more))


def thinned(case: Case, factor: Fraction) -> Case:
    """The same case with a mechanism that draws too little noise."""
    return attrs.evolve(case, mechanism=Thin(inner=case.mechanism, factor=factor))

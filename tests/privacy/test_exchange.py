"""What exchanging one person costs where a budget bounds adding or removing one: exact divergences between data sets of
equal N, of every kind of query, against `exchange_budget`.

Private bins and descents stand with their own brute force, in tests/privacy/test_bins.py and test_descent.py.
"""

import itertools
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve
from scipy.special import logsumexp

import dpgm_core as dpgm
from dpgm_core import Budget, ClippedScore, Domain, Structure, Terms, make
from dpgm_core.counting.clipped_scores import ClippedScores
from dpgm_core.counting.selection import distances, whole_scores
from dpgm_core.counting.table_counts import count
from dpgm_core.counting.votes import agreement_by_threshold, pair_sums
from dpgm_core.privacy.contrasts import products
from dpgm_core.privacy.ledger import Ledger
from dpgm_core.privacy.measurement import measure, noisy_contrasts
from dpgm_core.privacy.selection import SCORE_GRID, TableDistance, choose_units, cost_of, probabilities
from dpgm_core.privacy.terms import exchange_budget, exchange_text
from dpgm_core.privacy.votes import publication_odds
from dpgm_core.releases.release import condition_of
from dpgm_core.releases.session import caveats_of, score_sensitivity
from dpgm_core.sources import as_source
from dpgm_testing.privacy_loss import largest_loss, renyi_divergence

ORDERS = (1.01, 2.0, 16.0)
RHO, EPSILON, APPROX = Budget.zcdp("1/2"), Budget.pure(1), Budget.approx(1, "1e-6")
TERMS = Terms(neighbours="add-remove", total="public")
CUBE = Domain.from_sizes(dict.fromkeys("abc", 2))
ROWS = list(itertools.product((0, 1), repeat=3))
KINDS = {"gaussian": RHO, "laplace": EPSILON, "laplace under rho": RHO}


def counts(structure, rows):
    """True tables of these records."""
    return count(as_source(np.array(rows).reshape(len(rows), -1)), structure).tables


def lost(noises, shift, budget):
    """What shifted cells cost, as a multiple of the budget: sums over cells of the largest loss, or of the Renyi
    divergence over its order."""
    moved = [(noise, abs(int(step))) for noise, step in zip(noises, shift, strict=True) if step]
    if budget.kind == "pure":
        return sum(largest_loss(noise, step) for noise, step in moved) / float(budget.epsilon)
    known = {
        (id(noise), step, order): renyi_divergence(noise, step, order) for noise, step in moved for order in ORDERS
    }
    return max(sum(known[id(noise), step, order] for noise, step in moved) / order for order in ORDERS) / float(
        budget.rho
    )


def times(budget, tables_alone):
    """What is claimed, as a multiple of the budget."""
    claim = exchange_budget(budget, tables_alone=tables_alone)
    return float(claim.epsilon / budget.epsilon if budget.kind == "pure" else claim.rho / budget.rho)


STRUCTURES = {
    "a pair": Structure(CUBE, [("a", "b")]),
    "a chain": Structure.chain(CUBE),
    "tied": Structure(CUBE, [("a",)], tied=[[("a", "b"), ("b", "c")]]),
}


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES)
@pytest.mark.parametrize("kind", KINDS)
def test_tables(kind, structure, rows):
    """Claim: no exchange of a person of up to `rows` rows for one of as many costs more than 2 epsilon or 2 rho, and
    the worst one costs nearly that much. Laplace noise under rho stays below: it costs less than what is charged."""
    budget = KINDS[kind]
    terms = evolve(TERMS, person="id", rows_per_person=rows) if rows > 1 else TERMS
    measurement = measure(make("mechanism", kind.split()[0]), structure, terms, budget)
    noises = [noise for noise, size in zip(measurement.noise, structure.sizes, strict=True) for _ in range(size)]
    persons = list(itertools.combinations_with_replacement(ROWS, rows))
    vectors = {person: counts(structure, person).values for person in persons}
    shifts = {
        tuple(sorted(np.abs(one - other))): one - other for one, other in itertools.combinations(vectors.values(), 2)
    }
    worst = max(lost(noises, shift, budget) for shift in shifts.values())
    assert worst <= times(budget, True) * (1 + 1e-9)
    assert worst > 1.95 or kind == "laplace under rho"


CONTRASTS = {
    "three attributes": [("a",), ("b",), ("c",)],
    "a triangle": [("a", "b"), ("b", "c"), ("a", "c")],
    "one clique": [("a",), ("b",), ("a", "b")],
}


@pytest.mark.parametrize(("name", "attained"), [("three attributes", 4), ("a triangle", 8 / 3), ("one clique", 8 / 3)])
def test_contrasts(name, attained):
    """Claim: at most 4 rho, which 000 for 111 in three contrasts attains (2.0 at rho = 1/2); so 2 rho is false."""
    structure = Structure(CUBE, CONTRASTS[name])
    measurement = noisy_contrasts(make("mechanism", "gaussian"), structure, TERMS, RHO)
    sums = [products(counts(structure, [row])) for row in ROWS]
    worst = max(lost(measurement.noise, one - other, RHO) for one, other in itertools.combinations(sums, 2))
    assert worst == pytest.approx(attained, rel=0.01)
    assert 2 * 1.01 < worst <= times(RHO, False) * (1 + 1e-9)


def test_contrasts_under_pure_budgets():
    """Claim: at most 2 epsilon, attained."""
    structure = Structure(CUBE, CONTRASTS["three attributes"])
    measurement = noisy_contrasts(make("mechanism", "laplace"), structure, TERMS, EPSILON)
    one, other = (products(counts(structure, [row])) for row in (ROWS[0], ROWS[-1]))
    assert lost(measurement.noise, one - other, EPSILON) == pytest.approx(2, rel=1e-3)


def clipped(row):
    """The clipped score of one person, units."""
    clip = ClippedScore(norm=1, grid=64)
    statistic = ClippedScores(Structure(CUBE, [("a",), ("b",)]), clip=clip, mu=np.full(4, 0.5))
    codes = [np.array([row["abc".index(name)]], np.uint8) for name in statistic.columns]
    return statistic.partial(codes, np.array([1])), statistic.sensitivity(TERMS)


def test_clipped_scores():
    """Claim: two persons with opposite scores cost 4 rho, and no two cost more."""
    sensitivity = clipped(ROWS[0])[1]
    noise = make("mechanism", "gaussian").noise(sensitivity, RHO)
    moves = [clipped(one)[0] - clipped(other)[0] for one, other in itertools.combinations(ROWS, 2)]
    worst = max(lost([noise] * len(move), move, RHO) for move in moves)
    assert 3.95 < worst <= times(RHO, False) * (1 + 1e-9)


# One record is exchanged beside two others. Counts lie between the predictions, so that a record moves a distance down
# in one cell and up in the next.
PAIRS = Structure(CUBE, [("a", "b"), ("b", "c"), ("c",)])
SCORES = TableDistance(
    candidates=PAIRS, predicted=np.where(np.arange(PAIRS.cells) % 2 == 0, 50.0, 0.0), offsets=(100.0, 100.0, 50.0)
)
DISTANCES = [distances(counts(PAIRS, [row, ROWS[2], ROWS[5]]), SCORES) for row in ROWS]


@pytest.mark.parametrize("budget", [EPSILON, RHO], ids=lambda one: one.kind)
def test_choices(budget):
    """Claim: log ratios of an exponential choice are at most 2 epsilon and divergences at most 4 rho. One exchange has
    a divergence above 2 rho, so "twice the budget" is false."""
    grid, h = choose_units(budget, 1, 1)
    assert cost_of(h, 1, grid, budget.kind) <= budget
    laws = [np.array([float(p) for p in probabilities(whole_scores(one, SCORES, grid), h)]) for one in DISTANCES]
    worst = 0.0
    for one, other in itertools.permutations(laws, 2):
        logs = np.log(one / other)
        if budget.kind == "pure":
            worst = max(worst, float(np.abs(logs).max() / budget.epsilon))
        else:
            spread = [logsumexp((order - 1) * logs, b=one) / (order - 1) / order for order in ORDERS]
            worst = max(worst, float(max(spread) / budget.rho))
    assert (1.3 if budget.kind == "pure" else 2.5) < worst <= times(budget, False) * (1 + 1e-9)


def test_noisy_scores():
    """Claim: at most 4 rho, which an exchange that moves every score by 2 records attains; so 2 rho is false."""
    sensitivity = score_sensitivity(len(PAIRS.cliques), 1)
    noise = make("mechanism", "gaussian").noise(sensitivity, RHO)
    assert noise.variance > SCORE_GRID**2 / 4  # so wide that the divergence is that of continuous noise
    shifts = [one.astype(float) - other for one, other in itertools.combinations(DISTANCES, 2)]
    worst = max(float(shift @ shift) / (2 * noise.variance * float(RHO.rho)) for shift in shifts)
    assert worst == pytest.approx(times(RHO, False), rel=1e-3)


def test_votes():
    """Claim: an exchange that takes a threshold vote from certain to impossible has delta (1 + e^epsilon) delta at
    2 epsilon, attained: 3.7e-6 at (1, 1e-6). "Twice the budget" would say 2e-6."""
    pair = Structure(CUBE, [("a", "b")])

    def distance(rows):
        codes = [np.array([row[place] for row in rows], np.uint8) for place in (0, 1)]
        return agreement_by_threshold(pair_sums(pair, [(codes, None)]), Fraction(5), 1)

    odds = [float(one) for one in publication_odds(APPROX)]
    claim, others = exchange_budget(APPROX, tables_alone=False), [(0, 0, 0)] * 8 + [(0, 1, 0)]
    worst = 0.0
    for one, other in itertools.permutations([(0, 0, 0), (0, 1, 0)], 2):
        before, after = distance([*others, one]), distance([*others, other])
        q, p = (odds[min(each.distance, len(odds) - 1)] for each in (before, after))
        laws = [{before.edges: q, None: 1 - q}, {after.edges: p, None: 1 - p}]
        excess = sum(
            max(0.0, chance - math.exp(float(claim.epsilon)) * laws[1].get(what, 0.0))
            for what, chance in laws[0].items()
        )
        worst = max(worst, excess)
    assert 2e-6 < worst <= float(claim.delta) * (1 + 1e-12)
    assert worst == pytest.approx(3.71828e-6, rel=1e-5)


def test_subsamples():
    """Claim: an exchange on a subsample costs no more than twice what presence costs, exactly, at every output."""
    q, epsilon = 0.3, 2.0
    presence = math.log1p(q * math.expm1(epsilon))
    noise = make("mechanism", "laplace").noise(TERMS.sensitivity(Structure(CUBE, [("a",)])), Budget.pure(2))
    at = np.arange(-40.0, 41.0)
    logs = [np.asarray(noise.logpdf(at)), np.asarray(noise.logpdf(at - 1))]
    without = np.add.outer(logs[0], logs[0])
    one = np.logaddexp(math.log1p(-q) + without, math.log(q) + np.add.outer(logs[1], logs[0]))
    other = np.logaddexp(math.log1p(-q) + without, math.log(q) + np.add.outer(logs[0], logs[1]))
    worst = float(np.abs(one - other).max())
    assert presence < worst <= 2 * presence * (1 + 1e-12)


# --- what is said ---------------------------------------------------------------------------------------------------

CODES = np.array([[0, 0, 0], [1, 1, 1]] * 50)


def released(budget=RHO, split="even", total="public"):
    """Tables, or contrasts."""
    mechanism = "laplace" if budget.kind == "pure" else "gaussian"
    terms = evolve(TERMS, total=total)
    return dpgm.release(CODES, STRUCTURES["a pair"], budget, mechanism, terms=terms, split=split)


def opened(take):
    """What a session hands out."""
    curator = dpgm.LiveCurator(
        as_source(CODES), Structure.complete(CUBE), make("mechanism", "gaussian"), terms=TERMS, budget=RHO
    )
    with curator.session(workload=dpgm.Workload.all(CUBE, order=2)) as session:
        session.measure(["a"], session.budget * Fraction(1, 2))
        take(session)
    return curator.released[-1]


SAID = {
    "pure": ([(EPSILON, "even", "public")], "2 epsilon"),
    "tables": ([(RHO, "even", "public")], "2 rho"),
    "contrasts": ([(RHO, "contrasts", "public")], "4 rho"),
    "approx": ([(APPROX, "even", "public")], "(2 epsilon, (1 + e^epsilon) delta)"),
    "two kinds of query": ([(RHO, "even", "public"), (RHO, "contrasts", "estimated")], "4 rho"),
    "two kinds of budget": (
        [(EPSILON, "even", "public"), (RHO, "even", "public")],
        "(2 epsilon, (1 + e^epsilon) delta)",
    ),
}


@pytest.mark.parametrize("name", SAID)
def test_a_guarantee_states_what_its_releases_hold(name):
    """The bound of all releases together, once; in the guarantee, in conditions and in what is stamped."""
    asked, words = SAID[name]
    releases = [released(*one) for one in asked]
    assert condition_of(releases).endswith(f"one person the loss is at most {words})")
    model = dpgm.Model(
        STRUCTURES["a pair"],
        dpgm.Tables.zeros(STRUCTURES["a pair"]),
        releases=releases,
        conversion_delta=Fraction(1, 10**9),
    )
    assert model.guarantee().count("in one person the loss") == 1 and words in model.guarantee()
    assert caveats_of(releases) == (condition_of(releases),)
    if len(releases) == 1:
        assert words in releases[0].guarantee() and words in " ".join(releases[0].conditions())


def test_a_session_states_the_bound_of_all_its_steps():
    """Also one that has measured tables alone: it might have chosen, had its first tables said so."""
    for take in (lambda _: None, lambda session: session.measure(["b"], session.remaining)):
        assert "the loss is at most 4 rho)" in opened(take).guarantee()


def test_terms_alone_state_a_bound_for_every_kind():
    """Nothing is known of the release: no bound of a kind of query that holds for another one only."""
    words = exchange_text(["pure", "zcdp", "approx"], tables_alone=False)
    assert words == "2 epsilon, 4 rho or (2 epsilon, (1 + e^epsilon) delta)" and words in TERMS.condition
    for kind, budget in (("pure", EPSILON), ("zcdp", RHO), ("approx", APPROX)):
        for alone in (True, False):
            claim = exchange_budget(budget, tables_alone=alone)
            told = exchange_text([kind], tables_alone=alone)
            value = eval(  # the words, read as a formula
                told.replace("2 epsilon", "2 * epsilon")
                .replace(" rho", " * rho")
                .replace(") delta", ") * delta")
                .replace("^", "**"),
                {"e": math.e, "epsilon": float(budget.epsilon), "rho": float(budget.rho), "delta": float(budget.delta)},
            )
            wanted = {"pure": claim.epsilon, "zcdp": claim.rho, "approx": (claim.epsilon, claim.delta)}[kind]
            assert value == pytest.approx(tuple(map(float, wanted)) if kind == "approx" else float(wanted))


def test_the_page_states_the_same_bounds():
    """Those of `exchange_text`, in Greek letters."""
    page = " ".join((Path(__file__).parents[2] / "docs" / "privacy.md").read_text().split())
    said = page.partition("Between data sets of equal N that differ in one person the loss is at most ")[2][:70]
    for kind, alone in itertools.product(("pure", "zcdp", "approx"), (True, False)):
        words = exchange_text([kind], tables_alone=alone)
        for name, letter in (("epsilon", "\u03b5"), ("rho", "\u03c1"), ("delta", "\u03b4")):
            words = words.replace(f" {name}", letter).replace(name, letter)
        assert words in said


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        (EPSILON, "all charges cost at most epsilon = 2."),
        (RHO, "all charges cost at most rho = 2 (zCDP)."),
        (APPROX, "all charges cost at most (epsilon, delta) = (2, ~3.71828e-06)."),
        (Budget.approx(800, "1e-6"), "nothing is bounded."),
    ],
    ids=["pure", "zcdp", "approx", "no bound"],
)
def test_a_ledger_states_the_bound_of_all_charges(tmp_path, budget, words):
    """It does not know what was released, so it states that of every kind of query; nothing without a public N."""
    ledger = Ledger.create(tmp_path / "x.ledger", name="x", budget=budget, neighbours="add-remove")
    ledger.charge(budget * Fraction(1, 2))
    assert "differ in one person" not in ledger.describe()
    ledger.charge(budget * Fraction(1, 2), conditions=("conditional on public N",))
    assert f"in one person {words}" in ledger.describe()
    other = Ledger.create(tmp_path / "y.ledger", name="y", budget=budget, neighbours="replace-one", person="id")
    other.charge(budget, conditions=("conditional on public N",))
    assert "differ in one person" not in other.describe()

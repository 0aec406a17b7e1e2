"""What exchanging one person costs where a budget bounds adding or removing one: exact divergences between data sets of
equal N, of every kind of query, against `change_factor` and `Terms.exchange_factor`; and of larger changes.

Private bins and descents stand with their own brute force, in tests/privacy/test_bins.py and test_descent.py.
"""

import itertools
import math
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve
from scipy.optimize import brentq
from scipy.special import logsumexp

import dpgm_core as dpgm
from dpgm_core import Budget, ClippedScore, Domain, Sensitivity, Structure, Terms, make
from dpgm_core.counting.clipped_scores import ClippedScores
from dpgm_core.counting.scores import distances, whole_scores
from dpgm_core.counting.table_counts import count
from dpgm_core.counting.votes import agreement_by_threshold, pair_sums
from dpgm_core.privacy.contrasts import products
from dpgm_core.privacy.gaussian import discrete_delta, normal_delta
from dpgm_core.privacy.ledger import Ledger
from dpgm_core.privacy.measurement import measure, noisy_contrasts
from dpgm_core.privacy.selection import SCORE_GRID, TableDistance, choose_units, cost_of, probabilities
from dpgm_core.privacy.terms import change_factor, grow_budget, grow_text
from dpgm_core.privacy.votes import publication_odds
from dpgm_core.releases.release import condition_of
from dpgm_core.releases.session import caveats_of, score_sensitivity
from dpgm_core.sources import as_source
from dpgm_core.structure.tables import Tables
from dpgm_testing.privacy_loss import largest_loss, renyi_divergence

ORDERS = (1.01, 2.0, 16.0)
RHO, EPSILON, APPROX = Budget.zcdp("1/2"), Budget.pure(1), Budget.approx(1, "1e-6")
TERMS = Terms(neighbours="add-remove", total="public")
CUBE = Domain.from_sizes(dict.fromkeys("abc", 2))
ROWS = list(itertools.product((0, 1), repeat=3))
KINDS = {"gaussian": RHO, "laplace": EPSILON, "laplace under rho": RHO}


def counts(structure, rows):
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


def times(budget):
    """What is claimed of whatever is released, as a multiple of the budget."""
    return float(change_factor(budget.kind, 1, 1))


STRUCTURES = {
    "a pair": Structure(CUBE, [("a", "b")]),
    "a chain": Structure.chain(CUBE),
    "tied": Structure(CUBE, [("a",)], tied=[[("a", "b"), ("b", "c")]]),
}


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES)
@pytest.mark.parametrize("kind", KINDS)
def test_tables(kind, structure, rows):
    """No exchange costs more than 2 epsilon or 2 rho, and the worst nearly that; Laplace noise under rho costs less."""
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
    assert measurement.exchange_factor(budget.kind, terms) == change_factor(budget.kind, 1, 1, tables_alone=True) == 2
    assert worst <= 2 * (1 + 1e-9)
    assert worst > 1.95 or kind == "laplace under rho"


CONTRASTS = {
    "three attributes": [("a",), ("b",), ("c",)],
    "a triangle": [("a", "b"), ("b", "c"), ("a", "c")],
    "one clique": [("a",), ("b",), ("a", "b")],
    "three together": [clique for size in (1, 2, 3) for clique in itertools.combinations("abc", size)],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("name", "ratio"),
    [("three attributes", 2), ("a triangle", "4/3"), ("one clique", "4/3"), ("three together", "8/7")],
)
def test_contrasts(name, ratio, kind):
    """2 or 4/3 epsilon and twice that in rho, attained: 4 rho by 000 for 111 in three contrasts, so 2 rho is false."""
    budget, structure = KINDS[kind], Structure(CUBE, CONTRASTS[name])
    measurement = noisy_contrasts(make("mechanism", kind.split()[0]), structure, TERMS, budget)
    claim = measurement.exchange_factor(budget.kind, TERMS)
    assert claim == Fraction(ratio) * (2 if budget == RHO else 1) <= times(budget)
    sums = [products(counts(structure, [row])) for row in ROWS]
    worst = max(lost(measurement.noise, one - other, budget) for one, other in itertools.combinations(sums, 2))
    assert worst <= float(claim) * (1 + 1e-9)
    assert worst == pytest.approx(float(claim), rel=0.01) or kind == "laplace under rho"


@pytest.mark.parametrize("split", ["optimal", "even"])
def test_tables_of_one_cell_are_not_moved_by_an_exchange(split):
    """N beside one table: an exchange moves two cells; with a noise for each table the worst one counts."""
    structure = Structure(CUBE, [(), ("a",)])
    measurement = measure(make("mechanism", "gaussian"), structure, TERMS, RHO, split)
    noises = [noise for noise, size in zip(measurement.noise, structure.sizes, strict=True) for _ in range(size)]
    vectors = [counts(structure, [row]).values for row in ROWS]
    worst = max(lost(noises, one - other, RHO) for one, other in itertools.combinations(vectors, 2))
    claim = measurement.exchange_factor("zcdp", TERMS)
    assert claim == (1 if split == "even" else 2) and 0.95 * float(claim) ** 0.2 < worst <= float(claim) * (1 + 1e-9)


@pytest.mark.parametrize(("added", "removed"), [(1, 1), (2, 0), (2, 1), (2, 2), (3, 0)])
def test_larger_changes(added, removed):
    """So many persons move tables, and a contrast, by no more than the factors of L1, L2^2 and contrasts; attained."""
    structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    rows = list(itertools.product((0, 1), repeat=2))
    vectors = {
        size: [counts(structure, one) for one in itertools.combinations_with_replacement(rows, size)]
        for size in {added, removed} - {0}
    } | {0: [Tables.zeros(structure)]}
    moves = [one.values - other.values for one in vectors[added] for other in vectors[removed]]
    contrasts = [products(Tables(structure, move))[0] for move in moves]
    worst = (
        max(np.abs(move).sum() for move in moves), max(move @ move for move in moves), max(map(abs, contrasts)) ** 2
    )  # fmt: skip
    kinds = (("pure", False), ("zcdp", True), ("zcdp", False))
    assert worst == tuple(change_factor(kind, added, removed, tables_alone=alone) for kind, alone in kinds)


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
    assert 3.95 < worst <= times(RHO) * (1 + 1e-9)


# One record is exchanged beside two others. Counts lie between the predictions, so that a record moves a distance down
# in one cell and up in the next.
PAIRS = Structure(CUBE, [("a", "b"), ("b", "c"), ("c",)])
SCORES = TableDistance(
    candidates=PAIRS, predicted=np.where(np.arange(PAIRS.cells) % 2 == 0, 50.0, 0.0), offsets=(100.0, 100.0, 50.0)
)
DISTANCES = [distances(counts(PAIRS, [row, ROWS[2], ROWS[5]]), SCORES) for row in ROWS]


@pytest.mark.parametrize("budget", [EPSILON, RHO], ids=lambda one: one.kind)
def test_choices(budget):
    """Log ratios are at most 2 epsilon and divergences 4 rho; one exchange exceeds 2 rho."""
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
    assert (1.3 if budget.kind == "pure" else 2.5) < worst <= times(budget) * (1 + 1e-9)


def test_noisy_scores():
    """Claim: at most 4 rho, which an exchange that moves every score by 2 records attains; so 2 rho is false."""
    sensitivity = score_sensitivity(len(PAIRS.cliques), 1)
    noise = make("mechanism", "gaussian").noise(sensitivity, RHO)
    assert noise.variance > SCORE_GRID**2 / 4  # so wide that the divergence is that of continuous noise
    shifts = [one.astype(float) - other for one, other in itertools.combinations(DISTANCES, 2)]
    worst = max(float(shift @ shift) / (2 * noise.variance * float(RHO.rho)) for shift in shifts)
    assert worst == pytest.approx(times(RHO), rel=1e-3)


def test_votes():
    """An exchange that makes a certain vote impossible has delta (1 + e^epsilon) delta at 2 epsilon, attained."""
    pair = Structure(CUBE, [("a", "b")])

    def distance(rows):
        codes = [np.array([row[place] for row in rows], np.uint8) for place in (0, 1)]
        return agreement_by_threshold(pair_sums(pair, [(codes, None)]), Fraction(5), 1)

    odds = [float(one) for one in publication_odds(APPROX)]
    claim, others = grow_budget(APPROX, change_factor("approx", 1, 1)), [(0, 0, 0)] * 8 + [(0, 1, 0)]
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


CODES = np.array([[0, 0, 0], [1, 1, 1]] * 50)


def released(budget=RHO, split="even", total="public"):
    mechanism = "laplace" if budget.kind == "pure" else "gaussian"
    terms = evolve(TERMS, total=total)
    return dpgm.release(CODES, STRUCTURES["a pair"], budget, mechanism, terms=terms, split=split)


def opened(take):
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
    "contrasts": ([(RHO, "contrasts", "public")], "8/3 rho"),
    "approx": ([(APPROX, "even", "public")], "(2 epsilon, (1 + e^epsilon) delta)"),
    "two kinds of query": ([(RHO, "even", "public"), (RHO, "contrasts", "estimated")], "2 rho"),
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
    pair, delta = STRUCTURES["a pair"], Fraction(1, 10**9)
    model = dpgm.Model(pair, dpgm.Tables.zeros(pair), releases=releases, conversion_delta=delta)
    assert model.guarantee().count("in one person the loss") == 1 and words in model.guarantee()
    assert caveats_of(releases) == (condition_of(releases),)
    if len(releases) == 1:
        assert words in releases[0].guarantee() and words in " ".join(releases[0].conditions())


def test_a_session_states_the_bound_of_all_its_steps():
    """Also one that has measured tables alone: it might have chosen, had its first tables said so."""
    for take in (lambda _: None, lambda session: session.measure(["b"], session.remaining)):
        assert "the loss is at most 4 rho)" in opened(take).guarantee()


def valued(words, budget, **letters):
    """A text of `grow_text`, read as a formula."""
    formula = words.replace(") delta", ") * delta").replace("delta (", "delta * (").replace("^", "**")
    formula = re.sub(r"([0-9r/*]+) (epsilon|rho)", r"\1 * \2", formula)
    names = {"e": math.e, "epsilon": float(budget.epsilon), "rho": float(budget.rho), "delta": float(budget.delta)}
    return eval(formula, names | letters)


@pytest.mark.parametrize("budget", [EPSILON, RHO, APPROX], ids=lambda one: one.kind)
def test_words_say_what_is_computed(budget):
    """Of whole factors, of ratios and of groups of r units."""

    def parts(grown):
        return (
            (float(grown.epsilon), float(grown.delta)) if grown.kind == "approx" else float(grown.epsilon + grown.rho)
        )

    for factor in (Fraction(1), Fraction(2), Fraction(5), Fraction(8, 3)):
        grown = parts(grow_budget(budget, factor))
        assert valued(grow_text(budget.kind, factor), budget) == pytest.approx(grown, rel=1e-12)
    for size in (1, 2, 5):
        grown = parts(grow_budget(budget, change_factor(budget.kind, size)))
        assert valued(grow_text(budget.kind, "r"), budget, r=size) == pytest.approx(grown, rel=1e-12)


def test_terms_alone_state_a_bound_for_every_kind():
    """Nothing is known of the release: no bound of a kind of query that holds for another one only."""
    assert TERMS.condition.endswith("at most 2 epsilon, 4 rho, 4 mu^2 or (2 epsilon, (1 + e^epsilon) delta))")


def in_letters(words):
    """Words of `grow_text` as pages have them."""
    for name, letter in (("epsilon", "\u03b5"), ("rho", "\u03c1"), ("delta", "\u03b4")):
        words = words.replace(f") {name}", f"){letter}").replace(f"{name} (", f"{letter}(")
        words = re.sub(rf"(?<=[0-9r]) {name}", letter, words).replace(name, letter)
    return words.replace("r^2", "r\u00b2").replace(" - 1", " \u2212 1").replace(" / ", "/")


def test_the_page_states_the_same_bounds():
    """Those of `grow_text`, in Greek letters: of an exchange, and of r rows."""
    page = " ".join((Path(__file__).parents[2] / "docs" / "privacy.md").read_text().replace("*", "").split())
    said = page.partition("Between data sets of equal N that differ in one person the loss is at most ")[2][:100]
    for kind, alone in itertools.product(("pure", "zcdp", "approx"), (True, False)):
        assert in_letters(grow_text(kind, change_factor(kind, 1, 1, tables_alone=alone))) in said
    said = page.partition("a person with r rows is covered at ")[2][:70]
    for kind in ("pure", "zcdp", "approx"):
        assert in_letters(grow_text(kind, "r")) in said


def page_of_proofs():
    return " ".join((Path(__file__).parents[2] / "docs" / "proofs.md").read_text().split())


def epsilon_at(delta_of, delta=1e-6):
    return brentq(lambda epsilon: math.log(delta_of(epsilon)) - math.log(delta), 0.1, 9)


@pytest.mark.parametrize(("query", "moved", "square"), [("tables", 60, 2), ("single contrasts", 30, 4)])
def test_the_page_states_what_gaussian_noise_makes_of_an_exchange(query, moved, square):
    """Of 30 tables, or contrasts, the page's epsilon at the same delta, to .2 % (continuous noise)."""
    variance = Fraction(
        make("mechanism", "gaussian").noise(Sensitivity(l0=30, l1=30, l2_squared=30, linf=1), APPROX).sigma_squared
    )
    shift = Sensitivity(l0=moved, l1=60, l2_squared=30 * square, linf=60 // moved)
    epsilon = epsilon_at(lambda epsilon: discrete_delta(variance, shift, Fraction(epsilon)))
    mu = brentq(lambda mu: math.log(float(normal_delta(mu, np.array(1.0)))) - math.log(1e-6), 0.1, 9)
    smooth = epsilon_at(lambda epsilon: float(normal_delta(mu * square**0.5, np.array(epsilon))))
    assert f"\u03b5 = {smooth:.3f} in {query}" in page_of_proofs() and epsilon == pytest.approx(smooth, rel=2e-3)


def test_the_page_states_the_factors():
    """Of tables, of contrasts in the order of the page, and of anything at (1, 1e-6)."""
    general = grow_budget(APPROX, change_factor("approx", 1, 1))
    assert f"\u03b5 = {general.epsilon} at \u03b4 = {1e6 * float(general.delta):.2f} ·" in page_of_proofs()
    tables = [Structure(CUBE, [("a", "b")]), Structure(CUBE, [(), ("a",)])]
    contrasts = [[("a",)], *(CONTRASTS[name] for name in ("one clique", "three together", "a triangle"))]
    for start, structures, sums in (
        ("tables", tables, False),
        ("contrasts", [Structure(CUBE, one) for one in contrasts], True),
    ):
        factors = [
            "; ".join(str(TERMS.exchange_factor(kind, [one], contrasts=sums)) for one in structures)
            for kind in ("pure", "zcdp")
        ]
        assert re.search(rf"\| {start}[^|]* \| {factors[0]} \| {factors[1]} \|", page_of_proofs())


@pytest.mark.parametrize(("rate", "factor"), [(0.5, 2), (1, 1)])
def test_a_subsample_has_the_factor_of_whatever_could_be_released(rate, factor):
    """What an exchange costs on a subsample is no ratio of sensitivities; here that is 1, as of the whole."""
    structure = Structure(CUBE, [(), ("a",)])
    curator = dpgm.LiveCurator(as_source(CODES), structure, make("mechanism", "laplace"), terms=TERMS, budget=EPSILON)
    with curator.rounds(2, sampling_rate=rate) as rounds:
        assert rounds.next().exchange_factor("pure") == factor


@pytest.mark.parametrize("split", ["even", "contrasts", {"tables": "contrasts", "holdout": 0.1}])
def test_a_plan_says_what_the_guarantee_will(split):
    """The same condition, of the same noise; that of a holdout too."""
    structure = Structure(CUBE, [("a", "b"), ("b", "c")])
    planned = dpgm.plan(structure, RHO, "gaussian", terms=TERMS, split=split)
    fit = dpgm.fit(CODES, structure, RHO, "gaussian", terms=TERMS, split=split)
    assert planned.condition == condition_of(fit.model.releases)
    assert planned.to_dict()["conditions"] == [planned.condition] and planned.condition in planned._repr_html_()


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

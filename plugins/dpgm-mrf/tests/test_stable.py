"""mrf-stable: the graph that votes agree on, what is refused before a charge, and what a verdict of nothing leaves."""

from fractions import Fraction

import numpy as np
import pytest
from dpgm_mrf.stable import MrfStable

import dpgm_core as dpgm
from dpgm_core.learning import likely_distance
from tests.fixtures import Unread

BUDGET = dpgm.Budget.approx("1.5", "2e-6")  # half of it for votes: (0.75, 1e-6)
KNOWN = dpgm.Terms(neighbours="add-remove", total=5400)


def domain(p=6):
    return dpgm.Domain.from_sizes({f"x{number}": 2 for number in range(p)})


def matching(count, p=6, coupling=0.4, seed=1):
    draw = np.random.default_rng(seed)
    codes = draw.integers(0, 2, (count, p))
    alike = 1 / (1 + np.exp(-2 * coupling))
    for i in range(0, p, 2):
        codes[:, i + 1] = np.where(draw.random(count) < alike, codes[:, i], 1 - codes[:, i])
    return codes


PAIRS = (("x0", "x1"), ("x2", "x3"), ("x4", "x5"))


def learned(selector="mrf-stable", budget=BUDGET, codes=None, terms=KNOWN, workload=None, **more):
    return dpgm.fit(
        matching(5400) if codes is None else codes,
        selector,
        budget,
        learner="naive-mle",
        workload=workload or dpgm.Workload.all(domain(), order=2),
        terms=terms,
        randomness=dpgm.SeededRandomness(1),
        **more,
    )


@pytest.mark.landing
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_a_matching_is_selected_and_learned(tmp_path, neighbours):
    """90 blocks of 60 records; one charge of all, and the guarantee says both parts."""
    book = dpgm.Ledger.create(tmp_path / "x", name="x", budget=BUDGET, neighbours=neighbours)
    done = learned(terms=dpgm.Terms(neighbours=neighbours), ledger=book)
    assert done.model.structure.cliques == PAIRS and done.model.cost == BUDGET
    assert [one.cost for one in book.history()] == [BUDGET]
    assert f"with {BUDGET}" in done.model.guarantee() and "(0.75, 1e-06) for votes" in done.model.guarantee()
    assert done.model.marginal(("x0", "x1"))[0, 0] == pytest.approx(0.345, abs=0.04)
    verdict = done.releases[0].steps[0]
    assert verdict.voter.blocks == 90 and verdict.edges == PAIRS


def test_workloads_of_order_3_vote_on_their_pairs():
    """And never on a pair that is under `never`."""
    done = learned(workload=dpgm.Workload.all(domain(), order=3, never=[("x4", "x5")]))
    assert done.model.structure.cliques == (*PAIRS[:2], ("x4",), ("x5",))
    assert len(done.releases[0].steps[0].candidates) == 14


def parities(count, cliques, p=6, coupling=0.6, seed=1):
    """Records of exp(A product) for each of the cliques, which have no attribute in common."""
    draw = np.random.default_rng(seed)
    codes = draw.integers(0, 2, (count, p))
    for first, *others in cliques:
        even = draw.random(count) < 1 / (1 + np.exp(-2 * coupling))
        codes[:, first] = (codes[:, others].sum(axis=1) + 1 - even) % 2
    return codes


TRIPLES = [("x0", "x1", "x2"), ("x3", "x4", "x5")]


def test_parities_of_three_are_selected_and_learned(tmp_path):
    """Order 2 finds no pair, order 3 two triples and their parameter; the file states the order."""
    codes = parities(9000, [(0, 1, 2), (3, 4, 5)])
    settings = {"codes": codes, "terms": dpgm.Terms(neighbours="add-remove", total=9000)}
    settings["workload"] = dpgm.Workload.all(domain(), order=3)
    pairs = learned(**settings)
    assert pairs.releases[0].steps[0].edges == () and "the votes agree on 0 of 15 pairs" in pairs.notes
    done = learned({"name": "mrf-stable", "order": 3}, **settings)
    assert done.model.structure.cliques == tuple(TRIPLES) and done.model.cost == BUDGET
    even = sum(done.model.marginal(TRIPLES[0])[cell] for cell in ((0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0)))
    assert even == pytest.approx(1 / (1 + np.exp(-1.2)), abs=0.03)
    done.model.save(tmp_path / "x")
    again = dpgm.load_model(tmp_path / "x")
    assert again.release.steps[0] == done.releases[0].steps[0] and again.release.steps[0].voter.order == 3
    assert again.marginal(TRIPLES[0]) == pytest.approx(done.model.marginal(TRIPLES[0]))


def test_what_is_measured_of_a_graph():
    """Of all cliques of up to `order` attributes the candidates, none inside another; an edge in none of them alone."""
    wanted = {
        2: ["01", "02", "03", "12", "13", "23", "34"],
        3: ["012", "013", "023", "123", "34"],
        4: ["0123", "34"],
    }
    edges = [tuple(f"x{place}" for place in pair) for pair in wanted[2]]
    for order, cliques in wanted.items():
        found = MrfStable(order=order)._measured(dpgm.Workload.all(domain(), order=4), edges)
        assert sorted("".join(one).replace("x", "") for one in found) == cliques
    few = dpgm.Workload.all(domain(), order=2)
    assert MrfStable(order=3)._measured(few, edges) == edges and MrfStable(order=3)._measured(few, []) == []
    plan = dpgm.plan_selection(MrfStable(order=3), BUDGET, few, terms=KNOWN)
    assert plan.order == 3 and any("give the workload order = 3" in note for note in plan.notes)


def test_a_threshold_takes_a_tenth_of_the_records():
    """500 records of a matching, whose pairs correlate by .38."""
    terms = dpgm.Terms(neighbours="add-remove", total=500)
    done = learned({"name": "mrf-stable", "method": "threshold", "tau": 0.22}, codes=matching(500), terms=terms)
    assert done.model.structure.cliques == PAIRS


def test_a_verdict_of_nothing_is_no_error():
    """Too few records a block: the attributes alone are measured, and the note says what was spent on what."""
    done = learned(codes=matching(900), terms=dpgm.Terms(neighbours="add-remove", total=900))
    assert done.model.structure.cliques == tuple((f"x{number}",) for number in range(6))
    (note,) = [one for one in done.notes if "stable enough" in one]
    assert "(0.75, 1e-06) by 90 blocks of about 10 records" in note and done.model.cost == BUDGET
    assert done.releases[0].steps[0].edges is None
    graph = learned(
        {"name": "mrf-stable", "method": "graph"}, codes=matching(900), terms=dpgm.Terms(neighbours="add-remove")
    )
    assert "by 90 blocks were" in next(one for one in graph.notes if "stable enough" in one)


def test_blocks_come_from_the_budget_alone():
    """4.5 times the distance that is published with probability .9, of the votes' part; or as many as are asked for."""
    for budget, share in ((BUDGET, 0.5), (dpgm.Budget.approx(3, "1e-9"), 0.25)):
        chooser = MrfStable(share=share)
        votes = chooser.votes(budget)
        assert votes == budget * Fraction(str(share))
        said = chooser.foretell(dpgm.Workload.all(domain(), order=2), votes, KNOWN)
        assert said[0].startswith(f"{-(-9 * likely_distance(votes) // 2)} blocks vote")
    few = MrfStable(blocks=30).foretell(dpgm.Workload.all(domain(), order=2), dpgm.Budget.approx("0.75", "1e-6"), KNOWN)
    assert few[0].startswith("30 blocks") and "takes 39" in few[1]


def test_a_plan_says_what_to_expect():
    """The votes' part, and the rho of the rest by the exact curve; few records a block are said, of a known N."""
    workload = dpgm.Workload.all(domain(), order=2)
    plan = dpgm.plan_selection("mrf-stable", BUDGET, workload, terms=dpgm.Terms(neighbours="add-remove"))
    votes, rest = plan.shares.values()
    assert votes == dpgm.Budget.approx("0.75", "1e-6")
    assert 1.15 < rest.rho / votes.zcdp_within().rho < 1.16
    assert any("exact Gaussian curve narrows noise by 6.9% against" in note for note in plan.notes)
    assert plan.candidates == 15 and not any("records" in note and "about" in note for note in plan.notes)
    for more in ({"records": 2000}, {"terms": dpgm.Terms(neighbours="add-remove", total=2000)}):
        plan = dpgm.plan_selection(
            "mrf-stable", BUDGET, workload, **({"terms": dpgm.Terms(neighbours="add-remove")} | more)
        )
        assert any("about 22 records" in note for note in plan.notes)


WRONG = {
    "share": [0, 1, True, None],
    "blocks": [0, True, 1.5, "many", None],
    "least": [0, float("inf")],
    "penalty": [-1, "1"],
    "order": [True, "3"],
    "method": ["all"],
}


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"method": "threshold"}, "needs tau"),
        ({"tau": 0.3}, "tau is for method 'threshold'"),
        *(({"method": "threshold", "tau": wrong}, "tau must be a number") for wrong in (1, float("nan"))),
        ({"method": "threshold", "tau": 0.3, "order": 3}, "leave order out"),
        ({"order": 1}, "order must be a whole number of at least 2"),
        *(({name: value}, f"{name} must be") for name, values in WRONG.items() for value in values),
    ],
)
def test_options_that_are_refused(options, why):
    with pytest.raises(dpgm.OptionError, match=why):
        MrfStable(**options)
    with pytest.raises(dpgm.OptionError):
        dpgm.make("selector", {"name": "mrf-stable", **options})


TERNARY = dpgm.Domain.from_sizes({"x0": 2, "x1": 3})
ASKED = {
    "pure": ({}, dpgm.Budget.pure(1), {}, dpgm.BudgetError, "delta is what it spends"),
    "zcdp": ({}, dpgm.Budget.zcdp(1), {}, dpgm.BudgetError, "delta is what it spends"),
    "too little": ({}, dpgm.Budget.approx("1e-6", "1e-9"), {}, dpgm.BudgetError, "too little for votes"),
    "estimated": ({"method": "threshold", "tau": 0.3}, BUDGET, {}, dpgm.OptionError, "declare the number of records"),
    "estimated, replaced": (
        {"method": "threshold", "tau": 0.3},
        BUDGET,
        {"terms": dpgm.Terms(neighbours="replace-one")},
        dpgm.OptionError,
        "declare the number of records",
    ),
    "three labels": (
        {"method": "threshold", "tau": 0.3},
        BUDGET,
        {"terms": KNOWN, "workload": dpgm.Workload.all(TERNARY, order=2)},
        dpgm.StructureError,
        "two labels",
    ),
    "three labels, products": (
        {"order": 3},
        BUDGET,
        {"workload": dpgm.Workload.all(TERNARY, order=2)},
        dpgm.StructureError,
        "votes of order 3 multiply attributes of two labels",
    ),
    "too many products": (
        {"order": 7},
        BUDGET,
        {"workload": dpgm.Workload.all(domain(20), order=2)},
        dpgm.OptionError,
        "4,096 products are the most; set a lower order",
    ),
    "no pair": (
        {},
        BUDGET,
        {"workload": dpgm.Workload.all(domain(), order=1)},
        dpgm.StructureError,
        "none that may be measured",
    ),
    "too many blocks": ({"blocks": 10**6}, BUDGET, {}, dpgm.OptionError, "blocks must be"),
}


@pytest.mark.parametrize("case", ASKED)
def test_what_is_refused_before_the_charge(tmp_path, case):
    options, budget, more, error, why = ASKED[case]
    arguments = {"terms": dpgm.Terms(neighbours="add-remove"), "workload": dpgm.Workload.all(domain(), order=2)} | more
    book = dpgm.Ledger.create(tmp_path / "x", name="x", budget=budget, neighbours=arguments["terms"].neighbours.value)
    selector = {"name": "mrf-stable", **options}
    with pytest.raises(error, match=why):
        dpgm.select(Unread(), selector, budget, arguments["workload"], terms=arguments["terms"], ledger=book)
    with pytest.raises(error, match=why):
        dpgm.plan_selection(selector, budget, arguments["workload"], terms=arguments["terms"])
    assert not book.history()


def test_a_session_without_votes_is_refused():
    class Bare:
        votes = None

    with pytest.raises(dpgm.BudgetError, match="nothing for votes"):
        MrfStable().select(Bare(), inference=None, fitting=None, randomness=None, progress=print)


def test_it_votes_once_with_all_that_it_has():
    """One trace row, and nothing of how many voted."""
    seeded = {"terms": KNOWN, "randomness": dpgm.SeededRandomness(1)}
    workload = dpgm.Workload.all(domain(), order=2)
    _, selection = dpgm.select(matching(900), MrfStable(blocks=5), BUDGET, workload, learner="naive-mle", **seeded)
    assert selection.trace == [{"round": 1, "stable": False, "edges": 0, "epsilon": 0.75}]


def test_a_graph_too_dense_for_an_exact_engine_loses_edges():
    """Six copies of one attribute agree on all 15 pairs; with room for four clusters of 8 cells some are left out."""
    copies = np.repeat(matching(2000, p=2)[:, :1], 6, axis=1)
    noise = np.random.default_rng(0).random(copies.shape) < 0.2
    codes = np.where(noise, 1 - copies, copies)
    terms = dpgm.Terms(neighbours="add-remove", total=2000)
    dense = {"name": "mrf-stable", "method": "threshold", "tau": 0.2, "max_fit_bytes": 16 * 4 * 8}
    done = learned(dense, codes=codes, terms=terms)
    verdict = done.releases[0].steps[0]
    assert len(verdict.edges) == 15 and 5 <= len(done.model.structure.cliques) < 15
    left_out = 15 - len(done.model.structure.cliques)
    assert any(one.startswith(f"{left_out} of 15 edges were left out") for one in done.notes)

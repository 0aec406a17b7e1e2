"""`privbayes` through the door: the graph it chooses, on which order, and what it refuses before anything is paid."""

from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from attrs import frozen
from dpgm_select.common import Growth
from dpgm_select.privbayes import PrivBayes, _families, _graph

import dpgm_core as dpgm
from dpgm_core.learning import Limits, ModelSize

from .test_selectors import DOMAIN, NAMES, TERMS, TREE, parity, planted, run, spent


@frozen(kw_only=True)
class Network:
    """A learner of directed graphs, which refuses all others wherever it meets them; it learns like another one."""

    def check(self, structure, inference):
        dpgm.Dag.of(structure)

    def learn(self, curator, inference, *, randomness, progress):
        dpgm.Dag.of(curator.structure)
        return dpgm.make("learner", "eb-map").learn(curator, inference, randomness=randomness, progress=progress)


def parents_of(done: dpgm.Fit) -> dict[str, tuple[str, ...]]:
    return dpgm.Dag.of(done.model.structure).parents


@pytest.mark.sampled(3)
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("budget", [dpgm.Budget.pure(40), dpgm.Budget.zcdp(40)])
def test_it_finds_a_planted_tree(budget: dpgm.Budget, neighbours: str) -> None:
    """With much budget the chance of another one is below 1e-6: the nearest other parent is some 500 records behind, at
    an epsilon of at least .8 a choice. All is spent, and a model costs it."""
    done = run(PrivBayes(parents=1), budget, neighbours=neighbours)
    assert {child: actual for child, actual in parents_of(done).items() if actual} == {
        child: (parent,) for child, parent in TREE.items()
    }
    assert Fraction(99, 100) * budget <= spent(done) <= budget == done.model.cost
    assert sum(isinstance(step, dpgm.Choice) for step in done.release.steps) == 5


def test_the_order_is_the_user_s() -> None:
    """Turned round, every parent still comes before its children, and everything depends on something before it."""
    order = tuple(reversed(NAMES))
    actual = parents_of(run(PrivBayes(order=order, parents=1), dpgm.Budget.zcdp(10)))
    assert all(order.index(parent) < order.index(child) for child, above in actual.items() for parent in above)
    assert all(actual[child] for child in order[1:]) and actual["e"] == ("f",)


def test_two_parents_that_only_show_together() -> None:
    """c = a xor b: no pair depends. So with one parent at most there is nothing to find."""
    arguments = (dpgm.Budget.zcdp(2), parity())
    domain = dpgm.Domain.from_sizes(dict.fromkeys("abcd", 2))
    both, one = (parents_of(run(PrivBayes(parents=most), *arguments, workload=domain)) for most in (2, 1))
    assert set(both["c"]) == {"a", "b"}
    assert len(one["c"]) < 2


def test_a_pair_that_informs_only_together_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """d = a xor b in nine of ten records, and a fifth of c are copies of d; one parent at a time begins with c and
    keeps it. The order has c before d, so c is a candidate; the chance of the wrong pair is below 1e-6."""
    rng = np.random.default_rng(8)
    codes = rng.integers(2, size=(6000, 4))
    codes[:, 3] = (codes[:, 0] ^ codes[:, 1]) ^ (rng.random(6000) < 0.1)
    codes[:, 2] = np.where(rng.random(6000) < 0.2, codes[:, 3], codes[:, 2])
    domain = dpgm.Domain.from_sizes(dict.fromkeys("abcd", 2))
    together = parents_of(run(PrivBayes(), dpgm.Budget.zcdp(2), codes, workload=domain))
    monkeypatch.setattr("dpgm_select.privbayes._MOST_CANDIDATES", 5)  # d has 6
    by_one = parents_of(run(PrivBayes(), dpgm.Budget.zcdp(2), codes, workload=domain))
    assert set(together["d"]) == {"a", "b"}
    assert "c" in by_one["d"]


@pytest.mark.parametrize(
    ("most", "cells", "joined"),
    [
        (3, 60, True),  # of d, a, b and of e, b, d 27 each, of c and f 3
        (3, 59, False),
        (2, 60, False),
    ],
)
def test_parents_of_one_child_are_joined_as_far_as_there_is_room(most: int, cells: int, joined: bool) -> None:
    """e has b and d, so d gets b beside a, and then b gets a: in families of the workload that fit the limits alone."""
    chosen = {name: (name,) for name in NAMES} | {"d": ("d", "a"), "e": ("e", "b", "d")}
    growth = Growth(session=SimpleNamespace(domain=DOMAIN), size=ModelSize(DOMAIN))
    growth.add(*chosen.values())
    families = _families(NAMES, dpgm.Workload.all(DOMAIN, most).candidates)
    graph = _graph(growth, NAMES, families, Limits(seconds=1, memory=16 * cells), chosen)
    actual = {child: set(above) for child, above in dpgm.Dag.of(graph).parents.items() if above}
    assert actual == {"d": {"a"}, "e": {"b", "d"}} | ({"b": {"a"}, "d": {"a", "b"}} if joined else {})


def test_a_learner_of_graphs_and_a_workload_that_leaves_an_attribute_out() -> None:
    """On the way it is shown graphs alone; what may not be measured is a node without parents or children."""
    workload = dpgm.Workload.all(DOMAIN, 2, never=[("f",)])
    actual = parents_of(
        run(PrivBayes(order=tuple("cabdef")), dpgm.Budget.zcdp(2), learner=Network(), workload=workload)
    )
    assert actual["f"] == () and not any("f" in above for above in actual.values())
    assert actual["a"] == ("c",) and actual["d"] == ("c",)


@pytest.mark.parametrize("merge", [False, True])
def test_the_release_alone_is_enough_to_learn_the_same_network_again(tmp_path: Path, merge: bool) -> None:
    """Its file knows the chosen graph over the merged codes, so learning from it needs no selector and no records."""
    codes = np.column_stack([planted(), np.zeros(4000, int)])
    workload_wanted = dpgm.Workload.all(dpgm.Domain.from_sizes({**dict.fromkeys(NAMES, 3), "g": 5}), 2)
    selector = PrivBayes(parents=1, merge=merge)
    saved, selection = dpgm.select(
        codes,
        selector,
        dpgm.Budget.pure(8),
        workload_wanted,
        Network(),
        terms=TERMS,
        randomness=dpgm.SeededRandomness(5),
        save_release=tmp_path / "r.dpgm",
    )
    assert bool(saved.session and saved.session.merges) is merge
    release = dpgm.load_release(tmp_path / "r.dpgm")
    assert release.modelled == selection.structure != release.structure
    again = dpgm.learn(release, Network())
    assert again.model.structure == selection.structure
    again.model.save(tmp_path / "m.dpgm")
    (remaining,) = dpgm.load_model(tmp_path / "m.dpgm").releases
    assert remaining.modelled == selection.structure


def test_no_parents_at_all() -> None:
    done = run(PrivBayes(parents=0), dpgm.Budget.pure(1))
    assert not any(parents_of(done).values()) and len(done.release.steps) == 1
    assert dpgm.Budget.sum(
        PrivBayes(parents=0).plan(dpgm.Workload.all(DOMAIN), dpgm.Budget.pure(1), TERMS).shares.values()
    ) == (dpgm.Budget.pure(1))


@pytest.mark.parametrize(
    ("order", "words"), [("abcde", "leaves out 'f'"), ("abcdeff", "names 'f' twice"), ("abcdefg", "'g'")]
)
def test_an_order_that_is_none_is_refused_before_the_charge(order: str, words: str) -> None:
    for parents in (0, 2):
        selector = PrivBayes(order=tuple(order), parents=parents)
        with pytest.raises(dpgm.StructureError, match=words):
            selector.plan(dpgm.Workload.all(DOMAIN), dpgm.Budget.zcdp(1), TERMS)
        with pytest.raises(dpgm.StructureError, match=words):
            run(selector, dpgm.Budget.zcdp(1))


def test_options_that_are_none() -> None:
    for wrong in ({"order": "abc"}, {"order": (1,)}, {"parents": -1}, {"parents": True}, {"parents": 1.5}):
        with pytest.raises(dpgm.OptionError):
            PrivBayes(**wrong)
    made = dpgm.make("selector", {"name": "privbayes", "order": ["b", "a"], "parents": 3})
    assert made == PrivBayes(order=("b", "a"), parents=3)


def test_a_plan_is_directed_and_says_what_the_workload_leaves() -> None:
    """Of sets of three no attribute has three parents; what is chosen of is every set of a child and its parents."""
    plan = PrivBayes(parents=3).plan(dpgm.Workload.all(DOMAIN, 3), dpgm.Budget.pure(1), TERMS)
    assert plan.directed and any("no attribute can have 3 parents" in note for note in plan.notes)
    assert plan.candidates == 15 + 20
    assert not PrivBayes().plan(dpgm.Workload.all(DOMAIN, 3), dpgm.Budget.pure(1), TERMS).notes


def test_fewer_parents_where_choices_would_be_blunt() -> None:
    """By N, which a plan is told and a selection reads off what was released; of 4,000 records a tenth is 400."""
    selector, budget = PrivBayes(parents=2), dpgm.Budget.pure("0.5")
    some, more = (selector.plan(dpgm.Workload.all(DOMAIN), budget, TERMS, records) for records in (4_000, 40_000))
    assert more.detectable > 400 > some.detectable / 2  # half as many choices, each twice as sharp
    assert any("at most 1 parent(s) each instead of 2" in note for note in some.notes) and not more.notes
    done = run(selector, budget)
    assert any("at most 1 parent(s) each instead of 2" in note for note in done.notes)
    assert max(map(len, parents_of(done).values())) == 1

"""A holdout is paid for in one charge with the learner's release, and no learner is shown its tables."""

import attrs
import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm_core import Budget, Domain, Ledger, SeededRandomness, Structure, Tables
from dpgm_core.curator.live import holdouts_of
from dpgm_core.curator.replay import ReplayCurator
from dpgm_core.errors import BudgetError, DataError, LearningFailed, OptionError, Overspent, StructureError
from tests.fixtures import Batches, live_curator

DOMAIN = Domain.from_sizes(dict.fromkeys("abcdef", 2))
STRUCTURE = Structure.chain(DOMAIN)
CODES = np.random.default_rng(0).integers(2, size=(500, 6))
CHECK = {"holdout": "0.05"}
GAUSSIAN = dpgm.make("mechanism", "gaussian")
ONE = Budget.pure(1)
BUDGETS = [
    ("laplace", Budget.pure("1/3")),
    ("gaussian", Budget.zcdp("0.07")),
    ("gaussian", Budget.approx("0.9", "1e-6")),
]


class Spy:
    """Takes one release; keeps all that the curator shows."""

    def __init__(self, fails=False):
        self.fails, self.seen = fails, []

    def check(self, structure, inference):
        pass

    def learn(self, curator, inference, *, randomness, progress):
        self.budget = curator.budget
        self.seen.append(curator.release())
        self.seen += curator.released
        self.remaining = curator.remaining
        if self.fails:
            raise ArithmeticError("no luck")
        return dpgm.Fit(model=dpgm.Model(curator.structure, Tables.zeros(curator.structure)))


def live(tmp_path, ledger, *, structure=STRUCTURE, source=CODES, **more):
    settings = {"randomness": SeededRandomness(3), "ledger": ledger, "split": CHECK} | more
    return live_curator(source, structure, save_to=tmp_path / "one.release.dpgm", **settings)


def fitted(learner, tmp_path, *, budget=ONE, mechanism="laplace", split=CHECK, data=CODES, seed=1, **more):
    return dpgm.fit(
        data, STRUCTURE, budget, mechanism, learner, neighbours="add-remove", randomness=SeededRandomness(seed),
        save_release=tmp_path / "one.release.dpgm", split=split, **more,
    )  # fmt: skip


def ledger_with(tmp_path, budget):
    return Ledger.create(
        tmp_path / "one.ledger", name="one", budget=budget, neighbours="add-remove", unit="one person each"
    )


@pytest.mark.parametrize(("mechanism", "budget"), BUDGETS, ids=lambda one: getattr(one, "kind", one))
def test_the_charge_is_the_budget_and_made_once(tmp_path, mechanism, budget):
    """A ledger that holds just the budget is charged one entry; the model costs that, and its file says so."""
    ledger = ledger_with(tmp_path, budget)
    done = fitted(Spy(), tmp_path, budget=budget, mechanism=mechanism, ledger=ledger)
    assert done.model.cost == sum((one.cost for one in done.releases[1:]), start=done.releases[0].cost)
    (entry,) = ledger.history()
    assert entry.cost == done.model.cost <= budget
    if budget.kind != "approx":  # whose noise is a double that may leave a rest
        assert done.model.cost == budget
    assert {one.provenance["entry"] for one in done.releases} == {entry.id}


def test_learners_see_neither_the_check_nor_its_budget(tmp_path):
    spy = Spy()
    done = fitted(spy, tmp_path)
    assert spy.budget == Budget.pure("0.95")
    assert spy.remaining.is_zero
    assert not any(one.holdout for one in spy.seen)
    assert {one.structure for one in spy.seen} == {STRUCTURE}
    assert [one.holdout for one in done.releases] == [False, True]
    assert done.release is done.releases[0]
    assert done.model.release.cost == Budget.pure("0.95")


def test_the_pairs_do_not_depend_on_the_records():
    chosen = []
    chain = Structure.chain(Domain.from_sizes(dict.fromkeys("abcdefghij", 2)))
    for data, seed in [(CODES, 1), (1 - CODES[:40], 1), (CODES, 2)]:
        done = dpgm.fit(
            np.hstack([data, data[:, :4]]), chain, ONE, learner=Spy(), neighbours="add-remove",
            randomness=SeededRandomness(seed), split=CHECK,
        )  # fmt: skip
        chosen.append(done.releases[-1].structure.cliques)
    assert chosen[0] == chosen[1] != chosen[2]
    assert all(len(cliques) == 12 for cliques in chosen)


def test_the_check_counts_what_the_records_hold(tmp_path):
    done = fitted(Spy(), tmp_path, budget=Budget.pure(100_000))
    for release in done.releases:
        for clique, table in release.tables.items():
            one, two = (CODES[:, DOMAIN.names.index(name)] for name in clique)
            assert table.tolist() == np.bincount(2 * one + two, minlength=4).reshape(2, 2).tolist()


def test_tied_tables_are_counted_beside_the_check():
    """One pass counts both, whatever the order in which the structures have their tables."""
    structure = Structure(DOMAIN, [("a", "b")], tied=[[("b", "c"), ("c", "d")], [("d", "e"), ("e", "f")]])
    curator = live_curator(CODES, structure, budget=Budget.pure(100_000), randomness=SeededRandomness(0), split=CHECK)
    release = curator.release()
    expected = sum(np.bincount(2 * CODES[:, one] + CODES[:, one + 1], minlength=4).reshape(2, 2) for one in (1, 2))
    assert release.tables["b", "c"].tolist() == expected.tolist()
    (check,) = holdouts_of(curator)
    assert len(check.structure.cliques) == 10


def test_a_later_release_is_paid_for_by_itself(tmp_path):
    """Only the first request carries the holdout; the files are numbered, the learner's first."""
    curator = live(tmp_path, ledger := ledger_with(tmp_path, Budget.pure(1)))
    curator.release(budget=Budget.pure("0.5"))
    assert [entry.cost for entry in ledger.history()] == [Budget.pure("0.55")]
    curator.release()
    assert [entry.cost for entry in ledger.history()] == [Budget.pure("0.55"), Budget.pure("0.45")]
    assert curator.remaining.is_zero
    assert len(holdouts_of(curator)) == 1
    names = [one.saved_as.name for one in (*curator.released, *holdouts_of(curator))]
    assert names == ["one.release.dpgm", "one.release-3.dpgm", "one.release-2.dpgm"]
    assert dpgm.load_release(holdouts_of(curator)[0].saved_as).holdout


def test_rounds_carry_the_check_too(tmp_path):
    """Rounds that come first pay for it in their charge; its tables count all persons, no subsample."""
    curator = live(tmp_path, ledger := ledger_with(tmp_path, Budget.zcdp(1)), budget=Budget.zcdp(1), mechanism=GAUSSIAN)
    with curator.rounds(3, sampling_rate=0.5) as rounds:
        rounds.next()
    assert [entry.cost for entry in ledger.history()] == [Budget.zcdp(1)]
    (check,) = holdouts_of(curator)
    assert check.saved_as is not None
    assert check.cost == Budget.zcdp("0.05")
    assert abs(check.total - 500) < 60


def test_a_failed_read_charges_nothing_and_the_check_is_still_to_come(tmp_path):
    """Reading fails before the charge: both shares are given back, and the next request pays for both."""
    source, ledger = Batches(CODES, error=RuntimeError("broken")), ledger_with(tmp_path, Budget.pure(1))
    curator = live(tmp_path, ledger, source=source)
    with pytest.raises(DataError):
        curator.release()
    assert (ledger.history(), holdouts_of(curator), curator.remaining) == ((), (), Budget.pure("0.95"))
    source.error = None
    curator.release()
    assert [entry.cost for entry in ledger.history()] == [Budget.pure(1)]
    assert len(holdouts_of(curator)) == 1


def test_a_ledger_that_holds_the_rest_alone_is_not_enough(tmp_path):
    ledger = ledger_with(tmp_path, Budget.pure("0.99"))
    curator = live(tmp_path, ledger)
    with pytest.raises(Overspent):
        curator.release()
    assert not ledger.history()
    assert not list(tmp_path.glob("*.dpgm"))


def test_a_learner_that_fails_leaves_both(tmp_path):
    with pytest.raises(LearningFailed, match="the release is paid for and kept") as failed:
        fitted(Spy(fails=True), tmp_path)
    assert [one.holdout for one in failed.value.releases] == [False, True]
    model = dpgm.learn(failed.value.releases, "naive-mle").model
    assert model.cost == Budget.pure(1)
    assert model.checked


def test_a_replay_serves_what_was_learned_from(tmp_path):
    """The check is kept with the model and not served; alone it is refused, and so is a release made with one."""
    done = fitted(Spy(), tmp_path)
    curator = ReplayCurator(done.releases)
    assert curator.budget == Budget.pure("0.95")
    assert curator.release().structure == STRUCTURE
    assert curator.remaining.is_zero
    assert holdouts_of(curator) == done.releases[1:]
    with pytest.raises(BudgetError, match="never learned from"):
        dpgm.learn(done.releases[1])


def test_what_cannot_be_checked_is_refused_before_anything_is_read(tmp_path):
    with pytest.raises(StructureError, match="leave the holdout out"):
        live(tmp_path, None, structure=Structure.complete(DOMAIN), source=Batches(CODES, error=RuntimeError("broken")))
    with pytest.raises(OptionError, match="below 1"):
        fitted(Spy(), tmp_path, split={"holdout": 1})
    with pytest.raises(OptionError, match="part of a fit"):
        dpgm.release(CODES, STRUCTURE, Budget.pure(1), neighbours="add-remove", split=CHECK)


def test_a_plan_says_what_is_set_aside():
    planned = dpgm.plan(STRUCTURE, Budget.pure(1), neighbours="add-remove", split=CHECK)
    assert planned.cost == Budget.pure(1)
    bare = dpgm.plan(STRUCTURE, Budget.pure("0.95"), neighbours="add-remove")
    assert planned.scale == bare.scale
    assert "10 of the 10 pairs" in planned.notes[-1]
    assert "282.8" in planned.notes[-1]  # sqrt(2) times 10 pairs at epsilon = .05


def test_a_release_file_says_that_it_is_of_a_check(tmp_path):
    done = fitted(Spy(), tmp_path)
    paths = [one.saved_as for one in done.releases]
    assert [dpgm.load_release(path).holdout for path in paths] == [False, True]
    assert "check" not in done.releases[0].to_document()
    assert attrs.evolve(done.releases[0], holdout=True).to_document()["check"] is True

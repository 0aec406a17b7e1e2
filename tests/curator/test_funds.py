"""Funds: what is set aside, charged and given back, with and without a ledger, in threads too."""

from fractions import Fraction
from threading import Barrier, Thread

import pytest

from dpgm_core import Budget, BudgetError, Ledger, Overspent
from dpgm_core.curator.funds import Funds

TENTH = Budget.pure("1/10")


@pytest.fixture
def ledger(tmp_path):
    """With epsilon = 1, under add-remove."""
    return Ledger.create(tmp_path / "x.ledger", name="x", budget=Budget.pure(1), neighbours="add-remove")


def test_parts_add_up_exactly():
    """Ten tenths are 1; an eleventh is refused, and nothing remains to be asked for."""
    funds = Funds(Budget.pure(1))
    for _ in range(10):
        with funds.paying(funds.asked(TENTH)):
            pass
    assert funds.remaining.is_zero
    for more in (TENTH, None):
        with pytest.raises(Overspent):
            funds.asked(more)
    with pytest.raises(Overspent), funds.paying(TENTH):
        pytest.fail("it was paid")


def test_the_charge_follows_the_body_and_is_on_the_receipt(ledger):
    """The ledger is charged when counting is done, not before; the receipt has its number."""
    funds = Funds(Budget.pure("1/2"), ledger)
    with funds.paying(TENTH) as receipt:
        assert not ledger.history() and receipt.entry is None
        assert funds.remaining == Budget.pure("2/5")  # set aside all the same
    (entry,) = ledger.history()
    assert entry.cost == TENTH and receipt.provenance == {"ledger": "x", "entry": receipt.entry}


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_what_fails_is_given_back(ledger, failure):
    """Budget, ledger and the name of the file are as before, whatever stopped the body."""
    funds = Funds(Budget.pure(1), ledger)
    with pytest.raises(failure), funds.paying(TENTH):
        raise failure
    assert funds.remaining == Budget.pure(1) and not ledger.history()


def test_a_ledger_that_is_full_refuses_before_the_body(ledger):
    """And the funds keep what they had."""
    ledger.charge(Budget.pure("0.95"))
    funds = Funds(Budget.pure(1), ledger)
    with pytest.raises(Overspent), funds.paying(TENTH):
        pytest.fail("the body ran")
    assert funds.remaining == Budget.pure(1)


def test_files_are_numbered_and_failed_numbers_are_used_again(tmp_path):
    """x, x-2, ...; a release that was not made leaves no gap."""
    funds = Funds(Budget.pure(1), None, tmp_path / "x.dpgm")
    with pytest.raises(ValueError), funds.paying(TENTH):
        raise ValueError
    names = []
    for _ in range(2):
        with funds.paying(TENTH) as receipt:
            names.append(receipt.path.name)
    assert names == ["x.dpgm", "x-2.dpgm"]


def test_threads_never_spend_the_same_budget_twice():
    """Sixteen at once ask for a tenth of 1 each: ten are served."""
    funds, start, served = Funds(Budget.pure(1)), Barrier(16), []

    def ask():
        start.wait()
        try:
            with funds.paying(TENTH):
                served.append(TENTH)
        except Overspent:
            pass

    threads = [Thread(target=ask) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(served) == 10 and funds.remaining.is_zero


@pytest.mark.parametrize("budget", [Budget.zero("pure"), 1, None, "1"])
def test_funds_are_a_positive_budget(budget):
    """Nothing else can be spent."""
    with pytest.raises(BudgetError):
        Funds(budget)


def test_other_kinds_cannot_be_asked_for():
    """rho from funds of epsilon."""
    with pytest.raises(BudgetError):
        Funds(Budget.pure(1)).asked(Budget.zcdp(Fraction(1, 10)))

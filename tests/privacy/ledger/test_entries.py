"""What a ledger holds, as values."""

from dpgm_core import LedgerEntry
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.ledger_terms import NOT_RECORDED, LedgerTerms, check_conditions
from dpgm_core.privacy.sensitivity import Neighbours


def test_an_entry_as_plain_values():
    """Amounts are exact texts, conditions a list."""
    facts = {"id": 1, "when": "2026", "note": "", "status": "charged"}
    entry = LedgerEntry(cost=Budget.pure("0.1"), conditions=("unsafe noise",), **facts)
    more = {"cost": {"epsilon": "1/10"}, "conditions": ["unsafe noise"], "identity": None}
    assert entry.to_dict() == facts | more


def test_terms_survive_plain_values():
    """What `to_dict` writes `from_dict` reads."""
    terms = LedgerTerms(
        name="s", budget=Budget.zcdp("1/3"), neighbours=Neighbours.of("replace-one"), unit="one patient", person="id",
        rows_per_person=3, conversion_delta=None, identity="9f",
    )  # fmt: skip
    assert LedgerTerms.from_dict(terms.to_dict()) == terms


def test_what_stands_for_unknown_conditions_is_a_condition():
    """So nobody who counts conditions takes an old charge for an unconditional one."""
    check_conditions((NOT_RECORDED,))

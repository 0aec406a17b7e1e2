"""Terms: what does not go together is refused once, and one place works out every sensitivity."""

import itertools

import pytest
from attrs import evolve

from dpgm_core import BudgetError, ClippedScore, Contributions, Domain, OptionError, Sensitivity, Structure, Terms
from dpgm_core.privacy.terms import public_domain

CHAIN = Structure.chain(Domain.from_sizes({"a": 2, "b": 3, "c": 2}))
SHARES = Contributions(per="clique", grid=60)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_one_place_works_out_every_sensitivity(neighbours):
    """Counts, shares and clipped scores each have the norms that their own class proves."""
    several = Terms(neighbours=neighbours, person="id", rows_per_person=4)
    assert several.sensitivity(CHAIN) == Sensitivity.of(CHAIN, neighbours, rows_per_person=4)
    shares = evolve(several, contributions=SHARES)
    assert shares.sensitivity(CHAIN) == SHARES.sensitivity(CHAIN, several.neighbours, rows_per_person=4)
    clip = ClippedScore(norm=2, grid=8)
    assert several.sensitivity(CHAIN, clip) == clip.sensitivity(CHAIN.cells, several.neighbours)


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"neighbours": "bounded"}, BudgetError, "add-remove"),
        ({"rows_per_person": 2}, BudgetError, "needs a person key"),
        ({"person": "id", "rows_per_person": 0}, BudgetError, "at least 1"),
        ({"person": ""}, BudgetError, "person key must be a text"),
        ({"unit": 3}, BudgetError, "unit must be a text"),
        ({"total": "exact"}, BudgetError, "'estimated', 'public' or a declared number"),
        ({"total": 0.5}, BudgetError, "at least 1"),
        ({"total": True}, BudgetError, "declared number"),
        ({"total": float("nan")}, BudgetError, "declared number"),
        ({"contributions": "clique"}, OptionError, "must be Contributions"),
        ({"contributions": SHARES, "total": "public"}, BudgetError, "do not sum to the number of records"),
        ({"contributions": SHARES, "total": 100}, BudgetError, "do not sum to the number of records"),
    ],
)
def test_what_does_not_go_together_is_refused(wrong, error, words):
    """In one line that says what would do, when the terms are stated and not when they are used."""
    with pytest.raises(error, match=words):
        Terms(**{"neighbours": "add-remove"} | wrong)


def test_the_relation_is_stated_once():
    """As terms or as the relation alone; both, neither and something else are refused."""
    terms = Terms(neighbours="replace-one")
    assert Terms.of(terms, None) is terms
    assert Terms.of(None, "replace-one") == terms
    for stated in ((None, None), (terms, "replace-one"), ("replace-one", None)):
        with pytest.raises(BudgetError):
            Terms.of(*stated)


def test_plain_values_give_the_same_terms_back():
    """Every combination that is let in survives to_dict and from_dict, as a file needs it."""
    choices = itertools.product(
        [{"neighbours": "add-remove"}, {"neighbours": "replace-one"}],
        [{}, {"unit": "one visit"}],
        [{}, {"person": "id"}, {"person": "id", "rows_per_person": 5}],
        [{}, {"total": "public"}, {"total": 250.0}, {"contributions": SHARES}],
    )
    for parts in choices:
        terms = Terms(**{key: value for part in parts for key, value in part.items()})
        assert Terms.from_dict(terms.to_dict()) == terms


@pytest.mark.parametrize(
    ("stated", "covered"),
    [
        ({"neighbours": "replace-one"}, True),
        ({"neighbours": "add-remove"}, False),
        ({"neighbours": "replace-one", "person": "id"}, False),
        ({"neighbours": "replace-one", "person": "id", "rows_per_person": 2}, False),
    ],
)
def test_an_exact_total_is_covered_where_nobody_can_change_it(stated, covered):
    """Replace-one with each row a person; a person key can be lost, which moves rows to nobody."""
    assert Terms(total="public", **stated).covers_total is covered


def test_the_unit_is_the_stated_one_or_the_ledgers_or_what_a_row_is():
    """In this order."""
    bare = Terms(neighbours="add-remove")
    assert bare.protected == "one record" and bare.with_default_unit().unit == "one record"
    assert bare.with_default_unit("one visit").unit == "one visit"
    assert evolve(bare, person="id").with_default_unit().unit == "one person"
    assert evolve(bare, unit="one day").with_default_unit("one visit").unit == "one day"


def test_the_sentence_names_what_is_promised():
    """Relation, unit, rows and weights, as the guarantee needs them."""
    terms = Terms(neighbours="add-remove", unit="one walker", person="id", rows_per_person=24, contributions=SHARES)
    for part in ("add-remove neighbours", "one walker, counted with at most 24 rows", SHARES.describe().strip()):
        assert part in terms.sentence()


def test_a_guarantee_calls_nothing_public_that_was_found_privately():
    """The columns are named, up to twenty of them, and the sentence is the usual one without any."""
    terms = Terms(neighbours="add-remove")
    for structure in ("named", "chosen", "both"):
        assert "Assumed public: the domain, " in terms.sentence(structure)
        found = terms.sentence(structure, public_domain(labels=["a{0}b"]))
        assert "the domain but for the labels of 'a{0}b', which were found privately" in found
    assert public_domain(bins=["a", "b", "c"]).count("bins of 'a', 'b' and 'c', which") == 1
    assert "'x19' and 5 others, which" in public_domain(labels=[f"x{n}" for n in range(25)])

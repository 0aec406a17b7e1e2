"""The first screen: never a number that a release does not keep."""

import dpgm_core as dpgm
from dpgm.report import make_report
from dpgm_core.models.findings import measure_findings


def test_a_seed_promises_nothing(codes, parsed, model):
    """No factor and no guess stand on the first screen of a simulation."""
    structure = dpgm.Structure(model.domain, [("sex", "age")])
    terms = {"neighbours": "add-remove", "randomness": dpgm.SeededRandomness(1)}
    seeded = dpgm.fit(codes, structure, dpgm.Budget.pure(1), **terms).model
    first = parsed(make_report(seeded)).texts[""]
    assert "its noise protects nobody" in first
    assert "2.72" not in first
    assert "2.72" in parsed(make_report(model)).texts[""]


def test_the_numbers_are_those_of_the_relation_and_the_budget(codes, model, parsed):
    """Under replace-one the odds are of values; a rho has no factor, and says what it implies."""
    structure = dpgm.Structure(model.domain, [("sex", "age")])
    replaced = dpgm.fit(codes, structure, dpgm.Budget.pure(1), neighbours="replace-one").model
    assert "that a certain unit has one set of values rather than another" in parsed(make_report(replaced)).texts[""]
    spent = dpgm.Budget.zcdp("0.5")
    first = parsed(make_report(dpgm.fit(codes, structure, spent, "gaussian", neighbours="add-remove").model)).texts[""]
    assert "ρ = 0.5" in first and "ε ≤ 5.23" in first and "×" not in first


def test_a_public_number_of_records_hides_no_presence(codes, model, parsed):
    """The first screen then tells of values, at the loss of an exchange; and of whom a guess is."""
    structure = dpgm.Structure(model.domain, [("sex", "age")])
    terms = dpgm.Terms(neighbours="add-remove", total="public")
    first = parsed(make_report(dpgm.fit(codes, structure, dpgm.Budget.pure(1), terms=terms).model)).texts[""]
    for words in ("× 7.39", "88.1 %", "from their exact number", "both being equally likely before"):
        assert words in first
    assert "a certain unit is in the data" not in first and "nothing else" not in first
    spent = dpgm.Budget.zcdp("0.5")
    first = parsed(make_report(dpgm.fit(codes, structure, spent, "gaussian", terms=terms).model)).texts[""]
    assert f"ε ≤ {float(dpgm.Budget.zcdp(1).to_approx('1e-6').epsilon) + 5e-3:.2f}" in first


def test_mu_is_told_by_what_it_implies(codes, model, parsed, tmp_path):
    """The first screen has μ and ε at a δ, the bound and groups are in words, and the ledger says how it adds up."""
    structure = dpgm.Structure(model.domain, [("sex", "age")])
    spent = dpgm.Budget.gdp("0.3")
    ledger = dpgm.Ledger.create(
        tmp_path / "x", name="x", budget=dpgm.Budget.approx(2, "1e-6"), neighbours="add-remove", account="gaussian"
    )
    made = dpgm.fit(codes, structure, spent, "gaussian", neighbours="add-remove", ledger=ledger).model
    seen = parsed(make_report(made, ledger=ledger))
    first = seen.texts[""]
    epsilon = float(spent.to_approx("1e-6").epsilon)
    assert "μ = 0.3" in first and f"ε ≤ {epsilon + 5e-3:.2f}" in first and "Gaussian differential privacy" in first
    assert "56 %" in first  # Phi(.15)
    text = " ".join(seen.texts.values())
    assert "whose mean is μ = 0.3 standard deviations away" in text and "of r units r μ" in text.replace("rμ", "r μ")
    assert "squares of μ, under an exact Gaussian account" in text and "What the μ implies" in text


def test_usefulness_comes_before_privacy(model):
    """The verdict stands above the numbers, in its colour; a model without tables has none."""
    page = make_report(model)
    assert page.index('class="verdict') < page.index('class="figures"')
    colour = measure_findings(model).colour
    assert f'class="verdict {colour}"' in page
    structure = dpgm.Structure(dpgm.Domain.from_sizes({"a": 2}), [("a",)])
    assert 'class="verdict' not in make_report(dpgm.Model(structure, dpgm.Tables.zeros(structure)))

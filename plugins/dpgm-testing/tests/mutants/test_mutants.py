"""Every mutant is killed by the check that is meant for it, and every check kills one."""

import math

import numpy as np
import pytest

from dpgm_core import Budget, Domain, Fit, Model, Sensitivity, Structure, Tables, release
from dpgm_testing import Profile, checks_of
from dpgm_testing.checks.learner import _usable
from dpgm_testing.runner import run_check, subject_of

from . import (
    collectives,
    curators,
    drawing,
    engines,
    learners,
    mechanisms,
    networks,
    reducing,
    related,
    second_order,
    selectors,
    shapes,
    sources,
)
from .family import KEPT, Case

FAMILIES = [
    *(mechanisms.mechanism, selectors.selector, sources.source, reducing.source, related.related),
    collectives.collective,
    *(learners.learner, shapes.learner, networks.learner, engines.engine, drawing.engine, second_order.engine),
    *(curators.curator, curators.ledger),
]
MUTANTS = [one for family in FAMILIES for one in family.mutants]
# Those of curators and ledgers are core's own, which `test_kit_first_party.py` tests.
ORIGINALS = dict.fromkeys(one for family in FAMILIES[:-2] for one in family.originals())
# How a check may fail, beside saying so; learners and selectors may fail in any way.
OTHER_FAILURES = {"mechanism": "IncompatiblePlugin", "source": "IndexError", "ledger": "ModelFileError"}
# As far as the default profile goes, but counterexamples stay as large as they were found.
PROFILE = Profile(name="mutants", examples=60, draws=1_000_000, shrink=False)


def verdict(case, check=None, profile=PROFILE):
    """What a check, by default the one that is meant for it, finds as the kit would run it, or None."""
    kind, name = case.family.kind, check or case.check
    (check,) = [one for one in checks_of(kind) if one.name == name]
    subject, _ = subject_of(case.component, kind, profile=profile, records=case.family.records(case.made))
    try:
        skipped = run_check(check, subject)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        KEPT.clear()
    assert skipped is None, f"the check {name} was skipped: {skipped}"
    return None


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_the_check_meant_for_it_kills_the_mutant(mutant):
    """The named check fails; the mutant's docstring says what is wrong with it."""
    found, kind = verdict(mutant), mutant.family.kind
    assert found is not None, mutant.made.__doc__
    assert kind in ("learner", "selector") or found.startswith(("CheckFailed", OTHER_FAILURES.get(kind, "CheckFailed")))


@pytest.mark.parametrize("original", ORIGINALS, ids=str)
def test_what_mutants_are_made_from_passes(original):
    """So it is the mutant's fault that the check finds."""
    assert verdict(original, profile="quick") is None


def test_every_check_kills_a_mutant():
    kinds = {family.kind for family in FAMILIES}
    every = {(check.kind, check.name) for kind in kinds for check in checks_of(kind)}
    declared = {name for kind, name in every if kind == "declaration"}
    killing = {("declaration" if one.check in declared else one.family.kind, one.check) for one in MUTANTS}
    assert killing == every


OF_SECOND_ORDER = {one.name: one.needs for one in checks_of("inference") if one.needs in ("curvature", "many")}


@pytest.mark.parametrize("mutant", second_order.ALONE, ids=[one.__name__ for one in second_order.ALONE])
def test_no_other_check_finds_it(mutant):
    """Each check has a mutant that the others let pass, so none of them is needless."""
    (case,) = [one for one in second_order.engine.mutants if one.made is mutant]
    needs = OF_SECOND_ORDER[case.check]
    others = [name for name, need in OF_SECOND_ORDER.items() if name != case.check and need == needs]
    assert not [name for name in others if verdict(case, name)]


def test_the_staircase_is_a_law_and_right_for_one_cell():
    """The staircase mutant sums to 1 and loses exactly epsilon when one cell takes the whole change."""
    staircase = mechanisms.calibrated(mechanisms.StaircaseNoise)()
    noise = staircase.noise(Sensitivity(l0=3, l1=3, l2_squared=9, linf=3), Budget.pure(1))
    z = np.arange(-500.0, 501.0)
    assert math.isclose(np.exp(noise.logpdf(z)).sum(), 1, rel_tol=1e-9)
    assert math.isclose((noise.logpdf(z) - noise.logpdf(z - 3)).max(), 1.0)


@pytest.mark.parametrize(
    "check", ["records-only-through-the-curator", "records-are-not-kept", "cost-is-the-curators", "fit-is-usable"]
)
def test_a_learner_may_open_a_session(check):
    """The kit's door passes sessions on, and sees what they hand out."""
    assert verdict(Case(learners.learner, learners.Sessions, check)) is None


def test_a_learner_may_measure_less_than_its_structure():
    """What it left out has no marginal for users, and is no fault of the learner's."""
    structure = Structure(Domain.from_sizes({"a": 2, "b": 2, "c": 2}), [("a", "b"), ("b", "c")])
    measured = Structure(structure.domain, [("a", "b")])
    noisy = release(np.zeros((9, 3), int), measured, Budget.pure(1), neighbours="add-remove")
    fit = Fit(model=Model(structure, Tables.zeros(structure), releases=[noisy]))
    assert fit.model.left_out == ("c",)
    _usable(fit, structure, "here")

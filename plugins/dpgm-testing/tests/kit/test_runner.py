"""The runners: reports, expected failures, skips, distributions, pytest and the command line."""

import json

import attrs
import pytest

from dpgm_core import Component, OptionError, PluginError, Registry
from dpgm_core.components.registry import Broken
from dpgm_core.errors import UnknownComponent
from dpgm_testing import Profile, Report, check_component, checks_of
from dpgm_testing.reference import ReferenceLaplace
from dpgm_testing.runner import Outcome, check_distribution, offers_of, subject_of

QUICK = Profile(name="quick", examples=2, draws=20_000, shrink=False)


# --- reports ------------------------------------------------------------------------------------------------------


@pytest.mark.landing
def test_a_report_names_target_distribution_versions_and_profile(installed):
    """The header and the plain values say what was tested, with what, and how far."""
    report = check_component("laplace", profile=QUICK) if installed("dpgm-laplace") else None
    if report is None:
        pytest.skip("dpgm-laplace is not installed")
    assert report.ok and report.failures == ()
    assert "mechanism 'laplace' from dpgm-laplace" in report.header and "profile quick" in report.header
    plain = json.loads(json.dumps(report.to_dict()))
    assert (
        plain["ok"]
        and plain["distribution"] == "dpgm-laplace"
        and len(plain["outcomes"]) == len(checks_of("mechanism"))
    )


def test_failures_are_shown_with_their_message(wrong_dual):
    report = check_component(wrong_dual, profile=QUICK)
    assert not report.ok and report.failures == ("dual-is-the-conjugate",)
    shown = str(report)
    assert "dual-is-the-conjugate" in shown and "does not belong to logpdf" in shown and "1 failed" in shown


def test_expected_failures_are_strict(wrong_dual):
    """An expected failure does not count; one that passes does, and an unknown name is refused."""
    reasons = {"dual-is-the-conjugate": "a test"}
    report = check_component(wrong_dual, profile=QUICK, expected_failures=reasons)
    assert report.ok and "expected failure" in str(report)
    passing = check_component(ReferenceLaplace, profile=QUICK, expected_failures=reasons)
    assert passing.failures == ("dual-is-the-conjugate",) and "unexpected pass" in str(passing)
    with pytest.raises(OptionError, match="did you mean 'dual-is-the-conjugate'"):
        check_component(ReferenceLaplace, profile=QUICK, expected_failures={"dual-is-the-conjugat": "typo"})


def test_skips_come_from_what_is_not_served():
    """The reference Laplace refuses zCDP budgets, so its Renyi loss is not checked, and the report says why."""
    report = check_component(ReferenceLaplace(), profile=QUICK)
    (skipped,) = [one for one in report.outcomes if one.check == "renyi-loss-within-cost"]
    assert report.ok and skipped.status == "skipped" and "'zcdp'" in skipped.message


def test_a_report_of_nothing_is_not_ok():
    """Zero checks, or skips alone, prove nothing."""
    facts = {"target": "x", "distribution": "y", "version": "1", "profile": "default"}
    assert not Report(**facts).ok
    assert not Report(**facts, outcomes=(Outcome(check="c", claim="", status="skipped"),)).ok


@pytest.mark.parametrize(
    "kind", ["mechanism", "inference", "collective", "learner", "selector", "source", "curator", "ledger", "related"]
)
def test_every_check_says_what_it_claims(kind):
    """Names are unique; claims are sentences, and so are limits beyond those of every check (docs/conformance.md)."""
    checks = checks_of(kind)
    assert len({check.name for check in checks}) == len(checks) >= 7
    for check in checks:
        assert len(check.claim) > 20 and check.claim.endswith("."), check.name
        assert not check.limit or check.limit.endswith("."), check.name


def test_nonsense_is_refused():
    with pytest.raises(OptionError, match="did you mean 'mechanism'"):
        check_component(ReferenceLaplace, "mechanisms")
    with pytest.raises(OptionError, match="profile"):
        check_component(ReferenceLaplace, profile="fast")
    with pytest.raises(OptionError, match="no component"):
        check_component(42)
    with pytest.raises(UnknownComponent):
        check_component("no-such-component")


@attrs.frozen(kw_only=True)
class _Needy:
    """A mechanism that must be told something."""

    inner: ReferenceLaplace = attrs.field(default=ReferenceLaplace())
    told: float = attrs.field(metadata={"help": "what to be told", "sample": 3.0})

    def noise(self, sensitivity, budget):
        return self.inner.noise(sensitivity, budget)


def test_required_options_are_tried_with_their_samples():
    """A class is made with defaults and the samples that its fields name; without one an OptionError says so."""
    subject, _ = subject_of(_Needy, "mechanism")
    assert subject.component.told == 3.0

    @attrs.frozen(kw_only=True)
    class Silent:
        told: float = attrs.field(metadata={"help": "what to be told"})

    with pytest.raises(OptionError, match="needs option 'told'"):
        subject_of(Silent, "mechanism")


# --- distributions ------------------------------------------------------------------------------------------------


def test_a_broken_or_unknown_distribution_is_an_error():
    """Broken ones are quoted with version and cause; unknown and empty ones are named."""
    registry = Registry([], [Broken(distribution="dpgm-broken", version="3", cause="ImportError: no x")])
    with pytest.raises(PluginError, match="dpgm-broken 3 is broken: ImportError"):
        offers_of("dpgm_broken", registry)
    with pytest.raises(UnknownComponent, match="no distribution 'dpgm-nowhere'"):
        list(check_distribution("dpgm-nowhere", registry=registry))
    with pytest.raises(UnknownComponent, match="offers no component"):
        list(check_distribution("numpy", registry=registry))


def test_names_of_distributions_are_normalised():
    registry = Registry()
    component = Component(kind="mechanism", name="mine", target="a:B", summary="x")
    registry.add(component, ReferenceLaplace, distribution="My.Plugin")
    assert [offer.component.name for offer in offers_of("my-plugin", registry)] == ["mine"]

"""The runners: reports, expected failures, skips, distributions, pytest and the command line."""

import json
import subprocess
import sys
from importlib import metadata
from typing import Any, ClassVar

import attrs
import pytest
from attrs import frozen

from dpgm_core import Component, DualTerm, OptionError, PluginError, Registry, UnknownComponent
from dpgm_core.components.registry import Broken
from dpgm_core.errors import IncompatiblePlugin, PluginLoadError
from dpgm_core.sources.arrow import ArrowSource
from dpgm_core.testing import MechanismConformance, Profile, Report, SourceConformance, check_component, checks_of
from dpgm_core.testing.reference import ReferenceGaussian, ReferenceLaplace, ReferenceLaplaceNoise
from dpgm_core.testing.runner import Outcome, check_distribution, offers_of

QUICK = Profile(name="quick", examples=2, draws=20_000, shrink=False)


@frozen(kw_only=True)
class WrongDualNoise(ReferenceLaplaceNoise):
    """Whose dual term is not its own."""

    @property
    def dual(self):
        return DualTerm(bound=1.0, curvature=1.0)


@frozen(kw_only=True)
class WrongDual(ReferenceLaplace):
    """A mechanism that fails exactly one check."""

    def noise(self, sensitivity, budget):
        return WrongDualNoise(**attrs.asdict(super().noise(sensitivity, budget), recurse=False))


# --- reports ------------------------------------------------------------------------------------------------------


def test_a_report_names_target_distribution_versions_and_profile():
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


def test_failures_are_shown_with_their_message():
    """The text holds one line per check, and under a failure why."""
    report = check_component(WrongDual, profile=QUICK)
    assert not report.ok and report.failures == ("dual-is-the-conjugate",)
    shown = str(report)
    assert "dual-is-the-conjugate" in shown and "does not belong to logpdf" in shown and "1 failed" in shown


def test_expected_failures_are_strict():
    """An expected failure does not count; one that passes does, and an unknown name is refused."""
    reasons = {"dual-is-the-conjugate": "a test"}
    report = check_component(WrongDual, profile=QUICK, expected_failures=reasons)
    assert report.ok and "expected failure" in str(report)
    passing = check_component(ReferenceLaplace, profile=QUICK, expected_failures=reasons)
    assert passing.failures == ("dual-is-the-conjugate",) and "unexpected pass" in str(passing)
    with pytest.raises(OptionError, match="did you mean 'dual-is-the-conjugate'"):
        check_component(ReferenceLaplace, profile=QUICK, expected_failures={"dual-is-the-conjugat": "typo"})


def test_skips_come_from_what_is_not_served():
    """The reference Gaussian refuses pure budgets, so its pure loss is not checked, and the report says why."""
    report = check_component(ReferenceGaussian(), profile=QUICK)
    (skipped,) = [one for one in report.outcomes if one.check == "pure-loss-within-cost"]
    assert report.ok and skipped.status == "skipped" and "'pure'" in skipped.message


def test_a_report_of_nothing_is_not_ok():
    """Zero checks, or skips alone, prove nothing."""
    facts = {"target": "x", "distribution": "y", "version": "1", "profile": "default"}
    assert not Report(**facts).ok
    assert not Report(**facts, outcomes=(Outcome(check="c", claim="", status="skipped"),)).ok


@pytest.mark.parametrize("kind", ["mechanism", "inference", "collective", "learner", "source", "curator", "ledger"])
def test_every_check_says_what_it_claims_and_cannot_show(kind):
    """Names are unique; claim and limit are sentences."""
    checks = checks_of(kind)
    assert len({check.name for check in checks}) == len(checks) >= 7
    for check in checks:
        assert len(check.claim) > 20 and check.claim.endswith("."), check.name
        assert len(check.limit) > 5 and check.limit.endswith("."), check.name


def test_nonsense_is_refused():
    """Unknown kinds, profiles and components raise dpgm's own errors."""
    with pytest.raises(OptionError, match="did you mean 'mechanism'"):
        check_component(ReferenceLaplace, "mechanisms")
    with pytest.raises(OptionError, match="profile"):
        check_component(ReferenceLaplace, profile="fast")
    with pytest.raises(OptionError, match="no component"):
        check_component(42)
    with pytest.raises(UnknownComponent):
        check_component("no-such-component")


# --- distributions ------------------------------------------------------------------------------------------------


def installed(distribution):
    try:
        metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True


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
    """Case, dots and underscores do not matter."""
    registry = Registry()
    component = Component(kind="mechanism", name="mine", target="a:B", summary="x")
    registry.add(component, ReferenceLaplace, distribution="My.Plugin")
    assert [offer.component.name for offer in offers_of("my-plugin", registry)] == ["mine"]


# --- records for sources ------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Held:
    """A source of the right codes that needs records to be tested."""

    table: Any = attrs.field(eq=id, metadata={"help": "the records"})

    def batches(self, domain, columns):
        return ArrowSource(data=self.table).batches(domain, columns)


def holding(table, folder):
    return Held(table=table)


def other_class(table, folder):
    return ArrowSource(data=table)


def declared(records):
    """A registry that offers `Held`, with this function for records."""
    registry = Registry()
    component = Component(kind="source", name="held", target="a:B", summary="x", records=records)
    registry.add(component, Held, distribution="dpgm-held")
    return registry


def test_records_come_from_the_declaration():
    """With `records` the checks that need them run; core's own sources have no other door."""
    (report,) = check_distribution("dpgm-held", profile=QUICK, registry=declared(f"{__name__}:holding"))
    status = {one.check: one.status for one in report.outcomes}
    assert status["codes-are-the-domains"] == status["records-are-streamed"] == "passed"
    sources = [one.component for one in Registry.discover() if one.component.kind == "source"]
    assert all(one.records for one in sources if one.target.startswith("dpgm_core."))


def test_a_source_without_records_is_told_how_to_give_some():
    """What needs records is skipped, not failed, and says what would do."""
    report = check_component(Held, "source", profile=QUICK)
    assert report.ok and {one.status for one in report.outcomes} == {"passed", "skipped"}
    assert all("records='package.module:function'" in one.message for one in report.outcomes if one.message)


def test_records_of_another_class_do_not_count():
    """A function that makes a source of core instead of the one under test fails the checks."""
    report = check_component(Held, "source", profile=QUICK, records=other_class)
    message = {one.check: one.message for one in report.outcomes}["codes-are-the-domains"]
    assert not report.ok and "records made a ArrowSource, not a Held" in message


@pytest.mark.parametrize(
    ("target", "error", "words"),
    [
        ("no_such_module:holding", PluginLoadError, "source 'held' of dpgm-held - cannot be imported"),
        (f"{__name__}:no_such_name", PluginLoadError, "AttributeError"),
        (f"{__name__}:QUICK", IncompatiblePlugin, "is a Profile, not a function"),
    ],
)
def test_records_that_cannot_be_had_are_an_error(target, error, words):
    """One sentence that names the declaration; no check runs."""
    with pytest.raises(error, match=words):
        list(check_distribution("dpgm-held", profile=QUICK, registry=declared(target)))


@pytest.mark.parametrize(
    ("kind", "records", "words"),
    [
        ("source", "module.function", "must be 'package.module:function'"),
        ("source", holding, "must be 'package.module:function'"),
        ("learner", "a:b", "a learner takes no records"),
    ],
)
def test_wrong_declarations_of_records_are_refused(kind, records, words):
    """Where the component is declared."""
    with pytest.raises(PluginError, match=words):
        Component(kind=kind, name="mine", target="a:B", summary="x", records=records)


# --- pytest -------------------------------------------------------------------------------------------------------


class TestReferenceLaplace(MechanismConformance):
    """The base class makes one test per check."""

    component = ReferenceLaplace
    profile = QUICK


class TestWrongDual(MechanismConformance):
    """An expected failure stays one."""

    component = WrongDual()
    profile = QUICK
    expected_failures: ClassVar = {"dual-is-the-conjugate": "wrong on purpose"}


class TestRecords(SourceConformance):
    """A source is given records by a static method."""

    component = ArrowSource

    profile = QUICK

    @staticmethod
    def records(table, folder):
        return ArrowSource(data=table)


def test_a_wrong_name_among_expected_failures_is_refused_at_once():
    """The class cannot even be made."""
    with pytest.raises(TypeError, match="no check 'no-such-check'"):
        type("Wrong", (MechanismConformance,), {"component": WrongDual, "expected_failures": {"no-such-check": "x"}})


def pytest_in(folder, *arguments):
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    if "dpgm_core.testing.pytest_plugin" not in {point.value for point in metadata.entry_points(group="pytest11")}:
        command += ["-p", "dpgm_core.testing.pytest_plugin"]  # core was installed before the kit was
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


def test_pytest_checks_a_distribution_from_any_folder(tmp_path):
    """No code is written, tests that lie around are left alone, the header says what is tested."""
    if not installed("dpgm-laplace"):
        pytest.skip("dpgm-laplace is not installed")
    (tmp_path / "test_other.py").write_text("def test_other(): assert False\n")
    done = pytest_in(tmp_path, "--dpgm-plugin", "dpgm-laplace", "-k", "cost-within or refuses or hockey", "-rs")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed, 1 skipped" in done.stdout and "dpgm conformance: dpgm-laplace" in done.stdout
    assert "profile default; mechanism laplace" in done.stdout and "needs 'approx'" in done.stdout


@pytest.mark.parametrize("name", ["dpgm-nowhere", "numpy"])
def test_pytest_refuses_what_offers_nothing(tmp_path, name):
    """Unknown distributions and those without components end in an error, not in 0 tests."""
    done = pytest_in(tmp_path, "--dpgm-plugin", name)
    assert done.returncode != 0 and name in done.stderr


def test_the_pytest_plugin_is_light():
    """Loading it, as every pytest run does, imports neither numpy nor hypothesis."""
    code = (
        "import sys, dpgm_core.testing.pytest_plugin; print([m for m in ('numpy', 'hypothesis') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- command line -------------------------------------------------------------------------------------------------

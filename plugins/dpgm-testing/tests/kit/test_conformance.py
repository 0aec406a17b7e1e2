"""Conformance classes run their checks, and name expected failures strictly."""

from typing import ClassVar

import pytest

from dpgm_core.sources.arrow import ArrowSource
from dpgm_testing import MechanismConformance, Profile, SourceConformance
from dpgm_testing.reference import ReferenceLaplace

QUICK = Profile(name="quick", examples=2, draws=20_000, shrink=False)


class TestReferenceLaplace(MechanismConformance):
    """The base class makes one test per check."""

    component = ReferenceLaplace
    profile = QUICK


class TestWrongDual(MechanismConformance):
    """An expected failure stays one."""

    component = None  # the fixture's: a test file cannot import from conftest.py
    profile = QUICK
    expected_failures: ClassVar = {"dual-is-the-conjugate": "wrong on purpose"}

    @pytest.fixture(autouse=True)
    def given(self, wrong_dual):
        type(self).component = wrong_dual()


class TestRecords(SourceConformance):
    """A source is given records by a static method."""

    component = ArrowSource

    profile = QUICK

    @staticmethod
    def records(table, folder):
        return ArrowSource(data=table)


def test_a_wrong_name_among_expected_failures_is_refused_at_once(wrong_dual):
    """The class cannot even be made."""
    with pytest.raises(TypeError, match="no check 'no-such-check'"):
        type("Wrong", (MechanismConformance,), {"component": wrong_dual, "expected_failures": {"no-such-check": "x"}})

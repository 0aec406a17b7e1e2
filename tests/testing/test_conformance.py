"""Conformance classes run their checks, and name expected failures strictly."""

from typing import ClassVar

import attrs
import pytest
from attrs import frozen

from dpgm_core import DualTerm
from dpgm_core.sources.arrow import ArrowSource
from dpgm_core.testing import MechanismConformance, Profile, SourceConformance
from dpgm_core.testing.reference import ReferenceLaplace, ReferenceLaplaceNoise

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

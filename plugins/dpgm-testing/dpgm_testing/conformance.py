"""Base classes for a plugin's own test file: one test for each check of the named component.

::

    from dpgm_testing import MechanismConformance
    from my_package import Mine

    class TestMine(MechanismConformance):
        component = Mine
        expected_failures = {"dual-is-the-conjugate": "the dual term is a bound only, see issue 7"}
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import pytest

from dpgm_testing.check import Check, Profile
from dpgm_testing.runner import checks_of, run_check, subject_of
from dpgm_testing.subjects import Subject

__all__ = [
    "CollectiveConformance",
    "InferenceConformance",
    "LearnerConformance",
    "MechanismConformance",
    "SelectorConformance",
    "SourceConformance",
]


class _Conformance:
    """component: a class, an instance or an installed name. expected_failures: check name -> reason, strict.

    profile: how far the checks go; None: as the environment variable DPGM_CONFORMANCE_PROFILE says, or "default".
    """

    kind: ClassVar[str]
    component: ClassVar[Any]
    profile: ClassVar[str | Profile | None] = None
    expected_failures: ClassVar[Mapping[str, str]] = {}
    records: ClassVar[Callable[..., Any] | None] = None
    _made: ClassVar[Subject]

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if "component" not in vars(cls):
            return
        known = {check.name for check in checks_of(cls.kind)}
        unknown = set(cls.expected_failures) - known
        if unknown:
            raise TypeError(f"{cls.__name__}: there is no check {sorted(unknown)[0]!r}; see checks_of({cls.kind!r})")
        cls.test_check = _test_of(cls.kind, cls.expected_failures)  # type: ignore[attr-defined]

    @classmethod
    def subject(cls) -> Subject:
        """The component under test, made once per class."""
        if "_made" not in vars(cls):
            profile = cls.profile or os.environ.get("DPGM_CONFORMANCE_PROFILE", "default")
            cls._made = subject_of(cls.component, cls.kind, profile=profile, records=cls.records)[0]
        return cls._made


def _test_of(kind: str, expected: Mapping[str, str]) -> Callable[..., None]:
    parameters = [
        pytest.param(
            check,
            id=check.name,
            marks=[pytest.mark.xfail(reason=expected[check.name], strict=True)] if check.name in expected else [],
        )
        for check in checks_of(kind)
    ]

    @pytest.mark.parametrize("check", parameters)
    def test_check(self: _Conformance, check: Check) -> None:
        """One named check of the conformance kit."""
        skipped = run_check(check, self.subject())
        if skipped is not None:
            pytest.skip(skipped)

    return test_check


class MechanismConformance(_Conformance):
    """A mechanism: what it claims, what it draws, what it refuses."""

    kind = "mechanism"


class InferenceConformance(_Conformance):
    """A plain engine."""

    kind = "inference"


class CollectiveConformance(_Conformance):
    """Inference over hidden tables."""

    kind = "collective"


class LearnerConformance(_Conformance):
    """A learner, with any engine and mechanism."""

    kind = "learner"


class SelectorConformance(_Conformance):
    """A selector, over core's own sessions."""

    kind = "selector"


class SourceConformance(_Conformance):
    """A source; `records` is a static method (pyarrow table, empty folder) -> source that holds the table's rows."""

    kind = "source"

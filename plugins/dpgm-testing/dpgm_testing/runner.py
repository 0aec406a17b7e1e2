"""Runners of checks on a component or a distribution, and reports of their outcomes."""

from __future__ import annotations

import importlib
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from typing import Any, Literal, TypeAlias

import attrs
from attrs import field, frozen

from dpgm_core._util.progress import Progress, silent
from dpgm_core._util.version import __version__
from dpgm_core.components.options import build
from dpgm_core.components.registry import Broken, Offer, Registry, default_registry, normal_name
from dpgm_core.errors import OptionError, PluginError, UnknownComponent, did_you_mean, printable
from dpgm_core.plugin import KINDS
from dpgm_testing.check import Check, Profile, profile_of
from dpgm_testing.subjects import (
    ClassSubject,
    CollectiveSubject,
    InferenceSubject,
    LearnerSubject,
    MechanismSubject,
    SelectorSubject,
    SourceSubject,
    Subject,
)

__all__ = [
    "Outcome",
    "Report",
    "check_component",
    "check_distribution",
    "checks_of",
    "offers_of",
    "run_check",
    "subject_of",
]

Status: TypeAlias = Literal["passed", "failed", "skipped", "expected failure", "unexpected pass"]

# core's own classes, held to their contract by the same means; no plugin can offer them
_OWN = ("curator", "ledger", "related")
# what a component is known by, if it is not said what it is
_METHODS = {"noise": "mechanism", "learn": "learner", "select": "selector", "batches": "source", "pinned": "source"}
_SUBJECTS: dict[str, Callable[..., Subject]] = {
    "mechanism": MechanismSubject,
    "inference": InferenceSubject,
    "collective": CollectiveSubject,
    "learner": LearnerSubject,
    "selector": SelectorSubject,
}


@frozen(kw_only=True)
class Outcome:
    """What one check found. message: why it failed or was skipped; seconds: wall clock."""

    check: str
    claim: str
    status: Status
    message: str = ""
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether this is no reason to reject the component."""
        return self.status not in ("failed", "unexpected pass")


@frozen(kw_only=True)
class Report:
    """What the checks of one component found; readable as text, and as plain values for machines.

    target: kind and name. distribution, version: where it comes from. profile: how far the checks went.
    """

    target: str
    distribution: str
    version: str
    profile: str
    outcomes: tuple[Outcome, ...] = field(factory=tuple)

    @property
    def ok(self) -> bool:
        """Whether no check failed; a report without a single check that ran is not ok."""
        return all(one.ok for one in self.outcomes) and any(one.status != "skipped" for one in self.outcomes)

    @property
    def failures(self) -> tuple[str, ...]:
        """The names of the checks that failed, or passed although a failure was expected."""
        return tuple(one.check for one in self.outcomes if not one.ok)

    @property
    def header(self) -> str:
        """Target, distribution, versions, profile: one line."""
        return (
            f"{self.target} from {self.distribution} {self.version}; dpgm-core {__version__}, "
            f"Python {platform.python_version()}; profile {self.profile}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**attrs.asdict(self), "ok": self.ok, "dpgm_core": __version__, "python": platform.python_version()}

    def __str__(self) -> str:
        width = max((len(one.check) for one in self.outcomes), default=5)
        lines = [self.header, ""]
        for one in self.outcomes:
            lines.append(f"{one.check:<{width}}  {one.status:<16}  {one.seconds:6.2f} s")
            if one.status != "passed" and one.message:
                lines += [f"    {line}" for line in one.message.splitlines()]
        counts = {status: sum(one.status == status for one in self.outcomes) for status in dict.fromkeys(
            one.status for one in self.outcomes)}  # fmt: skip
        seconds = sum(one.seconds for one in self.outcomes)
        lines += ["", ", ".join(f"{count} {status}" for status, count in counts.items()) + f" in {seconds:.1f} s"]
        return "\n".join(map(printable, lines))


def checks_of(kind: str) -> tuple[Check, ...]:
    """The named checks of a kind, in the order they run. Raises OptionError.

    >>> [check.name for check in checks_of("mechanism")][:2]
    ['keeps-its-contract', 'options-are-described']
    """
    if kind not in (*KINDS, *_OWN):
        raise OptionError(f"there are no checks for kind {kind!r}{did_you_mean(kind, [*KINDS, *_OWN])}")
    own: list[Check] = importlib.import_module(f"dpgm_testing.checks.{kind}").CHECKS
    if kind in _OWN:
        return tuple(own)
    declared: list[Check] = importlib.import_module("dpgm_testing.checks.declaration").CHECKS
    return (*declared, *own)


def check_component(
    component: object,
    kind: str | None = None,
    *,
    profile: str | Profile = "default",
    expected_failures: Mapping[str, str] | None = None,
    records: Callable[..., Any] | None = None,
    progress: Progress = silent,
) -> Report:
    """Hold a component to every check of its kind.

    component: a class, an instance, or the name of an installed one. kind: mechanism, inference, collective, learner,
    selector or source; None: found from the component. profile: "quick", "default" or "thorough". expected_failures:
    check name -> reason; strict: such a check that passes is reported as a failure. records: for sources, how to make
    one that holds given records (see `SourceConformance`); None: as its declaration says. progress: called for each
    check. Raises OptionError for a wrong kind, profile or check name, PluginLoadError for a declared function that
    cannot be imported.

    >>> from dpgm_testing.reference import ReferenceLaplace
    >>> tiny = Profile(name="tiny", examples=1, draws=2000, shrink=False)
    >>> check_component(ReferenceLaplace, profile=tiny).ok
    True
    """
    subject, offer = subject_of(component, kind, profile=profile, records=records)
    found = _kind(component, kind)
    checks = checks_of(found)
    expected = dict(expected_failures or {})
    for name in expected:
        if name not in {check.name for check in checks}:
            raise OptionError(f"no check is called {name!r}{did_you_mean(name, [check.name for check in checks])}")
    outcomes = []
    for number, check in enumerate(checks):
        progress(f"checking {subject.name}: {check.name}", number, len(checks))
        outcomes.append(_outcome(check, subject, expected.get(check.name)))
    progress(f"checking {subject.name}", len(checks), len(checks))
    return Report(
        target=f"{found} {subject.name!r}",
        distribution=offer.distribution if offer else "this process",
        version=offer.version if offer else "-",
        profile=subject.profile.name,
        outcomes=tuple(outcomes),
    )


def run_check(check: Check, subject: Subject) -> str | None:
    """Run one check: None if it ran and held, else why it was skipped. Raises what the check raises."""
    if check.needs is not None and check.needs not in subject.capabilities:
        return subject.why_skipped(check.needs)
    check.run(subject)
    return None


def check_distribution(
    distribution: str,
    *,
    profile: str | Profile = "default",
    registry: Registry | None = None,
    progress: Progress = silent,
) -> Iterator[Report]:
    """One report for each component of an installed distribution. Raises UnknownComponent or PluginError."""
    found = registry or default_registry()
    for offer in offers_of(distribution, found):
        one = offer.component
        cls = found.load(one.kind, one.name)
        yield check_component(cls, one.kind, profile=profile, records=_records(offer), progress=progress)


def _records(offer: Offer) -> Callable[..., Any] | None:
    if offer.component.records is None:
        return None
    from dpgm_testing.sources import records_of

    return records_of(offer)


def offers_of(distribution: str, registry: Registry) -> list[Offer]:
    """What a distribution offers; UnknownComponent if it is not installed or offers nothing, PluginError if broken."""
    wanted = normal_name(distribution)
    for broken in registry.broken:
        if isinstance(broken, Broken) and normal_name(broken.distribution) == wanted:
            raise PluginError(f"{broken.distribution} {broken.version} is broken: {broken.cause}")
    offers = [offer for offer in registry if normal_name(offer.distribution) == wanted]
    if offers:
        return offers
    known = sorted({offer.distribution for offer in registry})
    try:
        version = metadata.version(distribution)
    except (metadata.PackageNotFoundError, ValueError):
        raise UnknownComponent(
            f"no distribution {distribution!r} is installed{did_you_mean(distribution, known)}"
        ) from None
    raise UnknownComponent(
        f"{distribution} {version} is installed but offers no component: it needs an entry point in group 'dpgm' "
        "(and must not be in DPGM_DISABLE)"
    )


def subject_of(
    component: object,
    kind: str | None = None,
    *,
    profile: str | Profile = "default",
    records: Callable[..., Any] | None = None,
) -> tuple[Subject, Offer | None]:
    """The subject that checks are given, and the offer it comes from, if it is installed."""
    found = _kind(component, kind)
    chosen = profile_of(profile)
    registry = default_registry()
    if found in _OWN:
        return ClassSubject(component, chosen, getattr(component, "__name__", repr(component))), None
    offer = None
    if isinstance(component, str):
        offer = registry.find(found, component)
        component = registry.load(found, component)
    cls = component if isinstance(component, type) else type(component)
    name = registry.name_of(found, object.__new__(cls)) or cls.__qualname__
    if offer is None and name != cls.__qualname__:
        offer = registry.find(found, name)
    if found == "source":
        from dpgm_testing.sources import features_of

        declared = _records(offer) if records is None and offer is not None else records
        return SourceSubject(cls, chosen, name, declared, features_of(cls)), offer
    ready = component
    if isinstance(component, type):  # with default options, as the registry makes it, and samples of those required
        ready = build(component, _samples(component), what=f"{found} {name!r}", resolve=registry.make)
    return _SUBJECTS[found](ready, chosen, name), offer


def _samples(cls: type) -> dict[str, Any]:
    """A value for each required option whose field names one: `attrs.field(metadata={"sample": 1.0})`.

    One that names none is an OptionError when the component is made.
    """
    found = attrs.fields(cls) if attrs.has(cls) else ()
    return {
        one.name: one.metadata["sample"] for one in found if one.default is attrs.NOTHING and "sample" in one.metadata
    }


def _kind(component: object, kind: str | None) -> str:
    """The kind of a component: as stated, as registered, or by its one method."""
    if kind is not None:
        if kind not in (*KINDS, *_OWN):
            raise OptionError(f"there is no kind {kind!r}{did_you_mean(kind, KINDS)}")
        return kind
    if isinstance(component, str):
        kinds = [offer.component.kind for offer in default_registry() if offer.component.name == component]
        if len(set(kinds)) != 1:
            raise UnknownComponent(
                f"there is no component {component!r}; see dpgm plugins" if not kinds
                else f"{component!r} is the name of a {' and a '.join(kinds)}; say kind="
            )  # fmt: skip
        return kinds[0]
    for method, found in _METHODS.items():
        if callable(getattr(component, method, None)):
            return found
    compile_method = getattr(component, "compile", None)
    if callable(compile_method):
        import inspect

        return "collective" if "evidence" in inspect.signature(compile_method).parameters else "inference"
    raise OptionError(
        f"{component!r} has no method compile, {', '.join(list(_METHODS)[:-1])} or {list(_METHODS)[-1]}, so it is no "
        "component; say kind="
    )


def _outcome(check: Check, subject: Subject, reason: str | None) -> Outcome:
    start = time.perf_counter()
    status: Status = "passed"
    message = ""
    try:
        skipped = run_check(check, subject)
        if skipped is not None:
            status, message = "skipped", skipped
        elif reason is not None:
            status, message = "unexpected pass", f"it was expected to fail ({reason}); take it off the list"
    except Exception as error:
        status, message = ("failed" if reason is None else "expected failure"), explain(error)
        if reason is not None:
            message = f"{reason}\n{message}"
    return Outcome(
        check=check.name, claim=check.claim, status=status, message=message, seconds=time.perf_counter() - start
    )


def explain(error: BaseException) -> str:
    """What a check raised, with Hypothesis's falsifying example, as text."""
    kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
    return "\n".join([f"{kind}{error}", *map(str, getattr(error, "__notes__", ()))])

"""Checks: a claim, its limit, and what a component must declare to be held to it."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import frozen

from dpgm_core.errors import OptionError, did_you_mean

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = [
    "ALARM",
    "Check",
    "CheckFailed",
    "Checklist",
    "PROFILES",
    "Profile",
    "Unserved",
    "explore",
    "explored",
    "fast_collections",
    "profile_of",
    "require",
    "require_no_quote",
    "require_refusal",
]

T = TypeVar("T")

#: False-alarm probability of one statistical check on a component whose randomness cannot be seeded.
ALARM = 1e-7


class CheckFailed(AssertionError):
    """A component does not keep what a check claims; the message says what was found and what was expected."""


class Unserved(Exception):
    """The component declares that it does not serve this input, and refused it as it should."""


def require(condition: object, message: str) -> None:
    """Fail the running check unless the condition holds; unlike `assert`, under ``python -O`` too.

    >>> require(1 + 1 == 3, "1 + 1 is 2, not 3")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    dpgm_testing.check.CheckFailed: 1 + 1 is 2, not 3
    """
    if not condition:
        raise CheckFailed(message)


def require_refusal(
    what: str, call: Callable[[], object], *kinds: type[Exception], answered: str = "is answered, not refused"
) -> None:
    """Fail the running check unless the call raises one of these errors.

    >>> require_refusal("int('x')", lambda: int("x"), ValueError)
    """
    try:
        call()
    except kinds:
        return
    except Exception as error:
        raise CheckFailed(f"{what} raises {type(error).__name__}, not {kinds[0].__name__}") from error
    raise CheckFailed(f"{what} {answered}")


def require_no_quote(error: BaseException | None, planted: str, where: str = "") -> None:
    """Fail the running check if an error, or what it came from, shows a planted text."""
    while error is not None:
        require(planted not in f"{error!s}{error!r}{error.__dict__}", f"{where}{type(error).__name__} quotes a record")
        error = error.__cause__ or error.__context__


@contextmanager
def fast_collections() -> Iterator[None]:
    """Leave what exists now out of garbage collections, each of which takes a second where a process has much."""
    frozen_before = gc.get_freeze_count()
    gc.freeze()
    try:
        yield
    finally:
        if not frozen_before:
            gc.unfreeze()


@frozen(kw_only=True)
class Profile:
    """How far checks go. examples: Hypothesis examples per property. draws: samples per statistical check. shrink:
    whether counterexamples are made small before they are shown, which takes time.

    >>> Profile(name="mine", examples=5, draws=1000, shrink=False).examples
    5
    """

    name: str
    examples: int
    draws: int
    shrink: bool = True


PROFILES = {
    "quick": Profile(name="quick", examples=2, draws=20_000, shrink=False),
    "default": Profile(name="default", examples=60, draws=1_000_000),
    "thorough": Profile(name="thorough", examples=600, draws=8_000_000),
}


def profile_of(profile: str | Profile) -> Profile:
    """A profile by name, or itself. Raises OptionError.

    >>> profile_of("default").examples
    60
    """
    if isinstance(profile, Profile):
        return profile
    if profile not in PROFILES:
        raise OptionError(f"there is no check profile {profile!r}{did_you_mean(profile, PROFILES)}")
    return PROFILES[profile]


@frozen(kw_only=True)
class Check:
    """One claim about components of a kind.

    name: kebab-case. claim: what holds if the check passes on every input. limit: what it cannot show, besides what no
    check can; may be empty. needs: the
    capability a component must declare, or show by its behaviour, to be held to it; None for all. run: takes the
    subject, raises when the claim is refuted.
    """

    kind: str
    name: str
    claim: str
    limit: str
    needs: str | None
    run: Callable[[Any], None]


class Checklist(list[Check]):
    """The checks of one kind in the order they run; `add` makes one of a function.

    The function's name is the check's; its docstring is the claim, and after "Cannot show:" the limit.

    >>> checks = Checklist("mechanism")
    >>> @checks.add(needs="pure")
    ... def costs_little(subject):
    ...     '''It is cheap. Cannot show: that it is good.'''
    >>> checks[0].name, checks[0].claim, checks[0].limit
    ('costs-little', 'It is cheap.', 'that it is good.')
    """

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def add(self, *, needs: str | None = None) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
        """A decorator that appends a function as a check."""

        def register(run: Callable[[Any], None]) -> Callable[[Any], None]:
            claim, _, limit = " ".join((run.__doc__ or "").split()).partition(" Cannot show: ")
            self.append(
                Check(
                    kind=self.kind, name=run.__name__.replace("_", "-"), claim=claim, limit=limit, needs=needs, run=run
                )
            )
            return run

        return register


def explore(
    profile: Profile,
    inputs: SearchStrategy[T],
    claim: Callable[[T], None],
    *,
    worst: Iterable[T] = (),
    share: float = 1.0,
) -> None:
    """Try a claim on the worst cases known, then on inputs that Hypothesis makes, the same ones in every run.

    share: of the profile's examples, for claims that are slow to check.
    """
    from hypothesis import HealthCheck, Phase, given, settings

    def served(case: T) -> None:
        with suppress(Unserved):
            claim(case)

    for case in worst:
        served(case)
    phases = (Phase.generate, Phase.shrink) if profile.shrink else (Phase.generate,)

    @settings(
        max_examples=max(1, round(share * profile.examples)),
        derandomize=True,
        database=None,
        deadline=None,
        phases=phases,
        suppress_health_check=list(HealthCheck),
    )
    @given(inputs)
    def run(case: T) -> None:
        served(case)

    run()


def explored(
    inputs: Callable[[], SearchStrategy[T]], *, worst: Callable[[], Iterable[T]] = tuple, share: float = 1.0
) -> Callable[[Callable[[Any, T], None]], Callable[[Any], None]]:
    """A decorator that makes a check of a claim about a subject and an input, which it tries as `explore` does."""

    def decorate(claim: Callable[[Any, T], None]) -> Callable[[Any], None]:
        @wraps(claim)
        def check(subject: Any) -> None:
            explore(subject.profile, inputs(), partial(claim, subject), worst=worst(), share=share)

        return check

    return decorate

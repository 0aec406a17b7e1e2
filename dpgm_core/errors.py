"""The exceptions of dpgm, all children of :class:`DpgmError`.

::

    DpgmError
      DataError              a record source is missing, unreadable or does not fit the domain
        SourceRefused        a source says so in words that it vouches for: no record is in them
      DomainError            an attribute, label, bin or null policy is wrong
      StructureError         a clique, graph or table does not fit
      BudgetError            a budget, sensitivity or noise parameter is wrong
        Overspent            the ledger holds too little
      OptionError            a component's option, or a key of a spec file, is wrong (a ValueError too)
      InferenceError         an inference call failed or was asked for what it cannot do
        NotConverged         it ran out of iterations
        TooLarge             the exact answer does not fit; says the sizes
      LearningFailed         it failed after a release was paid for; holds the release
      ModelFileError         a release, model or ledger file is damaged, hostile or too new
      NonPrivateError        an exact function of records was asked for without saying so
      PluginError            a plugin is at fault; names distribution and version
        UnknownComponent     no component of that kind and name
        ContestedComponent   two distributions offer the name
        PluginLoadError      the plugin or the component raised while being imported
        IncompatiblePlugin   the component does not keep its contract

Each message says what was asked, what is wrong and what would do. No message carries the content of a record.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from dpgm_core.printable import printable

__all__ = [
    "BudgetError",
    "ContestedComponent",
    "DataError",
    "DomainError",
    "DpgmError",
    "IncompatiblePlugin",
    "InferenceError",
    "LearningFailed",
    "ModelFileError",
    "NonPrivateError",
    "NotConverged",
    "OptionError",
    "Overspent",
    "PluginError",
    "PluginLoadError",
    "SourceRefused",
    "StructureError",
    "TooLarge",
    "UnknownComponent",
    "did_you_mean",
    "require_non_private",
]


class DpgmError(Exception):
    """Whatever dpgm refuses or fails to do, in one line a user can act on."""

    def __str__(self) -> str:
        return printable(super().__str__())  # the names it quotes come from files


class DataError(DpgmError):
    """A record source is missing, unreadable or does not fit the domain."""


class SourceRefused(DataError):
    """A source cannot serve, in words of its own that reach the user: whoever raises it vouches that they are public.

    What any other exception out of a source says is withheld, as it may quote a record.
    """


class DomainError(DpgmError):
    """An attribute, label, bin or null policy is wrong."""


class StructureError(DpgmError):
    """A clique, graph or table does not fit."""


class BudgetError(DpgmError):
    """A budget, sensitivity or noise parameter is wrong."""


class Overspent(BudgetError):
    """The ledger holds too little for the charge; nothing was released."""


class OptionError(DpgmError, ValueError):
    """A component's option, or a key of a spec file, is wrong; a ValueError too, as attrs' own validators raise."""


class InferenceError(DpgmError):
    """An inference call failed or was asked for what it cannot do."""


class NotConverged(InferenceError):
    """An iterative method ran out of iterations."""


class TooLarge(InferenceError):
    """The exact answer does not fit in memory; the message says the sizes."""


class LearningFailed(DpgmError):
    """Learning failed after something was released: what was paid for is in `releases`, as the curator handed it out.

    The original error is its cause. `dpgm_core.learn(error.releases)` learns again, at no cost. discovery: labels that
    were found and paid for before, None where there are none.
    """

    def __init__(self, message: str, *, releases: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.releases = releases
        self.discovery: Any = None


class ModelFileError(DpgmError):
    """A release, model or ledger file is damaged, hostile or too new."""


class NonPrivateError(DpgmError):
    """An exact function of records was asked for without ``allow_non_private``."""


class PluginError(DpgmError):
    """A plugin is at fault; the message names distribution and version."""


class UnknownComponent(PluginError):
    """No component of that kind and name is installed."""


class ContestedComponent(PluginError):
    """Two distributions offer the same name; neither is used."""


class PluginLoadError(PluginError):
    """The plugin or the component raised while being imported."""


class IncompatiblePlugin(PluginError):
    """The component does not keep its contract."""


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """``"; did you mean 'x'?"`` for the nearest known word, else the list of all of them.

    >>> did_you_mean("labels", ["label", "size"])
    "; did you mean 'label'?"
    >>> did_you_mean("zzz", ["label", "size"])
    '; known: label, size'
    """
    known = list(known)
    near = difflib.get_close_matches(str(word), known, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {near[0]!r}?"
    if not known:
        return "; there are none"
    shown = known if len(known) <= 20 else [*known[:20], f"... ({len(known)} in all)"]
    return "; known: " + ", ".join(shown)


def require_non_private(what: str, allowed: object) -> None:
    """Raise NonPrivateError unless `allowed` is exactly True."""
    if allowed is not True:
        raise NonPrivateError(
            f"{what} is an exact function of records and NOT PRIVATE; if the records are yours to show, "
            "ask for it with allow_non_private=True (dpgm: --allow-non-private)"
        )

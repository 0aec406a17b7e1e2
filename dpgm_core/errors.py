"""The exceptions of dpgm, all subclasses of :class:`DpgmError`.

::

    DpgmError
      DataError              a record source is missing, unreadable or does not fit the domain
        SourceRefused        the same, with a message that the source guarantees to be public
      DomainError            an attribute, label, bin or null policy is wrong
      StructureError         a clique, graph or table does not fit
      BudgetError            a budget, sensitivity or noise parameter is wrong
        Overspent            the ledger holds too little
      OptionError            a component's option, or a key of a spec file, is wrong (a ValueError too)
      InferenceError         an inference call failed or the engine cannot do it
        NotConverged         it ran out of iterations
        TooLarge             the exact answer does not fit in memory; the message gives the sizes
      LearningFailed         it failed after a release was paid for; holds the release
      ModelFileError         a release, model or ledger file is damaged, hostile or too new
      NonPrivateError        an exact function of records without allow_non_private
      PluginError            a plugin is at fault; names distribution and version
        UnknownComponent     no component of that kind and name
        ContestedComponent   two distributions offer the name
        PluginLoadError      the plugin or the component raised while being imported
        IncompatiblePlugin   the component does not keep its contract

Each message names the object, what is wrong and what to do. No message contains values of a record.
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
    """Base class of all errors that dpgm raises."""

    def __str__(self) -> str:
        return printable(super().__str__())  # the names it quotes come from files


class DataError(DpgmError):
    """A record source is missing, unreadable or does not fit the domain."""


class SourceRefused(DataError):
    """A source cannot be read, with a message that is shown to the user.

    Whoever raises it guarantees that the message is public. The messages of other exceptions from a source are
    withheld, as they may quote a record.
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
    """A component's option, or a key of a spec file, is wrong."""


class InferenceError(DpgmError):
    """An inference call failed, or the engine cannot do it."""


class NotConverged(InferenceError):
    """An iterative method ran out of iterations."""


class TooLarge(InferenceError):
    """The exact answer does not fit in memory; the message gives the sizes."""


class LearningFailed(DpgmError):
    """Learning failed after a release was charged. The original error is its cause.

    Attributes
    ----------
    releases : tuple of NoisyTables
        What was charged and released; `dpgm_core.learn(error.releases)` learns from it at no cost.
    discovery : Discovery or None
        Labels that were released before.
    """

    def __init__(self, message: str, *, releases: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.releases = releases
        self.discovery: Any = None


class ModelFileError(DpgmError):
    """A release, model or ledger file is damaged, hostile or too new."""


class NonPrivateError(DpgmError):
    """An exact function of records was called without ``allow_non_private``."""


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
    """Return ``"; did you mean 'x'?"`` for the nearest known word, or else a list of the known words.

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

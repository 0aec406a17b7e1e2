"""Errors, and text of a user made safe for one line of a terminal."""

from __future__ import annotations

import difflib
import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

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
    "brief",
    "clipped",
    "did_you_mean",
    "human_bytes",
    "listed",
    "printable",
    "require_non_private",
    "spanned",
    "thousands",
]


# --------------------------------------------------------------------------------------------------
# Texts as shown to people. Names and labels come from files, which may be hostile.

#: What the `repr` of a value may take: lines, and characters of each.
_LINES, _WIDTH = 3, 120


def printable(text: object) -> str:
    """One line of a text: what a terminal would obey, or nobody would see, is spelled out as `repr` spells it.

    That is control characters and escapes, line breaks, marks that reverse or hide text, blanks that are not the
    blank, and halves of characters. All else stays, so what was spelled out once does not change again. Letters that
    only look alike are not distinguished.
    """
    shown = str(text)
    if shown.isprintable():
        return shown
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii") for letter in shown
    )


def clipped(text: object, most: int = 40) -> str:
    """A text of any length as one line of at most `most` characters.

    >>> clipped("x" * 100, 8)
    'xxxxx...'
    """
    shown = printable(str(text)[: most + 1])
    return shown if len(shown) <= most else shown[: most - 3] + "..."


def listed(texts: Sequence[object], most: int = 5) -> str:
    """The first of many texts on one line, and how many more there are.

    >>> listed(["a", "b", "c"], most=2), listed([])
    ('a, b, ... 1 more', 'none')
    """
    more = [f"... {len(texts) - most:,} more"] if len(texts) > most else []
    return ", ".join([*map(clipped, texts[:most]), *more]) or "none"


def thousands(number: int) -> str:
    """A whole number for people, however large: the cells of a table grow by its attributes.

    >>> thousands(12_345), thousands(10**6000)
    ('12,345', '10^6000')
    """
    return f"{number:,}" if abs(number) < 10**15 else f"10^{math.floor(math.log10(abs(number)))}"


def human_bytes(count: int) -> str:
    """Return a number of bytes for people, in powers of 1024.

    >>> human_bytes(32), human_bytes(3 * 2**20)
    ('32 B', '3.0 MiB')
    """
    if count >= 10**300:  # beyond what a float can be
        return f"{thousands(count)} B"
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if amount < 1024 or unit == "TiB":
            return f"{count} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    raise AssertionError("unreachable")


def spanned(numbers: Sequence[float]) -> str:
    """From the least of some numbers to the largest; one where they are alike to four digits.

    >>> spanned([2.0, 2.5]), spanned([2.0, 2.0])
    ('2 to 2.5', '2')
    """
    least, most = (f"{number:.4g}" for number in (min(numbers), max(numbers)))
    return least if least == most else f"{least} to {most}"


def brief(kind: str, *facts: str) -> str:
    """The `repr` of a value of any size: what it is and its facts, at most three lines of 120 characters.

    >>> brief("Model", "3 attributes", "private")
    'Model(3 attributes, private)'
    """
    whole = f"{kind}({', '.join(map(printable, facts))})"
    lines = textwrap.wrap(
        whole, _WIDTH, max_lines=_LINES, placeholder=" ...)", subsequent_indent="  ", break_on_hyphens=False
    )
    return "\n".join(lines)


# --------------------------------------------------------------------------------------------------
# The exceptions of dpgm, all subclasses of :class:`DpgmError`.
#
# ::
#
#     DpgmError
#       DataError              a record source is missing, unreadable or does not fit the domain
#         SourceRefused        the same, with a message that the source guarantees to be public
#       DomainError            an attribute, label, bin or null policy is wrong
#       StructureError         a clique, graph or table does not fit
#       BudgetError            a budget, sensitivity or noise parameter is wrong
#         Overspent            the ledger holds too little
#       OptionError            a component's option, or a key of a spec file, is wrong (a ValueError too)
#       InferenceError         an inference call failed or the engine cannot do it
#         NotConverged         it ran out of iterations
#         TooLarge             the exact answer does not fit in memory; the message gives the sizes
#       LearningFailed         it failed after a release was paid for; holds the release
#       ModelFileError         a release, model or ledger file is damaged, hostile or too new
#       NonPrivateError        an exact function of records without allow_non_private
#       PluginError            a plugin is at fault; names distribution and version
#         UnknownComponent     no component of that kind and name
#         ContestedComponent   two distributions offer the name
#         PluginLoadError      the plugin or the component raised while being imported
#         IncompatiblePlugin   the component does not keep its contract
#
# Each message names the object, what is wrong and what to do. No message contains values of a record.


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
    """Return ``"; did you mean 'x'?"`` for the nearest known word, or else a list of the known words."""
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

"""The report of a model: its sections in their order."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from dpgm_core._version import __version__
from dpgm_core.files import open_regular
from dpgm_core.ledger.ledger import Ledger
from dpgm_core.markup import Html
from dpgm_core.models.intervals import checked_level
from dpgm_core.models.model import Model
from dpgm_core.report.material import Material
from dpgm_core.report.opening import opening
from dpgm_core.report.page import page
from dpgm_core.report.parts import cut, join, stamp
from dpgm_core.report.sections import attributes, charges, chosen, fit, graph, guarantee, measured, origin, pairs, use

__all__ = ["make_report"]

#: Sections in the order of the page.
_SECTIONS = (
    guarantee.section,
    charges.section,
    measured.section,
    chosen.section,
    attributes.section,
    pairs.section,
    graph.section,
    fit.section,
    use.section,
    origin.section,
)


def make_report(
    model: Model, *, file: str | Path | None = None, ledger: Ledger | None = None, level: float = 0.9
) -> str:
    """Return an HTML page about a model: its guarantee in words, its measurements, its answers and their errors.

    The page is post-processing of the model's releases: free in privacy, and as private as they are. It loads nothing,
    and equal models, files and ledgers give equal pages.

    Parameters
    ----------
    model : Model
    file : path, optional
        Where the model is saved; its name is in the page's commands, and its SHA-256 in the page.
    ledger : Ledger, optional
        The ledger that the releases were charged to; the page shows its terms and charges, without the owner's notes.
    level : float
        Of the intervals, which a model with replicates has.

    Raises
    ------
    BudgetError
        The ledger is of other releases.
    OptionError
        `level` is not between 0 and 1.

    Examples
    --------
    >>> from dpgm_core import Domain, Model, Structure, Tables
    >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    >>> page = make_report(Model(structure, Tables.zeros(structure)))
    >>> page.startswith("<!doctype html>"), "NO GUARANTEE" in page
    (True, True)
    """
    path = None if file is None else Path(file)
    with nullcontext() if path is None else open_regular(path) as content:
        digest = None if content is None else hashlib.sha256(content.read()).hexdigest()
    material = Material(
        model,
        file="model.dpgm" if path is None else path.name,
        digest=digest,
        ledger=ledger,
        level=checked_level(level),
    )
    charges.check_ledger(material)
    what = "the model" if path is None else path.stem
    return page(
        kind="dpgm report",
        title=f"Report on {cut(what)}",
        opening=opening(material),
        sections=[section(material) for section in _SECTIONS],
        mark=marks(material.flaws),
        footer=f"Made by dpgm {__version__} from {_made_from(material)}.",
    )


def _made_from(material: Material) -> str:
    """What the page was made from."""
    if not material.releases:
        return f"{cut(material.file)} alone, which carries no release"
    ledger = "" if material.ledger is None else " and the ledger's own entries"
    return f"{cut(material.file)}{ledger or ' alone'}: post-processing of what was released"


def marks(flaws: Sequence[str]) -> Html | None:
    """A stamp for each flaw; None without flaws."""
    return join(stamp(flaw) for flaw in flaws) if flaws else None

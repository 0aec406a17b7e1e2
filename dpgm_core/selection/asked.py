"""Checks of a selection's arguments: the selector, the workload and the split of the budget."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dpgm_core.components.builtins import MECHANISM
from dpgm_core.components.registry import make
from dpgm_core.domain import Domain
from dpgm_core.errors import OptionError, StructureError
from dpgm_core.noise.check import Split
from dpgm_core.privacy.budget import Budget
from dpgm_core.releases.steps import mechanism_of, session_budget
from dpgm_core.selection.contract import Selector
from dpgm_core.workload import Workload

__all__ = ["selector_of", "share_only", "workload_of"]


def selector_of(selector: object) -> Selector:
    """Return the selector of this name, table or object. Raises StructureError for anything else."""
    if not isinstance(selector, (str, Mapping, Selector)):
        raise StructureError(
            "fit needs a Structure after the data, or a selector such as 'auto' that chooses one; got "
            f"{type(selector).__name__}"
        )
    made: Selector = make("selector", selector)
    return made


def workload_of(workload: object) -> Workload:
    """Return the workload, or the default one of a domain.

    >>> workload_of(Domain.from_sizes({"a": 2, "b": 3})).attributes
    ('a', 'b')
    """
    if isinstance(workload, Domain):
        return Workload.default(workload)
    if not isinstance(workload, Workload):
        raise OptionError(
            "a selector needs to know what the model is for: workload=Workload.all(domain), or workload=domain for its "
            f"default; got {type(workload).__name__}"
        )
    return workload


def share_only(split: Split | str | Mapping[str, Any], mechanism: object, budget: Budget) -> Fraction:
    """Return the share of a holdout. Raises OptionError for options that go with named cliques only."""
    split = Split.of(split)
    if split.tables != "even":
        raise OptionError(
            f"split = {split.tables!r} divides a budget over named cliques, but a selector divides it itself"
        )
    if mechanism not in (MECHANISM, drawn := mechanism_of(session_budget(budget))):
        raise OptionError(
            f"a selection under {budget} draws its noise with mechanism {drawn!r}, exactly; leave the mechanism out"
        )
    return split.holdout

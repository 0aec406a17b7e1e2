"""What a user asks of a selection, checked: the selector, the workload and how the budget is split."""

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
from dpgm_core.structure import Structure
from dpgm_core.workload import Workload

__all__ = ["attributes_alone", "selector_of", "share_only", "workload_of"]


def attributes_alone(workload: Workload) -> Structure:
    """What is counted before a selector has chosen anything."""
    return Structure(workload.domain, [(name,) for name in workload.attributes])


def selector_of(given: object) -> Selector:
    """The selector named or given. Raises StructureError for what is neither a structure nor a selector."""
    if not isinstance(given, (str, Mapping, Selector)):
        raise StructureError(
            "fit needs a Structure after the data, or a selector such as 'auto' that chooses one; got "
            f"{type(given).__name__}"
        )
    made: Selector = make("selector", given)
    return made


def workload_of(workload: object) -> Workload:
    """The workload; the default one of a domain.

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
    """The share of a holdout. Raises OptionError for what goes with named cliques only."""
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

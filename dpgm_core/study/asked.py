"""The definition of a study: a truth, what is compared on it, and how often."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import Attribute, field, frozen

from dpgm_core._version import __version__
from dpgm_core.components.builtins import INFERENCE, LEARNER
from dpgm_core.errors import OptionError, StructureError
from dpgm_core.files import plain
from dpgm_core.models.model import Model
from dpgm_core.noise.check import Split
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.terms import Terms
from dpgm_core.structure import Structure
from dpgm_core.study.methods import NAMED, Case, Method, cases_of, methods_of
from dpgm_core.tables import Tables
from dpgm_core.workload import Workload

__all__ = ["Study"]

_MAX_RECORDS, _MAX_RUNS = 10**8, 10**6


def _as_tuple(value: Any) -> tuple[Any, ...]:
    """What was given as one thing or as several."""
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, (str, Mapping)) else (value,)


def _budgets(value: Any) -> tuple[Budget, ...]:
    return tuple(map(Budget.parse, _as_tuple(value)))


def _whole(least: int, most: int, *, several: bool = False) -> Any:
    def check(_: object, attribute: Attribute[Any], value: Any) -> None:
        for one in value if several else (value,):
            if isinstance(one, bool) or not isinstance(one, int) or not least <= one <= most:
                raise OptionError(f"{attribute.name} must be a whole number from {least} to {most:,}, got {one!r}")

    return check


def _split(split: Split | str | Mapping[str, Any]) -> Split:
    return Split.of(split)


def _model(truth: object) -> Model:
    if not isinstance(truth, Model):
        raise OptionError(
            f"a study draws its records from a model, got {type(truth).__name__}; see generated_truth and load_model"
        )
    return truth


def _drawable(_: object, __: object, terms: Terms) -> None:
    if terms.declared_total is not None:
        raise OptionError(
            f"total = {terms.total} is what an owner declares of real records; in a study say records = "
            f"{terms.total:g} and total = 'public'"
        )


@frozen(kw_only=True, eq=False)
class Study:
    """Every learner x inference x mechanism x selector, on every number of records and every budget, `repeat` times.

    truth: the model that records are drawn from; `generated_truth` makes one up, `load_model` reads one. budgets,
    learners, inference, mechanisms, selectors: one or several, as `fit` takes them. mechanisms: None for "laplace" or
    "gaussian", as suits the budget. selectors: "named" for the cliques of `structure`, by default the truth's; others
    choose for the `workload`, with noise of their own. records: how many are drawn, one number or several; by default
    as many as the truth was learned from, or 10,000. neighbours: of the releases; or else terms. split: as in `fit`.
    seed: of all records and noise. Run r has the same records whatever the method, and the same noise where mechanism,
    budget and tables are the same, so that methods are compared on pairs. output, remarks: of a study that was read
    from a file, where the command keeps its runs, and what of the file was left alone.

    Raises PluginError, OptionError, BudgetError and StructureError for what cannot be asked.

    >>> from dpgm_core import Domain
    >>> from dpgm_core.study import generated_truth
    >>> truth = generated_truth(Domain.from_sizes({"a": 2, "b": 2}))
    >>> study = Study(truth=truth, neighbours="add-remove", budgets=Budget.pure(1), learners=["naive-mle", "eb-map"])
    >>> [method.label for method in study.methods], study.records
    (['naive-mle', 'eb-map'], (10000,))
    """

    truth: Model = field(converter=_model)
    budgets: tuple[Budget, ...] = field(converter=_budgets)
    learners: tuple[Any, ...] = field(default=LEARNER, converter=_as_tuple)
    inference: tuple[Any, ...] = field(default=INFERENCE, converter=_as_tuple)
    mechanisms: tuple[Any, ...] = field(default=None, converter=_as_tuple)
    selectors: tuple[Any, ...] = field(default=NAMED, converter=_as_tuple)
    records: tuple[int, ...] = field(converter=_as_tuple, validator=_whole(1, _MAX_RECORDS, several=True))
    distribution: Tables = field(init=False, repr=False)
    structure: Structure = field(repr=False)
    workload: Workload = field(repr=False)
    neighbours: str | None = field(default=None, repr=False)
    terms: Terms = field(validator=_drawable, repr=False)
    split: Split = field(default=Split(), converter=_split)
    repeat: int = field(default=20, validator=_whole(1, _MAX_RUNS))
    seed: int = field(default=0, validator=_whole(0, 2**64))
    name: str = "study"
    output: Path | None = field(default=None, repr=False)
    remarks: Sequence[str] = field(default=(), repr=False)
    methods: tuple[Method, ...] = field(init=False, repr=False)
    cases: tuple[Case, ...] = field(init=False, repr=False)

    @records.default
    def _as_many_as_learned_from(self) -> tuple[int, ...]:
        known = [round(one.total) for one in self.truth.releases]
        return (max(1, known[0]) if known else 10_000,)

    @distribution.default
    def _over_all_codes(self) -> Tables:
        return self.truth.expanded()

    @structure.default
    def _of_the_truth(self) -> Structure:
        return self.distribution.structure

    @workload.default
    def _of_the_domain(self) -> Workload:
        return Workload.default(self.distribution.structure.domain)

    @terms.default
    def _stated(self) -> Terms:
        return Terms.of(None, self.neighbours)

    @methods.default
    def _product(self) -> tuple[Method, ...]:
        return methods_of(self.learners, self.inference, self.mechanisms, self.selectors)

    @cases.default
    def _points(self) -> tuple[Case, ...]:
        return cases_of(self.methods, itertools.product(self.records, self.budgets))

    def __attrs_post_init__(self) -> None:
        for what in (self.structure, self.workload):
            if what.domain != self.distribution.structure.domain:
                raise StructureError(
                    f"the {type(what).__name__.lower()} and the truth have different attributes or labels; make it "
                    "over the truth's domain"
                )
        runs = len(self.cases) * self.repeat
        if not 1 <= runs <= _MAX_RUNS:
            raise OptionError(f"a study has from 1 to {_MAX_RUNS:,} runs, this one {runs:,}")

    def facts(self) -> dict[str, Any]:
        """What all its runs share and no case names, plain values; what is finished goes with the same facts only."""
        chooses = any(method.selector is not None for method in self.methods)
        return {
            "truth": _digest(self.distribution.structure.to_dict(), self.distribution.values.tolist()),
            "structure": _digest(self.structure.to_dict()),
            "workload": _digest(self.workload.to_dict()) if chooses else None,
            "terms": plain(self.terms.to_dict()),
            "split": {"tables": self.split.tables, "check": float(self.split.holdout)},
            "seed": self.seed,
            "dpgm-core": __version__,
        }


def _digest(*values: Any) -> str:
    spelled = json.dumps(values, ensure_ascii=True, sort_keys=True)
    return f"sha256:{hashlib.sha256(spelled.encode()).hexdigest()[:32]}"

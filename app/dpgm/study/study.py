"""Studies: cases, methods and generated truths."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attrs import Attribute, field, frozen

from dpgm_core._util.arrays import FloatArray
from dpgm_core._util.files import plain
from dpgm_core._util.version import __version__
from dpgm_core.components.builtins import INFERENCE, LEARNER
from dpgm_core.components.registry import default_registry, make
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import OptionError, StructureError, did_you_mean
from dpgm_core.inference.contract import Inference
from dpgm_core.learning.contract import Learner
from dpgm_core.learning.selector import Selector
from dpgm_core.models.model import Model
from dpgm_core.privacy.budget import Budget, Split
from dpgm_core.privacy.mechanism import Mechanism
from dpgm_core.privacy.terms import Terms
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables
from dpgm_core.structure.workload import Workload

__all__ = [
    "Case",
    "KINDS",
    "Method",
    "NAMED",
    "Study",
    "cases_of",
    "dirichlet_potentials",
    "generated_truth",
    "methods_of",
    "normal_potentials",
]


# --- Methods and cases ---

#: What a method is made of, in the order of its label.
KINDS = ("learner", "inference", "mechanism", "selector")
#: In the place of a selector: the cliques are named.
NAMED = "named"
# The mechanism of a kind of budget, where none is stated, and what a selection draws in any case.
_MECHANISM_FOR = {"pure": "laplace", "zcdp": "gaussian", "approx": "gaussian", "gdp": "gaussian"}


@frozen(kw_only=True, eq=False)
class Method:
    """Components that make a model together, and their names in tables.

    Attributes
    ----------
    mechanism
        None for the one that suits the budget.
    selector
        None if cliques are named.
    names
        Names of the components by kind.
    label
        What distinguishes the method from the study's other methods.
    """

    learner: Learner
    inference: Inference
    mechanism: Mechanism | None
    selector: Selector | None
    names: Mapping[str, str]
    label: str

    def mechanism_for(self, budget: Budget) -> Mechanism:
        """Return the method's own mechanism, or the one that suits the budget."""
        mechanism: Mechanism = (
            make("mechanism", _MECHANISM_FOR[budget.kind]) if self.mechanism is None else self.mechanism
        )
        return mechanism


@frozen(kw_only=True, eq=False)
class Case:
    """A method with a budget and a number of records.

    Attributes
    ----------
    key
        Identifies the case in files, with versions of components.
    """

    method: Method
    budget: Budget
    records: int
    key: str

    def to_dict(self) -> dict[str, Any]:
        """Return the case as in a line of results."""
        names = {**self.method.names}
        names["mechanism"] = names["mechanism"] or _MECHANISM_FOR[self.budget.kind]
        return {"key": self.key, **names, "budget": self.budget.to_dict(), "records": self.records}


def methods_of(
    learners: Sequence[Any], inference: Sequence[Any], mechanisms: Sequence[Any], selectors: Sequence[Any]
) -> tuple[Method, ...]:
    """Return every combination, with learners in the outer loop. Raises PluginError and OptionError."""
    components = dict(zip(KINDS, (learners, inference, mechanisms, selectors), strict=True))
    named = {kind: _components_by_name(kind, parts) for kind, parts in components.items()}
    methods = []
    for names in itertools.product(*named.values()):
        parts = {kind: named[kind][name] for kind, name in zip(KINDS, names, strict=True)}
        several = [name for kind, name in zip(KINDS, names, strict=True) if len(components[kind]) > 1 and name]
        methods.append(
            Method(**parts, names=dict(zip(KINDS, names, strict=True)), label=" / ".join(several) or names[0])
        )
    return tuple(methods)


def cases_of(methods: Sequence[Method], points: Iterable[tuple[int, Budget]]) -> tuple[Case, ...]:
    """Return every method at every point. Raises OptionError for duplicates."""
    cases = {}
    for records, budget in points:
        for method in methods:
            key = _case_key(method, budget, records)
            if key in cases:
                raise OptionError(
                    f"the study names {method.label} with {budget} on {records} records twice; once will do"
                )
            cases[key] = Case(method=method, budget=budget, records=records, key=key)
    return tuple(cases.values())


def _components_by_name(kind: str, components: Sequence[Any]) -> dict[str, Any]:
    """Return name -> component; the name is empty for a mechanism that suits the budget."""
    if not components:
        raise OptionError(f"a study needs at least one {kind}")
    by_name: dict[str, Any] = {}
    for one in components:
        if kind == "mechanism" and one is None:
            by_name[""] = None
            continue
        if kind == "selector" and one == NAMED:
            by_name[NAMED] = None
            continue
        made = make(kind, one)
        name = _component_name(kind, one, made)
        if name in by_name:  # objects with other options
            if _component_record(kind, by_name[name]) == _component_record(kind, made):
                raise OptionError(f"the study names {kind} {name} twice; once will do")
            name = f"{name} #{sum(other.partition(' #')[0] == name for other in by_name) + 1}"
        by_name[name] = made
    return by_name


def _component_name(kind: str, component: Any, made: object) -> str:
    """Return the name as stated: with the options that were stated."""
    if isinstance(component, str):
        return component
    if isinstance(component, Mapping):
        options = ", ".join(f"{key}={_option_text(value)}" for key, value in component.items() if key != "name")
        return f"{component['name']}({options})" if options else str(component["name"])
    return default_registry().name_of(kind, made) or type(made).__name__


def _option_text(value: Any) -> str:
    if isinstance(value, Mapping) and "name" in value:
        return _component_name("", value, None)
    return value if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)


def _component_record(kind: str, component: object) -> dict[str, Any]:
    """Return a component as plain values: its distribution, version and options."""
    registry = default_registry()
    return {**registry.record(kind, component), "options": plain(registry.options_of(component))}


def _case_key(method: Method, budget: Budget, records: int) -> str:
    parts = {"mechanism": method.mechanism_for(budget), "learner": method.learner, "inference": method.inference}
    made = {kind: plain(_component_record(kind, part)) for kind, part in parts.items()}
    made["selector"] = None if method.selector is None else plain(_component_record("selector", method.selector))
    spelled = json.dumps([made, budget.to_dict(), records], sort_keys=True)
    return hashlib.sha256(spelled.encode()).hexdigest()[:16]


# --- Studies ---

_MAX_RECORDS, _MAX_RUNS = 10**8, 10**6


def _as_tuple(value: Any) -> tuple[Any, ...]:
    """Return one value or several as a tuple."""
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, (str, Mapping)) else (value,)


def _budgets(value: Any) -> tuple[Budget, ...]:
    return tuple(map(Budget.parse, _as_tuple(value)))


def _is_whole_number(least: int, most: int, *, several: bool = False) -> Any:
    def check(_: object, attribute: Attribute[Any], value: Any) -> None:
        for one in value if several else (value,):
            if isinstance(one, bool) or not isinstance(one, int) or not least <= one <= most:
                raise OptionError(f"{attribute.name} must be a whole number from {least} to {most:,}, got {one!r}")

    return check


def _split(split: Split | str | Mapping[str, Any]) -> Split:
    return Split.of(split)


def _check_model(truth: object) -> Model:
    if not isinstance(truth, Model):
        raise OptionError(
            f"a study draws its records from a model, got {type(truth).__name__}; see generated_truth and load_model"
        )
    return truth


def _check_no_declared_total(_: object, __: object, terms: Terms) -> None:
    if terms.declared_total is not None:
        raise OptionError(
            f"total = {terms.total} is what an owner declares of real records; in a study say records = "
            f"{terms.total:g} and total = 'public'"
        )


@frozen(kw_only=True, eq=False)
class Study:
    """A study: every learner x inference x mechanism x selector, number of records and budget, `repeat` times.

    Parameters
    ----------
    truth : Model
        Records are drawn from it. `generated_truth` makes one, `load_model` reads one.
    budgets, learners, inference, mechanisms, selectors : one or several
        As `fit` takes them. `mechanisms` None is "laplace" or "gaussian", as suits the budget. `selectors` "named" is
        the cliques of `structure`; other selectors choose for the `workload`, with their own noise.
    records : int or several
        Number of records drawn; by default as many as the truth was learned from, or 10,000.
    structure : Structure
        By default that of the truth.
    neighbours, terms : str, Terms
        Terms of the releases; one of the two.
    split : as in `fit`
    seed : int
        Seed of all records and noise. Run r has the same records for every method, and the same noise where mechanism,
        budget and tables are the same, so that methods are compared on pairs.
    output, remarks : path, sequence of str
        Of a study that was read from a file: where the command saves its runs, and which keys were ignored.

    Raises
    ------
    PluginError, OptionError, BudgetError, StructureError
        For components, options, budgets and structures that cannot be used.

    Examples
    --------
    >>> from dpgm_core import Domain
    >>> from dpgm.study import generated_truth
    >>> truth = generated_truth(Domain.from_sizes({"a": 2, "b": 2}))
    >>> study = Study(truth=truth, neighbours="add-remove", budgets=Budget.pure(1), learners=["naive-mle", "eb-map"])
    >>> [method.label for method in study.methods], study.records
    (['naive-mle', 'eb-map'], (10000,))
    """

    truth: Model = field(converter=_check_model)
    budgets: tuple[Budget, ...] = field(converter=_budgets)
    learners: tuple[Any, ...] = field(default=LEARNER, converter=_as_tuple)
    inference: tuple[Any, ...] = field(default=INFERENCE, converter=_as_tuple)
    mechanisms: tuple[Any, ...] = field(default=None, converter=_as_tuple)
    selectors: tuple[Any, ...] = field(default=NAMED, converter=_as_tuple)
    records: tuple[int, ...] = field(converter=_as_tuple, validator=_is_whole_number(1, _MAX_RECORDS, several=True))
    distribution: Tables = field(init=False, repr=False)
    structure: Structure = field(repr=False)
    workload: Workload = field(repr=False)
    neighbours: str | None = field(default=None, repr=False)
    terms: Terms = field(validator=_check_no_declared_total, repr=False)
    split: Split = field(default=Split(), converter=_split)
    repeat: int = field(default=20, validator=_is_whole_number(1, _MAX_RUNS))
    seed: int = field(default=0, validator=_is_whole_number(0, 2**64))
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
        if self.truth.latent:
            raise OptionError(
                "the truth has latent classes, so nothing has a divergence from it in closed form; take a truth without"
            )
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
        """Return plain values that all runs share and no case names; finished runs are valid for equal facts only."""
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


# --- Generated truths ---

#: Edges of a "random" graph that an attribute has on average; for ten attributes the paper's p = 0.4.
_DEGREE = 3.6


def dirichlet_potentials(structure: Structure, generator: np.random.Generator, strength: float = 1.0) -> Tables:
    """Return log-potentials, nats: of each table `strength` times the logarithms of a draw from Dirichlet(1, ..., 1).

    With `strength` 1 they are those of Bernstein et al. (2017); with 0 all records are equally likely.

    Examples
    --------
    >>> structure = Structure.chain(Domain.from_sizes({"a": 2, "b": 2}))
    >>> round(float(np.exp(dirichlet_potentials(structure, np.random.default_rng(0)).values).sum()), 9)
    1.0
    """
    tables = [np.log(generator.dirichlet(np.ones(size))) for size in structure.sizes]
    return Tables(structure, strength * np.concatenate(tables))


def normal_potentials(structure: Structure, generator: np.random.Generator, strength: float = 1.0) -> Tables:
    """Return independent normal log-potentials, nats, with mean 0 and standard deviation `strength`.

    Examples
    --------
    >>> structure = Structure.chain(Domain.from_sizes({"a": 2, "b": 2}))
    >>> normal_potentials(structure, np.random.default_rng(0), strength=0).values.tolist()
    [0.0, 0.0, 0.0, 0.0]
    """
    values: FloatArray = generator.normal(scale=strength, size=structure.cells)
    return Tables(structure, values)


_POTENTIALS: Mapping[str, Callable[[Structure, np.random.Generator, float], Tables]] = {
    "dirichlet": dirichlet_potentials,
    "normal": normal_potentials,
}


def generated_truth(
    domain: Domain,
    structure: str | Mapping[str, Any] = "chain",
    *,
    potentials: str = "dirichlet",
    strength: float = 1.0,
    seed: int = 0,
) -> Model:
    """Return a random model, made from a seed and no records.

    Parameters
    ----------
    domain : Domain
    structure : str or mapping
        "chain", "tree" (balanced), "third-order" (edges up to three places apart), "random" (a connected graph from the
        seed with 3.6 edges per attribute), or a table such as [structure] in a spec.
    potentials : {"dirichlet", "normal"}
    strength : float
        Strength of the potentials.
    seed : int

    Raises
    ------
    OptionError, StructureError
        For invalid parameters.

    Examples
    --------
    >>> truth = generated_truth(Domain.from_sizes({"a": 2, "b": 3, "c": 2}), "third-order", seed=1)
    >>> truth.structure.cliques, truth.private
    ((('a', 'b'), ('a', 'c'), ('b', 'c')), None)
    """
    if not isinstance(potentials, str) or potentials not in _POTENTIALS:
        raise OptionError(f"a truth has no potentials {potentials!r}{did_you_mean(str(potentials), _POTENTIALS)}")
    if isinstance(strength, bool) or not isinstance(strength, (int, float)) or not 0 <= strength < 100:
        raise OptionError(f"a truth's strength must be a number from 0 to 100, got {strength!r}")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise OptionError(f"a truth's seed must be a whole number of at least 0, got {seed!r}")
    over = Structure.from_dict(domain, _structure_table(structure, len(domain), seed))
    return Model(over, _POTENTIALS[potentials](over, np.random.default_rng(seed), strength))


def _structure_table(structure: str | Mapping[str, Any], attributes: int, seed: int) -> Mapping[str, Any]:
    """Return the [structure] table of a name."""
    if isinstance(structure, Mapping):
        return structure
    named: Mapping[str, Mapping[str, Any]] = {
        "chain": {"graph": "chain"},
        "tree": {"graph": "tree"},
        "third-order": {"graph": "chain", "order": 3},
        "random": {"graph": "erdos-renyi", "p": min(1.0, _DEGREE / max(1, attributes - 1)), "seed": seed},
    }
    if not isinstance(structure, str) or structure not in named:
        raise OptionError(f"a truth has no structure {structure!r}{did_you_mean(str(structure), named)}")
    return named[structure]

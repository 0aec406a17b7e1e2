"""The methods that a study compares: every combination of components, with their names."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import frozen

from dpgm_core.components.registry import default_registry, make
from dpgm_core.errors import OptionError
from dpgm_core.files import plain
from dpgm_core.inference.contract import Inference
from dpgm_core.learning.contract import Learner
from dpgm_core.noise.contract import Mechanism
from dpgm_core.privacy.budget import Budget
from dpgm_core.selection.contract import Selector

__all__ = ["KINDS", "NAMED", "Case", "Method", "cases_of", "methods_of"]

#: What a method is made of, in the order of its label.
KINDS = ("learner", "inference", "mechanism", "selector")
#: In the place of a selector: the cliques are named.
NAMED = "named"
# The mechanism of a kind of budget, where none is stated, and what a selection draws in any case.
_SUITS = {"pure": "laplace", "zcdp": "gaussian", "approx": "gaussian"}


@frozen(kw_only=True, eq=False)
class Method:
    """Components that make a model together, and what they are called in tables.

    mechanism: None for the one that suits the budget. selector: None where cliques are named. names: by kind. label:
    what tells it from the study's other methods.
    """

    learner: Learner
    inference: Inference
    mechanism: Mechanism | None
    selector: Selector | None
    names: Mapping[str, str]
    label: str

    def mechanism_for(self, budget: Budget) -> Mechanism:
        """The method's own, or the one that suits the budget."""
        mechanism: Mechanism = make("mechanism", _SUITS[budget.kind]) if self.mechanism is None else self.mechanism
        return mechanism


@frozen(kw_only=True, eq=False)
class Case:
    """A method with a budget on so many records. key: names all of that in files, versions included."""

    method: Method
    budget: Budget
    records: int
    key: str

    def to_dict(self) -> dict[str, Any]:
        """What a line of results says of it."""
        names = {**self.method.names}
        names["mechanism"] = names["mechanism"] or _SUITS[self.budget.kind]
        return {"key": self.key, **names, "budget": self.budget.to_dict(), "records": self.records}


def methods_of(
    learners: Sequence[Any], inference: Sequence[Any], mechanisms: Sequence[Any], selectors: Sequence[Any]
) -> tuple[Method, ...]:
    """Every combination, the learners' changing slowest. Raises PluginError and OptionError."""
    components = dict(zip(KINDS, (learners, inference, mechanisms, selectors), strict=True))
    named = {kind: _named(kind, parts) for kind, parts in components.items()}
    methods = []
    for names in itertools.product(*named.values()):
        parts = {kind: named[kind][name] for kind, name in zip(KINDS, names, strict=True)}
        if parts["selector"] is not None and names[2] != next(iter(named["mechanism"])):
            continue  # a selection draws the noise that goes with its budget, whatever the mechanism
        if parts["selector"] is not None:
            parts["mechanism"], names = None, (*names[:2], "", names[3])
        several = [name for kind, name in zip(KINDS, names, strict=True) if len(components[kind]) > 1 and name]
        methods.append(
            Method(**parts, names=dict(zip(KINDS, names, strict=True)), label=" / ".join(several) or names[0])
        )
    return tuple(methods)


def cases_of(methods: Sequence[Method], points: Iterable[tuple[int, Budget]]) -> tuple[Case, ...]:
    """Every method at every point. Raises OptionError where the same is there twice."""
    cases = {}
    for records, budget in points:
        for method in methods:
            key = _key(method, budget, records)
            if key in cases:
                raise OptionError(
                    f"the study names {method.label} with {budget} on {records} records twice; once will do"
                )
            cases[key] = Case(method=method, budget=budget, records=records, key=key)
    return tuple(cases.values())


def _named(kind: str, components: Sequence[Any]) -> dict[str, Any]:
    """Name for tables -> component; "" for a mechanism that suits the budget."""
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
        name = _name(kind, one, made)
        if name in by_name:  # objects with other options
            if _record(kind, by_name[name]) == _record(kind, made):
                raise OptionError(f"the study names {kind} {name} twice; once will do")
            name = f"{name} #{sum(other.partition(' #')[0] == name for other in by_name) + 1}"
        by_name[name] = made
    return by_name


def _name(kind: str, component: Any, made: object) -> str:
    """As it was given: the name, and the options that were stated."""
    if isinstance(component, str):
        return component
    if isinstance(component, Mapping):
        options = ", ".join(f"{key}={_short(value)}" for key, value in component.items() if key != "name")
        return f"{component['name']}({options})" if options else str(component["name"])
    return default_registry().name_of(kind, made) or type(made).__name__


def _short(value: Any) -> str:
    if isinstance(value, Mapping) and "name" in value:
        return _name("", value, None)
    return value if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)


def _record(kind: str, component: object) -> dict[str, Any]:
    """What a component is, in plain values: its distribution, version and options."""
    registry = default_registry()
    return {**registry.record(kind, component), "options": plain(registry.options_of(component))}


def _key(method: Method, budget: Budget, records: int) -> str:
    parts = {"mechanism": method.mechanism_for(budget), "learner": method.learner, "inference": method.inference}
    made = {kind: plain(_record(kind, part)) for kind, part in parts.items()}
    made["selector"] = None if method.selector is None else plain(_record("selector", method.selector))
    spelled = json.dumps([made, budget.to_dict(), records], sort_keys=True)
    return hashlib.sha256(spelled.encode()).hexdigest()[:16]

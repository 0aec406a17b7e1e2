"""The registry: which components are installed, where they come from, and how to make one.

Our own loop over entry points: pluggy's loader lets one broken plugin stop the host and silently drops a second
distribution with the same key (docs/decisions/0001). pluggy validates and calls the hook.
"""

from __future__ import annotations

import importlib
import inspect
import operator
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from importlib import metadata
from typing import Any

import attrs
import pluggy

from dpgm_core import plugin as plugin_module
from dpgm_core._util.html import Html, card, first
from dpgm_core._util.version import __version__
from dpgm_core.components import options as option_tools
from dpgm_core.errors import (
    ContestedComponent,
    DataError,
    DpgmError,
    IncompatiblePlugin,
    OptionError,
    PluginError,
    PluginLoadError,
    UnknownComponent,
    clipped,
    did_you_mean,
)
from dpgm_core.plugin import KINDS, Component

__all__ = [
    "Broken",
    "Offer",
    "Registry",
    "default_registry",
    "make",
    "normal_name",
    "unmet_requirement",
    "version_bounds",
]

# What to install for a default that is missing.
_DEFAULTS = {
    ("mechanism", "laplace"): "dpgm-laplace",
    ("mechanism", "gaussian"): "dpgm-gaussian",
    ("learner", "naive-mle"): "dpgm-naive-mle",
    ("learner", "cgm-em"): "dpgm-cgm-em",
    ("learner", "eb-map"): "dpgm-eb-map",
    ("learner", "mixture"): "dpgm-mixture",
    ("learner", "psgd"): "dpgm-psgd",
    **{("learner", name): "dpgm-bayes-net" for name in ("bayes-net", "bayes-net-two-stage", "local")},
    **{("learner", name): "dpgm-mrf" for name in ("mrf-fw", "mrf-walsh")},
    **{("selector", name): "dpgm-mrf" for name in ("mrf-fw", "mrf-select", "mrf-stable")},
    ("inference", "gibbs"): "dpgm-mrf",
    **{
        ("selector", name): "dpgm-select"
        for name in ("aim", "all-pairs", "auto", "grow", "mst", "oneshot", "privbayes")
    },
    ("source", "spark"): "dpgm-spark",
    ("source", "sql"): "dpgm-sql",
}
# What to install for objects of an engine, by the package that they come from.
_TAKEN_BY = {"pyspark": "dpgm-spark"}


@attrs.frozen(kw_only=True)
class Offer:
    """A component and the distribution that offers it.

    Parameters
    ----------
    component : Component
        The declaration.
    distribution, version : str
        Of the distribution.
    implementation : type, optional
        The class, where it need not be imported.
    """

    component: Component
    distribution: str
    version: str
    implementation: type | None = attrs.field(default=None, repr=False)

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}"


@attrs.frozen(kw_only=True)
class Broken:
    """A distribution whose plugin could not be read, and why.

    Parameters
    ----------
    distribution, version : str
        Of the distribution.
    cause : str
        The reason.
    """

    distribution: str
    version: str
    cause: str


class Registry:
    """The components that can be used by name; a value, not a global.

    Parameters
    ----------
    offers : iterable of Offer
        From `discover` or `add`. A name that is offered twice is refused on use.
    broken : iterable of Broken
        Distributions that could not be read.
    disabled : iterable of str
        Distributions that were not read.

    Examples
    --------
    >>> registry = Registry()
    >>> registry.add(Component(kind="source", name="codes", target="dpgm_core.sources.codes:CodesSource", summary="x"))
    >>> [offer.component.name for offer in registry]
    ['codes']
    """

    def __init__(
        self, offers: Iterable[Offer] = (), broken: Iterable[Broken] = (), disabled: Iterable[str] = ()
    ) -> None:
        self._offers = list(offers)
        self.broken = tuple(broken)
        self.disabled = tuple(disabled)

    @classmethod
    def discover(cls) -> Registry:
        """Read every distribution with an entry point in group `dpgm`; a broken one is recorded, not raised.

        `DPGM_DISABLE=dist,dist` keeps distributions from being imported at all.
        """
        disabled = {normal_name(name) for name in os.environ.get("DPGM_DISABLE", "").split(",") if name.strip()}
        offers: list[Offer] = []
        broken: list[Broken] = []
        skipped: list[str] = []
        entry_points, unreadable = _entry_points()
        broken += unreadable
        for entry_point in sorted(entry_points, key=lambda point: point.name):
            # A damaged distribution has neither name nor version.
            distribution = (entry_point.dist and entry_point.dist.name) or entry_point.name
            version = (entry_point.dist and entry_point.dist.version) or "?"
            if normal_name(distribution) in disabled:
                skipped.append(distribution)
                continue
            try:
                components = _components(entry_point)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # whatever a plugin does, the host lives on
                broken.append(Broken(distribution=distribution, version=version, cause=_cause(error)))
                continue
            offers += [Offer(component=one, distribution=distribution, version=version) for one in components]
        return cls(offers, broken, skipped)

    def add(
        self, component: Component, implementation: type | None = None, *, distribution: str = "this process"
    ) -> None:
        """Offer a component by hand, for notebooks and tests; `implementation` spares the import of its target."""
        self._offers.append(
            Offer(component=component, distribution=distribution, version="-", implementation=implementation)
        )

    def substitute(self, kind: str, name: str, implementation: type) -> None:
        """Offer another class under a name that is offered already, for tests. Raises what `find` raises."""
        replaced = self.find(kind, name)
        self._offers.remove(replaced)
        self._offers.append(attrs.evolve(replaced, implementation=implementation))

    def __iter__(self) -> Iterator[Offer]:
        return iter(
            sorted(self._offers, key=lambda offer: (list(KINDS).index(offer.component.kind), offer.component.name))
        )

    def __repr__(self) -> str:
        return f"Registry({len(self._offers)} components, {len(self.broken)} broken)"

    def _repr_html_(self) -> Html:
        rows = ((one.component.kind, one.component.name, str(one), one.component.summary) for one in self)
        broken = ((one.distribution, clipped(one.cause, 200)) for one in self.broken)
        offers = first(["kind", "name", "distribution", "what it is"], rows, len(self._offers))
        return card("Registry", [], offers, first(["broken", "why"], broken, len(self.broken)))

    def find(self, kind: str, name: str) -> Offer:
        """Return the one offer of a name. Raises UnknownComponent or ContestedComponent."""
        if kind not in KINDS:
            raise UnknownComponent(f"there is no kind of component {kind!r}{did_you_mean(kind, KINDS)}")
        if not isinstance(name, str):
            raise OptionError(f"a {kind} is named by a text such as 'laplace', got {name!r}")
        same_kind = [offer for offer in self if offer.component.kind == kind]
        matches = [offer for offer in same_kind if offer.component.name == name]
        if len(matches) > 1:
            who = " and ".join(str(offer) for offer in matches)
            raise ContestedComponent(
                f"{kind} {name!r} is offered by {who}; choose one by setting "
                f"DPGM_DISABLE={matches[-1].distribution} (or the other), or uninstall one"
            )
        if matches:
            return matches[0]
        message = f"there is no {kind} {name!r}{did_you_mean(name, [offer.component.name for offer in same_kind])}"
        others = sorted({offer.component.kind for offer in self if offer.component.name == name})
        if others:
            message += f"; {name!r} is of kind {' and '.join(others)}"
        if (kind, name) in _DEFAULTS:
            message += f"; it comes with: pip install {_DEFAULTS[kind, name]}"
        raise UnknownComponent(message + self._troubles())

    def kinds_of(self, name: str) -> list[str]:
        """Return the kinds of which a component has this name; several may. Raises UnknownComponent."""
        known = [offer.component for offer in self]
        # One of ours that is not installed counts too: the error says which package it comes with.
        offered = dict.fromkeys(str(one.kind) for one in known if one.name == name)
        if kinds := list(offered) or [kind for kind, default in _DEFAULTS if default == name]:
            return kinds
        guess = did_you_mean(name, dict.fromkeys([*KINDS, *(one.name for one in known)]))
        raise UnknownComponent(f"no component is called {name!r}{guess}{self._troubles()}")

    def _troubles(self) -> str:
        """Return why something that is installed may not be there."""
        notes = [f"{one.distribution} {one.version} is broken: {one.cause}" for one in self.broken]
        notes += [f"disabled by DPGM_DISABLE: {', '.join(self.disabled)}"] if self.disabled else []
        return "".join(f"; note: {one}" for one in notes)

    def load(self, kind: str, name: str) -> type:
        """Return the component's class, imported and checked against its contract. Raises PluginErrors."""
        offer = self.find(kind, name)
        where = f"{kind} {name!r} of {offer}"
        cls = offer.implementation or _import_target(offer.component.target, where)
        _check_contract(kind, cls, where)
        return cls

    def make(self, kind: str, spec: object, /, **options: Any) -> Any:
        """Return a component.

        Parameters
        ----------
        kind : str
            The kind of component.
        spec : str, mapping or object
            A name, a table {"name": ..., option: ...}, or an instance, which is returned as it is.
        **options
            The fields of its class.

        Raises
        ------
        OptionError
            For wrong options.
        PluginError
            For wrong names.

        Examples
        --------
        >>> Registry.discover().make("inference", "junction-tree").compile
        <bound method ...>
        """
        if isinstance(spec, Mapping):
            table = dict(spec)
            if "name" not in table:
                raise OptionError(f"a {kind} given as a table needs a name, {{ name = ... }}; got {table!r}")
            return self.make(kind, table.pop("name"), **(table | options))
        if isinstance(spec, type):
            raise OptionError(f"a {kind} must be an object, got the class {spec.__name__}; write {spec.__name__}()")
        if not isinstance(spec, str):
            if kind in KINDS and _begun(kind, spec):
                if options:
                    raise OptionError(
                        f"the {kind} is given as an object; its options {sorted(options)} must be set on it"
                    )
                _check_methods(kind, spec, f"{kind} {type(spec).__name__}")
                return spec
            raise OptionError(f"a {kind} must be a name, a table or a {kind} object, got {type(spec).__name__}")
        cls = self.load(kind, spec)
        return option_tools.build(cls, options, what=f"{kind} {spec!r}", resolve=self.make)

    def source_of(self, data: object) -> Any:
        """Return the source that takes an object as its records, or None; the nearest base class decides.

        Raises ContestedComponent where several take it, and DataError where a plugin that is not installed does.
        """
        parents = type(data).__mro__
        for cls in parents:
            matches = [offer for offer in self if f"{cls.__module__}:{cls.__qualname__}" in offer.component.takes]
            if len(matches) > 1:
                who = " and ".join(f"{offer.component.name!r} of {offer}" for offer in matches)
                raise ContestedComponent(
                    f"a {cls.__name__} is taken by the sources {who}; make the one that is meant: "
                    f"make('source', {matches[0].component.name!r}, data=...)"
                )
            if matches:
                return self.make("source", matches[0].component.name, data=data)
        for package in [cls.__module__.partition(".")[0] for cls in parents]:
            plugin = _TAKEN_BY.get(package)
            if plugin is not None and plugin not in {normal_name(offer.distribution) for offer in self}:
                raise DataError(
                    f"records given as a {type(data).__name__} of {package} are read by {plugin}; "
                    f"pip install {plugin}{self._troubles()}"
                )
        return None

    def name_of(self, kind: str, component: object) -> str | None:
        """Return the name under which the class of a component is offered, or None for an unregistered one."""
        offer = self._offer_of(kind, component)
        return None if offer is None else offer.component.name

    def _offer_of(self, kind: str, component: object) -> Offer | None:
        cls = type(component)
        target = f"{cls.__module__}:{cls.__qualname__}"
        for offer in self:
            if offer.component.kind == kind and (offer.implementation is cls or offer.component.target == target):
                return offer
        return None

    def record(self, kind: str, component: object) -> dict[str, Any]:
        """Return name, distribution, version and options of a component as plain values, for provenance."""
        offer = self._offer_of(kind, component)
        if offer is None:
            return {"class": f"{type(component).__module__}:{type(component).__qualname__}"}
        return {
            "name": offer.component.name,
            "distribution": offer.distribution,
            "version": offer.version,
            "options": self.options_of(component),
        }

    def options_of(self, component: object) -> dict[str, Any]:
        """Return a component's fields as plain values that `make` takes back; component-valued ones as named tables."""
        plain = option_tools.plain_options(component)
        cls: Any = type(component)
        for field in attrs.fields(cls) if plain else ():
            kind = field.metadata.get("component")
            if kind is not None and not isinstance(getattr(component, field.name), str):
                inside = getattr(component, field.name)
                plain[field.name] = {"name": self.name_of(kind, inside)} | self.options_of(inside)
        return plain


@lru_cache(maxsize=1)
def default_registry() -> Registry:
    """Return the registry of everything installed, discovered once per process."""
    return Registry.discover()


def make(kind: str, name: object, /, **options: Any) -> Any:
    """Return a component, by kind and name, from everything installed.

    Parameters
    ----------
    kind : {"mechanism", "inference", "collective", "learner", "selector", "source"}
        The kind of component.
    name : str, mapping or object
        A name, a table {"name": ..., option: ...}, or an instance, which is returned as it is.
    **options
        The fields of its class, as `dpgm plugins NAME` shows them.

    Raises
    ------
    OptionError, UnknownComponent, PluginError

    Examples
    --------
    >>> make("inference", "junction-tree")
    JunctionTree(...)
    """
    return default_registry().make(kind, name, **options)


def _entry_points() -> tuple[list[metadata.EntryPoint], list[Broken]]:
    try:
        return list(metadata.entry_points(group="dpgm")), []
    except Exception:  # one damaged entry_points.txt anywhere; find out whose, the slow way
        pass
    entry_points: list[metadata.EntryPoint] = []
    broken = []
    seen = set()
    for distribution in metadata.distributions():
        name = distribution.name or "?"
        if normal_name(name) not in seen:
            seen.add(normal_name(name))
            try:
                entry_points += distribution.entry_points.select(group="dpgm")
            except Exception as error:
                version = distribution.version or "?"
                broken.append(Broken(distribution=name, version=version, cause=f"entry_points.txt: {_cause(error)}"))
    return entry_points, broken


def _components(entry_point: metadata.EntryPoint) -> list[Component]:
    requirement = unmet_requirement((entry_point.dist and entry_point.dist.requires) or (), "dpgm-core", __version__)
    if requirement is not None:
        raise IncompatiblePlugin(f"it needs {requirement}, but this is dpgm-core {__version__}; upgrade one of the two")
    module = entry_point.load()
    manager = pluggy.PluginManager("dpgm")
    manager.add_hookspecs(plugin_module)
    manager.register(module)
    manager.check_pending()
    results = manager.hook.dpgm_components()
    if not results:
        raise PluginError(f"module {entry_point.value!r} implements no hook dpgm_components, or it yields nothing")
    components = [component for result in results for component in result]
    for component in components:
        if not isinstance(component, Component):
            raise PluginError(f"dpgm_components yielded a {type(component).__name__}, not a Component")
    return components


def _import_target(target: str, where: str) -> type:
    module_name, _, name = target.partition(":")
    try:
        cls = getattr(importlib.import_module(module_name), name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise PluginLoadError(f"{where} cannot be imported from {target!r}: {_cause(error)}") from error
    if not isinstance(cls, type):
        raise IncompatiblePlugin(f"{where}: {target!r} is a {type(cls).__name__}, not a class")
    return cls


@lru_cache
def _protocols(kind: str) -> tuple[type, ...]:
    """Return the contracts of which a component of this kind keeps at least one."""
    named = (target.partition(":") for target in KINDS[kind])
    return tuple(getattr(importlib.import_module(module), name) for module, _, name in named)


def _methods(protocol: type) -> Mapping[str, Callable[..., Any]]:
    """Return the methods that a component must have, as its protocol spells them."""
    members = vars(protocol).items()
    return {method: call for method, call in members if inspect.isfunction(call) and method[0] != "_"}


def _begun(kind: str, owner: object) -> list[type]:
    """Return the contracts of a kind of which a class or an object has a method; it has to keep each of them whole."""
    return [one for one in _protocols(kind) if any(callable(getattr(owner, method, None)) for method in _methods(one))]


def _check_contract(kind: str, cls: type, where: str) -> None:
    """Compare signatures once, when a component is loaded."""
    if not attrs.has(cls):
        raise IncompatiblePlugin(f"{where}: {cls.__qualname__} must be a frozen, keyword-only attrs class")
    for field in attrs.fields(cls):
        if field.init and not field.kw_only:
            raise IncompatiblePlugin(f"{where}: option {field.name!r} must be keyword-only; use @frozen(kw_only=True)")
        # In a spec file `name` says which component is meant, and `source` which source.
        taken = [method for one in _protocols(kind) for method in _methods(one)]
        if field.name in ("name", *taken, *(("source",) if kind == "source" else ())):
            raise IncompatiblePlugin(
                f"{where}: option {field.name!r} hides what a {kind} needs that name for; rename it"
            )
    _check_methods(kind, cls, where)


def _check_methods(kind: str, owner: object, where: str) -> None:
    """Refuse a class, or an object made of it, whose methods do not accept what its contracts say."""
    begun = _begun(kind, owner)
    if not begun:
        first = [next(iter(_methods(one).items())) for one in _protocols(kind)]
        either = " nor ".join(f"{method}{inspect.signature(contract)}" for method, contract in first)
        raise IncompatiblePlugin(f"{where}: it has no method {either}")
    for method, contract in [pair for one in begun for pair in _methods(one).items()]:
        expected = inspect.signature(contract)
        own = getattr(owner, method, None)
        if not callable(own):
            raise IncompatiblePlugin(f"{where}: it has no method {method}{expected}")
        try:
            actual = inspect.signature(own)
        except (ValueError, TypeError):  # written in C, say; nothing to compare
            continue
        if not isinstance(owner, type):
            expected = expected.replace(parameters=list(expected.parameters.values())[1:])
        positional = [p.name for p in expected.parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
        keywords = {p.name: None for p in expected.parameters.values() if p.kind is p.KEYWORD_ONLY}
        try:
            actual.bind(*positional, **keywords)
            # Callers may name them too, apart from self.
            named = positional[1:] if isinstance(owner, type) else positional
            actual.bind(*positional[: len(positional) - len(named)], **dict.fromkeys(named), **keywords)
        except TypeError:
            raise IncompatiblePlugin(
                f"{where}: {method}{actual} does not accept what its contract says, {method}{expected}"
            ) from None
    # What a component must declare in addition to its methods.
    for member in [name for one in begun for name, own in vars(one).items() if isinstance(own, property)]:
        if not hasattr(owner, member):
            raise IncompatiblePlugin(f"{where}: it does not declare {member}; the contract of a {kind} says what it is")


def _cause(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return text[0] if isinstance(error, DpgmError) and text else f"{type(error).__name__}: {text[0] if text else ''}"


def normal_name(name: str) -> str:
    """Return a distribution's name as package indexes compare it.

    >>> normal_name("My_Plugin.x")
    'my-plugin-x'
    """
    return name.strip().lower().replace("_", "-").replace(".", "-")


# --- Versions of core that a plugin asks for ------------------------------------------------------


_REQUIREMENT = re.compile(r"\s*([\w.-]+)\s*(?:\[[^]]*\])?\s*\(?([^;()]*)\)?\s*(;.*)?")


_CLAUSE = re.compile(r"\s*(~=|==|!=|<=|>=|<|>)\s*v?(\d+(?:\.\d+)*)(\.\*)?\s*")


_COMPARE: dict[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}


def version_bounds(version: str) -> str:
    """Return a requirement on this core: up to the next release that may break contracts.

    That is the next MINOR version before 1.0, the next MAJOR version then.

    >>> version_bounds("0.2.0"), version_bounds("1.4.2")
    ('>=0.2.0,<0.3', '>=1.4.2,<2')
    """
    major, minor = _numbers(version)[:2]
    return f">={version},<{major + 1 if major else f'0.{minor + 1}'}"


def unmet_requirement(requirements: Iterable[str], name: str, version: str) -> str | None:
    """Return the first unconditional requirement on `name` that `version` does not meet, as written, or None.

    Versions compare by their release numbers (PEP 440 without pre-releases and epochs). What cannot be read so, or
    depends on a condition, is taken as met: pip checked it at installation, this only explains what came after.
    """
    for text in requirements:
        match = _REQUIREMENT.fullmatch(text)
        if match is None or re.sub(r"[-_.]+", "-", match[1]).lower() != name or match[3]:
            continue
        if not all(_holds(clause, version) for clause in match[2].split(",") if clause.strip()):
            return text.strip()
    return None


def _holds(clause: str, version: str) -> bool:
    match, own = _CLAUSE.fullmatch(clause), re.match(r"\d+(\.\d+)*", version)
    if match is None or own is None:
        return True
    sign, required, here = match[1], _numbers(match[2]), _numbers(own[0])
    if sign == "~=":  # ~= 1.4.2 is >= 1.4.2, == 1.4.*
        return _compared(">=", here, required) and here[: len(required) - 1] == required[:-1]
    return _compared(sign, here[: len(required)] if match[3] else here, required)


def _compared(sign: str, here: tuple[int, ...], required: tuple[int, ...]) -> bool:
    width = max(len(here), len(required))
    padded = [numbers + (0,) * (width - len(numbers)) for numbers in (here, required)]
    return _COMPARE[sign](padded[0], padded[1])


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))

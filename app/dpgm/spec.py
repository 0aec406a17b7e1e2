"""Spec files: a run as one TOML file, and settings over it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from attrs import evolve, field, frozen

from dpgm.interop.bif import UNKNOWN, bif_domain, bif_structure
from dpgm.validated import check_validated
from dpgm_core._util.exact_numbers import whole
from dpgm_core._util.files import bounded_bytes, hint_not_a_spec
from dpgm_core._util.locations import Url, is_url
from dpgm_core._util.progress import Progress, silent
from dpgm_core._util.toml import parse_toml
from dpgm_core.components.builtins import INFERENCE, LEARNER, MECHANISM
from dpgm_core.domain.constraints import read_constraints
from dpgm_core.domain.domain import Domain
from dpgm_core.domain.related import FIRST, SIZE, Related, named_columns
from dpgm_core.errors import OptionError, did_you_mean
from dpgm_core.models.intervals import checked_level, checked_replicates
from dpgm_core.privacy.budget import Budget, check_split, holdout_share, range_names
from dpgm_core.privacy.ledger_terms import ACCOUNTS, LedgerAccount
from dpgm_core.privacy.sensitivity import Contributions
from dpgm_core.privacy.terms import Terms
from dpgm_core.structure.builders import read_singletons
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.workload import Workload

if TYPE_CHECKING:
    from dpgm_core.learning.research import ResearchPlan
    from dpgm_core.pipeline.run import Run
    from dpgm_core.privacy.ledger import Ledger

__all__ = [
    "IntervalsSpec",
    "LedgerSpec",
    "NAMED",
    "PlannedAnalysis",
    "Spec",
    "apply_setting",
    "check_known",
    "check_shared",
    "domain_of",
    "file_stem",
    "is_related",
    "load_spec",
    "parse_setting",
    "read_analyses",
    "read_plain",
    "read_spec",
    "related_selector",
    "structure_of",
    "table_of",
    "text_of",
]


# --- Settings ---


def parse_setting(setting: str) -> tuple[list[str], Any]:
    """`a.b=VALUE` as keys and value; VALUE is TOML, or a plain text if it is not.

    >>> parse_setting("learner.l2=0.5"), parse_setting("learner=naive-mle")
    ((['learner', 'l2'], 0.5), (['learner'], 'naive-mle'))
    """
    key, equals, text = setting.partition("=")
    keys = [part.strip() for part in key.split(".")]
    if not equals or not all(keys):
        raise OptionError(f"a setting must look like KEY=VALUE or KEY.KEY=VALUE, got {setting!r}")
    try:
        plain = parse_toml(f"value = {text.strip()}")
    except ValueError:
        plain = {}
    return keys, plain["value"] if set(plain) == {"value"} else text.strip()


def apply_setting(plain: dict[str, Any], setting: str, named: Mapping[tuple[str, ...], str | None]) -> None:
    """Set a key in a table of tables, making tables on the way.

    named: where a text is short for a table with nothing but a name, and the name to take where nothing stands. Raises
    OptionError where something else than a table stands on the way.

    >>> run = {"learner": "cgm-em"}
    >>> apply_setting(run, "learner.tau=2", {("learner",): None})
    >>> run
    {'learner': {'name': 'cgm-em', 'tau': 2}}
    """
    keys, value = parse_setting(setting)
    table = plain
    for depth, key in enumerate(keys[:-1], start=1):
        place = tuple(keys[:depth])
        inside = table.get(key, named.get(place) or {})
        if place in named and isinstance(inside, str):
            inside = {"name": inside}
        if not isinstance(inside, dict):
            raise OptionError(f"setting {setting!r}: {key!r} is not a table, so no key can be set inside it")
        table[key] = inside
        table = inside
    table[keys[-1]] = value


# --- Checks of single values ---


def check_known(where: str, plain: Mapping[str, Any], known: Iterable[str]) -> None:
    """Refuse unknown keys with OptionError."""
    for key in plain:
        if key not in known:
            raise OptionError(f"{where} has no setting {key!r}{did_you_mean(key, known)}")


def table_of(where: str, key: str, plain: object, known: Iterable[str]) -> Mapping[str, Any]:
    """Return a table that has known keys only. Raises OptionError."""
    if not isinstance(plain, Mapping):
        raise OptionError(f"{where}: {key} must be a table, got {plain!r}")
    check_known(f"{where}: [{key}]", plain, known)
    return plain


def text_of(where: str, key: str, value: object) -> str:
    """Return a text that is not empty. Raises OptionError."""
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise OptionError(f"{where}: {key} must be a text in quotes, got {value!r}")
    return value


def file_stem(where: str, value: object) -> str:
    """Return a name that files can have. Raises OptionError."""
    name = text_of(where, "name", value)
    if any(letter in name for letter in "/\\") or name.startswith(".") or not name.isprintable() or len(name) > 80:
        raise OptionError(
            f"{where}: name {name!r} names files: at most 80 letters, no slashes or line breaks, no dot at the start"
        )
    return name


# --- Specs ---

MAX_BYTES = 2**26  # of a spec file; a domain may stand in it

_KEYS = (
    "name", "data", "domain", "neighbours", "unit", "person", "rows_per_person", "contributions", "total", "records",
    "mechanism", "learner", "inference", "budget", "split", "structure", "workload", "ledger", "output", "intervals",
    "holdout", "labels_from", "ranges", "research", "simulation", "validated", "key", "max_children", "order",
)  # fmt: skip
_REQUIRED = {
    "data": "",
    "domain": "",
    "neighbours": " ('add-remove' or 'replace-one'; there is no default)",
    "budget": "",
    "structure": " (the cliques, or selector = 'auto' to have them chosen privately)",
}
# Where a name is short for a table with nothing but a name, and which name where there is none.
NAMED = {("mechanism",): MECHANISM, ("learner",): LEARNER, ("inference",): INFERENCE, ("structure", "selector"): None}
# The keys of an analysis in [research], the name of the selector that has nothing, and the smallest share of their
# tables.
_ANALYSIS_KEYS = ("formula", "family", "event", "groups")
_DEFAULT_SELECTOR, _LEAST_SHARE = "auto", 1e-6
# Of two related tables: the tables, and what only their specs say.
_TABLES = ("root", "children")
_OF_RELATED = ("key", "max_children", "order")
_SORTED = "sorted"
# An earlier spelling of a key in [structure], which is still read.
_FORMER_SELECTOR_KEY, _SELECTOR_KEY = "select", "selector"


@frozen(kw_only=True)
class LedgerSpec:
    """The ledger's file, what to create it with, and the owner's sentence for a spent one."""

    path: Path
    budget: Budget | None = None
    create: bool = False
    when_spent: str | None = None
    account: LedgerAccount | None = None
    other: Budget | None = None


@frozen(kw_only=True)
class IntervalsSpec:
    """Error bars on printed results: the level of the intervals, and the number of refits behind them."""

    level: float = 0.9
    replicates: int = 40


@frozen(kw_only=True)
class PlannedAnalysis:
    """A formula that tables are measured for, with the arguments of `dpgm.analyse`."""

    formula: str
    family: Any = None
    event: str | None = None
    groups: bool = False

    def __str__(self) -> str:
        more = [self.family] if self.family else []
        more += [f"event {self.event!r}"] if self.event else []
        more += ["by groups"] if self.groups else []
        return ", ".join([self.formula, *more])


@frozen(kw_only=True)
class Spec:
    """One run, checked. Paths are resolved against the spec file's folder. holdout: its share.

    Of two related tables, which the terms state, data are {"root": ..., "children": ...}, and the domain is of pairs.
    Either structure is stated, or selector is, as `make` takes it, and then workload says what it is for.
    learner: None where the file names none, so that a selector may choose it. labels_from: the file of labels that an
    earlier run found. validated: the file of `dpgm validate` that must name the domain. analyses: what tables are
    measured for first, by the selector `research`. records: how many rows are expected to count, public or a guess;
    plans show it, and it changes no release. remarks: what the owner should know of what was made of the file, one line
    each.
    """

    name: str
    data: Any
    domain: Domain
    budget: Budget
    terms: Terms
    structure: Structure | None = None
    selector: str | Mapping[str, Any] | None = None
    workload: Workload | None = None
    mechanism: Any = None
    learner: Any = None
    inference: Any = INFERENCE
    split: str = "even"
    ranges: tuple[str, ...] = ()
    ledger: LedgerSpec | None = None
    output: Path = field(factory=Path)
    intervals: IntervalsSpec | None = None
    holdout: Fraction = Fraction(0)
    labels_from: Path | None = None
    seed: int | None = None
    validated: Path | None = None
    records: float | None = None
    analyses: tuple[PlannedAnalysis, ...] = ()
    remarks: tuple[str, ...] = ()

    def to_run(
        self,
        *,
        ledger: Ledger | None = None,
        save_release: Path | None = None,
        progress: Progress = silent,
        learns: bool = True,
    ) -> Run:
        """Return the run that the spec describes, with its components made and its data as a source.

        learns: False for a run that only releases named tables, which needs no learner and no inference.
        """
        from dpgm_core._util.randomness import SeededRandomness
        from dpgm_core.pipeline.run import Run

        learns = learns or self.structure is None
        learner = LEARNER if self.learner is None else self.learner
        assert self.structure is not None or self.selector is not None  # checked when the spec was read
        return Run(
            self.data,
            self.structure or self._planned_selector(),
            self.budget,
            self.mechanism,
            learner if learns else None,
            self.inference if learns else INFERENCE,
            workload=self.workload,
            terms=self.terms,
            randomness=None if self.seed is None else SeededRandomness(self.seed),
            ledger=ledger,
            save_release=save_release,
            progress=progress,
            split={"tables": self.split, "holdout": self.holdout, "ranges": self.ranges},
            labels_from=self.labels_from,
            may_switch=self.learner is None,
        )

    @cached_property
    def research(self) -> ResearchPlan | None:
        """The tables of the analyses and the shares of a budget for them; None without analyses."""
        if not self.analyses:
            return None
        from dpgm.research import plan_analyses

        assert self.workload is not None  # as a selector measures them
        return plan_analyses(self.workload, self.analyses, pure=self.budget.kind == "pure")

    def _planned_selector(self) -> Any:
        """The selector, with the tables of the analyses."""
        if self.research is None:
            return self.selector
        from dpgm.research import targeted

        assert isinstance(self.selector, Mapping)  # that of the analyses
        return targeted(self.research, self.analyses, share=self.selector["share"], then=self.selector["then"])

    @property
    def select(self) -> str | Mapping[str, Any] | None:
        """The selector, under its earlier name."""
        return self.selector

    @property
    def expected_records(self) -> float | None:
        """The expected number of records: `records` of the spec, or else its declared total."""
        return self.terms.declared_total if self.records is None else self.records


def load_spec(path: str | Path, settings: Iterable[str] = (), validated: str | Path | None = None) -> Spec:
    """Read a spec file, apply `KEY.KEY=VALUE` settings to it, and check every key.

    validated: a file of `dpgm validate` that must name the spec's domain, in place of the one that the spec names.
    Raises OptionError, DomainError, StructureError, TooLarge or BudgetError, and DataError for a BIF file; touches no
    data.
    """
    run = read_spec(path, settings)
    if validated is not None:
        run = evolve(run, validated=Path(validated), terms=evolve(run.terms, validated=True))
    if run.validated is not None:
        check_validated(run.validated, run.domain)
    return run


def read_spec(path: str | Path, settings: Iterable[str] = ()) -> Spec:
    """Read a spec like `load_spec`, without the file of `dpgm validate`: for the command that writes it."""
    path = Path(path)
    return _spec(read_plain(path, settings), path)


def read_plain(path: Path, settings: Iterable[str] = ()) -> dict[str, Any]:
    """Return the tables of a spec file with settings applied, unchecked. Raises OptionError."""
    try:
        plain = parse_toml(bounded_bytes(path, MAX_BYTES))
    except OSError as error:
        raise OptionError(f"cannot read the spec file {path}: {error.strerror or type(error).__name__}") from None
    except ValueError as error:
        hint = hint_not_a_spec(path)
        raise OptionError(hint or f"spec file {path} is not valid TOML: {error}") from None
    _rename_former_keys(plain, path)
    for setting in settings:
        key, equals, value = setting.partition("=")
        places = [part.strip() for part in key.split(".")]
        if places[:2] == ["structure", _FORMER_SELECTOR_KEY]:
            key = ".".join(["structure", _SELECTOR_KEY, *places[2:]])
        elif places[0] == "check":
            key = ".".join(["holdout", *places[1:]])
        apply_setting(plain, key + equals + value, NAMED)
        _rename_former_keys(plain, path)
    return plain


def _rename_former_keys(plain: dict[str, Any], path: Path) -> None:
    """Move the selector and the holdout from their earlier keys. Raises OptionError where both keys are there."""
    if "check" in plain:
        if "holdout" in plain:
            raise OptionError(f"spec {path.name} has both [holdout] and [check], which mean the same; keep [holdout]")
        plain["holdout"] = plain.pop("check")
    table = plain.get("structure")
    if not isinstance(table, dict) or _FORMER_SELECTOR_KEY not in table:
        return
    if _SELECTOR_KEY in table:
        raise OptionError(
            f"spec {path.name}: [structure] has both {_SELECTOR_KEY} and {_FORMER_SELECTOR_KEY}, which mean the same; "
            f"keep {_SELECTOR_KEY}"
        )
    table[_SELECTOR_KEY] = table.pop(_FORMER_SELECTOR_KEY)


def _spec(plain: Mapping[str, Any], path: Path) -> Spec:
    where = f"spec {path.name}"
    if "attributes" in plain:
        raise OptionError(
            f"{path} is a domain file, not a spec: it has [attributes]. Name it in a spec: domain = {path.name!r}"
        )
    if amounts := [key for key in ("epsilon", "delta", "rho", "mu") if key in plain]:
        said = ", ".join(f"{key} = {plain[key]}" for key in amounts)
        raise OptionError(f"{where} has {said} at its top level; write budget = {{ {said} }}")
    check_known(where, plain, _KEYS)
    # --set cannot take a section out, but empty it.
    empty = {"workload", "structure"} if "research" in plain else {"workload"}
    plain = {key: value for key, value in plain.items() if key not in empty or value != {}}
    two = is_related(plain)
    if two and "budget" in plain:
        plain = {"structure": {_SELECTOR_KEY: related_selector(Budget.parse(plain["budget"]))}, **plain}
    for key, hint in _REQUIRED.items():
        if key not in plain and not (key == "structure" and "research" in plain):
            raise OptionError(f"{where} does not say {key!r}{hint}; add it")
    folder = path.parent
    related = None
    if two:
        related, remarks = _related(where, plain, folder)
        read = related.pair
    else:
        read, remarks = domain_of(where, plain["domain"], folder)
    output = table_of(where, "output", plain.get("output", {}), ("folder",))
    simulation = table_of(where, "simulation", plain.get("simulation", {}), ("seed",))
    budget = Budget.parse(plain["budget"])
    analyses, share = _research(where, plain["research"]) if "research" in plain else ((), None)
    selector = _selector(where, plain) if "structure" in plain else None
    workload = None if selector is None else _workload(related or read, plain)
    if analyses:
        workload, selector = _with_analyses(where, plain, read, analyses, share, selector, workload)
    structure = None
    if selector is not None:
        _check_selectable(where, plain)
    else:
        structure, more = structure_of(where, plain["structure"], read, folder)
        remarks += more
    remarks += _needless(read, structure)
    if related is not None:
        remarks += _check_measured(where, related, structure, workload)
    return Spec(
        name=file_stem(where, plain.get("name", path.stem)),
        data=_two_data(where, plain["data"], folder) if two else _data(where, plain["data"], folder),
        domain=read,
        structure=structure,
        selector=selector,
        workload=workload,
        budget=budget,
        terms=Terms(
            neighbours=plain["neighbours"],
            unit=text_of(where, "unit", plain["unit"]) if "unit" in plain else None,
            person=text_of(where, "person", plain["person"]) if "person" in plain else None,
            rows_per_person=plain.get("rows_per_person", 1),
            contributions=Contributions.parse(plain["contributions"]) if "contributions" in plain else None,
            total=plain.get("total", "estimated"),
            related=related,
            validated="validated" in plain,
        ),
        mechanism=plain.get("mechanism"),
        learner=plain.get("learner"),
        inference=plain.get("inference", INFERENCE),
        split=check_split(plain.get("split", "even")),
        ranges=range_names(plain.get("ranges", ())),
        ledger=_ledger(where, plain["ledger"], folder) if "ledger" in plain else None,
        output=folder / text_of(where, "output.folder", output.get("folder", ".")),
        intervals=_intervals(where, plain["intervals"]) if "intervals" in plain else None,
        holdout=_holdout_share(where, plain["holdout"]) if "holdout" in plain else Fraction(0),
        labels_from=folder / text_of(where, "labels_from", plain["labels_from"]) if "labels_from" in plain else None,
        validated=folder / text_of(where, "validated", plain["validated"]) if "validated" in plain else None,
        records=_records(where, plain["records"]) if "records" in plain else None,
        analyses=analyses,
        seed=whole("simulation.seed", simulation["seed"], least=0) if "seed" in simulation else None,
        remarks=tuple(dict.fromkeys(remarks)),
    )


def _records(where: str, value: object) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 1 <= value < 2**53:
        return float(value)
    raise OptionError(f"{where}: records must be the number of rows, of at least 1, such as 10000; got {value!r:.80}")


def domain_of(where: str, plain: Any, folder: Path) -> tuple[Domain, list[str]]:
    """Return the domain, from a file or the spec, and remarks. A table whose `bif` is a text is not an attribute."""
    if isinstance(plain, str):
        path = folder / text_of(where, "domain", plain)
        return bif_domain(path) if path.suffix.lower() == ".bif" else (Domain.load(path), [])
    if isinstance(plain, Mapping) and isinstance(plain.get("bif"), str):
        table = table_of(where, "domain", plain, ("bif", "unknown"))
        return bif_domain(folder / text_of(where, "domain.bif", table["bif"]), table.get("unknown", UNKNOWN))
    return Domain.from_dict(plain, folder=folder), []


def structure_of(where: str, plain: Any, domain: Domain, folder: Path) -> tuple[Structure, list[str]]:
    """Return the named structure, and remarks."""
    if not isinstance(plain, Mapping) or "bif" not in plain:
        return Structure.from_dict(domain, plain), []
    other = next((key for key in plain if key != "bif"), None)
    if other is not None:
        raise OptionError(
            f"{where}: [structure] has both bif and {other}; the graph in a BIF file is a whole structure, so leave "
            "one of them out"
        )
    return bif_structure(folder / text_of(where, "structure.bif", plain["bif"]), domain)


def is_related(plain: Mapping[str, Any]) -> bool:
    """Whether a spec is of two related tables, by any key that only those have."""
    data, domain = (plain.get(key) for key in ("data", "domain"))
    if isinstance(data, Mapping) and "source" not in data and data.keys() & {*_TABLES}:
        return True
    tables = [domain.get(key) for key in _TABLES] if isinstance(domain, Mapping) else [None]
    return any(key in plain for key in _OF_RELATED) or all(isinstance(one, Mapping) for one in tables)


def related_selector(budget: Budget) -> str:
    """Return the default of two related tables: of pure budgets `auto` might take `mst`, which refuses them."""
    return "aim" if budget.kind == "pure" else _DEFAULT_SELECTOR


def _related(where: str, plain: Mapping[str, Any], folder: Path) -> tuple[Related, list[str]]:
    """Return the statement about two related tables, and remarks."""
    if "key" not in plain:
        raise OptionError(
            f"{where} does not say 'key', the column of both tables whose value is a root's own; write "
            'key = "household_id", or key = { root = "id", children = "household_id" }'
        )
    if "research" in plain:
        raise OptionError(f"{where}: [research] is for one table, and here are two related ones; leave it out")
    if "labels_from" in plain:
        raise OptionError(
            f"{where}: labels_from has labels of open columns, which two related tables cannot have; leave it out"
        )
    table = _two(where, "domain", plain["domain"], "constraints")
    (root, remarks), (children, more) = (domain_of(f"{where}: {key}", table[key], folder) for key in _TABLES)
    most: Any = plain.get("max_children")
    stated = table.get("constraints")
    rules = read_constraints(stated, named_columns(root, children, most), folder) if stated is not None else ()
    related = Related(
        root=root,
        children=children,
        key=plain["key"],
        max_children=most,
        order=plain.get("order"),
        constraints=rules,
    )
    return related, [*remarks, *more]


def _two(where: str, key: str, plain: object, *more: str) -> Mapping[str, Any]:
    """Return a table with an entry for each of two tables. Raises OptionError."""
    if isinstance(plain, Mapping) and {*_TABLES} <= plain.keys() <= {*_TABLES, *more}:
        return plain
    third = sorted(plain.keys() - {*_TABLES, *more}) if isinstance(plain, Mapping) else []
    what = f"{third[0]!r} has no place here" if third else "each is needed"
    raise OptionError(f"{where}: [{key}] of two related tables has root and children; {what}")


def _two_data(where: str, plain: object, folder: Path) -> dict[str, Any]:
    table = _two(where, "data", plain, _SORTED)
    data = {key: _data(f"{where}: data.{key}", table[key], folder) for key in _TABLES}
    return data | ({_SORTED: table[_SORTED]} if _SORTED in table else {})


def _check_measured(
    where: str, related: Related, structure: Structure | None, workload: Workload | None
) -> Iterator[str]:
    """Refuse two related tables of which no table holds the number of children; return remarks on child columns."""
    if workload is not None:
        if SIZE not in workload.attributes:
            raise OptionError(
                f"{where}: [workload] leaves out {SIZE!r}, the number of children, without which no sample can be "
                "drawn; add it to the targets or cliques"
            )
        return
    assert structure is not None
    cliques = [set(clique) for clique in structure.cliques]
    if not any(SIZE in clique for clique in cliques):
        raise OptionError(
            f"{where}: no clique holds {SIZE!r}, the number of children, without which no sample can be drawn; name "
            'one, such as ["size", "COLUMN"], or say singletons = true'
        )
    for name in related.children.names if related.max_children > 1 else ():
        held = [any(slot + name in clique for clique in cliques) for slot in (FIRST, "")]
        if not all(held):
            yield (
                f"cliques must hold {FIRST}{name} and {name}, the first child's and another one's, to tell {name} of "
                "all children; one is in none, so it will be left out"
            )
        elif not any({SIZE, name} <= clique for clique in cliques):
            yield (
                f"no clique holds {name} with {SIZE}, so what is said of {name} of all children averages over roots of "
                "any size"
            )


def _needless(domain: Domain, structure: Structure | None) -> Iterator[str]:
    """Return remarks on keys without effect: cliques named again, and columns about which nothing can be learned."""
    if structure is not None:
        for clique in dict.fromkeys(structure.duplicates):
            yield f"[structure] names the clique of {' and '.join(clique)} more than once; it is measured once"
    measured = domain.names if structure is None else [name for clique in structure.cliques for name in clique]
    for one in domain:
        if one.size == 1 and one.name in measured:
            yield (
                f"column {one.name} has one label only, so nothing can be learned of it; leave it out of the domain, "
                "as its tables are paid for all the same"
            )


def _selector(where: str, plain: Mapping[str, Any]) -> str | Mapping[str, Any] | None:
    """Return the selector; None if cliques are named."""
    table = plain["structure"]
    if not isinstance(table, Mapping) or _SELECTOR_KEY not in table:
        if "workload" in plain:
            raise OptionError(
                f"{where}: [workload] says what a structure is chosen for, but here its cliques are named; leave it "
                "out, or say selector = 'auto' instead of the cliques"
            )
        if table == {}:
            raise OptionError(
                f"{where}: [structure] needs cliques, a graph, parents, bif or singletons, or selector = 'auto'"
            )
        return None
    other = next((key for key in table if key not in (_SELECTOR_KEY, "singletons")), None)
    if other is not None:
        raise OptionError(
            f"{where}: [structure] has both selector and {other}; name the cliques or have them chosen, as in "
            "--set structure={selector='auto'}"
        )
    selector = table[_SELECTOR_KEY]
    if isinstance(selector, Mapping):
        text_of(where, "structure.selector.name", selector.get("name"))
        return selector
    return text_of(where, "structure.selector", selector)


def _research(where: str, plain: object) -> tuple[tuple[PlannedAnalysis, ...], float | None]:
    """Return the analyses of [research], at least one, and the share of the budget that it states."""
    table = table_of(where, "research", plain, ("regressions", "share"))
    share = table.get("share")
    if share is not None and (
        isinstance(share, bool) or not isinstance(share, (int, float)) or not _LEAST_SHARE <= share <= 1
    ):
        raise OptionError(f"{where}: research.share must be a part of the budget such as 0.6, at most 1, got {share!r}")
    return read_analyses(f"{where}: research.regressions", table.get("regressions")), share


def read_analyses(where: str, plain: object) -> tuple[PlannedAnalysis, ...]:
    """Return analyses from a list of formulas, or of tables with a formula. Raises OptionError; parses no formula.

    >>> read_analyses("x", ["income ~ age", {"formula": "hours ~ sex", "family": "linear"}])[1].family
    'linear'
    """
    if not isinstance(plain, (list, tuple)) or not plain:
        raise OptionError(
            f'{where} must be a list of formulas such as ["income ~ age + sex", {{ formula = "hours ~ sex" }}], got '
            f"{plain!r:.80}"
        )
    analyses = []
    for one in plain:
        table = {"formula": one} if isinstance(one, str) else table_of(where, "each", one, _ANALYSIS_KEYS)
        groups = table.get("groups", False)
        if not isinstance(groups, bool):
            raise OptionError(f"{where}: groups must be true or false, got {groups!r:.80}")
        texts = {key: text_of(where, key, table[key]) for key in ("formula", "family", "event") if key in table}
        if "formula" not in texts:
            raise OptionError(f"{where}: each needs a formula, such as 'income ~ age'; got {dict(table)!r:.80}")
        analyses.append(PlannedAnalysis(**texts, groups=groups))
    return tuple(analyses)


def _with_analyses(
    where: str,
    plain: Mapping[str, Any],
    domain: Domain,
    analyses: tuple[PlannedAnalysis, ...],
    share: float | None,
    then: str | Mapping[str, Any] | None,
    workload: Workload | None,
) -> tuple[Workload, Mapping[str, Any]]:
    """Return the workload, and the selector that measures tables for the analyses before `then`."""
    from dpgm.research import cliques_of
    from dpgm_core.learning.research import default_share

    out = "[structure] and [workload]" if "workload" in plain else "[structure]"
    if then is None and "structure" in plain:
        raise OptionError(
            f"{where}: [research] says what is measured, and [structure] names cliques; say selector = 'auto' in their "
            f"place, for what is left, or leave {out} out"
        )
    if then is None and share not in (None, 1):
        raise OptionError(
            f"{where}: research.share = {share} leaves a part of the budget for nothing; name a selector under "
            "[structure], or leave the share out"
        )
    if then is not None and share == 1:
        raise OptionError(
            f"{where}: research.share = 1 leaves nothing for the selector under [structure]; take a smaller share, or "
            f"leave {out} out"
        )
    cliques = cliques_of(domain, analyses)
    if workload is None:
        # Without a selector it has no other settings.
        limits = table_of(where, "workload", plain.get("workload", {}), ("max_cells", "never"))
        workload = Workload.of(domain, cliques, **limits)
    if share is None:
        columns = [name for clique in cliques for name in clique]
        share = 1.0 if then is None else default_share(columns, workload)
    share = float(share)
    return workload, {"name": "research", "share": share, "then": then or _DEFAULT_SELECTOR}


def _workload(of: Domain | Related, plain: Mapping[str, Any]) -> Workload:
    """Return the workload of a selection; selectors measure each of its attributes alone before they choose."""
    if isinstance(of, Related) and not plain.get("workload"):
        workload = Workload.related(of)
    else:
        workload = Workload.from_dict(of.pair if isinstance(of, Related) else of, plain.get("workload", {}))
    return workload.with_singletons() if read_singletons(plain["structure"]) else workload


def _check_selectable(where: str, plain: Mapping[str, Any]) -> None:
    """Refuse, by its key, what does not go with a structure that is chosen privately."""
    if plain.get("split", "even") != "even":
        raise OptionError(
            f"{where}: split = {plain['split']!r:.80} divides a budget over named cliques, but a selector divides it "
            "by what it finds; leave split out, or name the cliques"
        )
    if "contributions" in plain:
        raise OptionError(
            f"{where}: contributions do not go with a selector, as scores of weighted rows are not supported; leave "
            "contributions out, or name the cliques"
        )


def _ledger(where: str, plain: object, folder: Path) -> LedgerSpec:
    table = table_of(where, "ledger", plain, ("path", "budget", "create", "when_spent", "account", "other"))
    if "path" not in table:
        raise OptionError(f"{where}: [ledger] needs a path")
    create = table.get("create", False)
    if not isinstance(create, bool):
        raise OptionError(f"{where}: ledger.create must be true or false, got {create!r}")
    if create and "budget" not in table:
        raise OptionError(f"{where}: ledger.create = true needs ledger.budget, the whole of what may ever be spent")
    when_spent = text_of(where, "ledger.when_spent", table["when_spent"]) if "when_spent" in table else None
    if when_spent is not None and not when_spent.isprintable():
        raise OptionError(f"{where}: ledger.when_spent ends a one-line message; write it without line breaks or tabs")
    account = table.get("account")
    if account is not None and account not in ACCOUNTS:
        raise OptionError(
            f"{where}: ledger.account must be one of {', '.join(ACCOUNTS)}; got {account!r}"
            f"{did_you_mean(str(account), ACCOUNTS)}"
        )
    return LedgerSpec(
        path=folder / text_of(where, "ledger.path", table["path"]),
        budget=Budget.parse(table["budget"]) if "budget" in table else None,
        create=create,
        when_spent=when_spent,
        account=account,
        other=Budget.parse(table["other"]) if "other" in table else None,
    )


def _intervals(where: str, plain: object) -> IntervalsSpec:
    table = table_of(where, "intervals", plain, ("level", "replicates"))
    return IntervalsSpec(
        level=checked_level(table.get("level", 0.9)), replicates=checked_replicates(table.get("replicates", 40))
    )


def _holdout_share(where: str, plain: object) -> Fraction:
    table = table_of(where, "holdout", plain, ("share",))
    if "share" not in table:
        raise OptionError(f"{where}: [holdout] needs a share, that of the budget it may cost, such as share = 0.05")
    return holdout_share(table["share"])


def _data(where: str, plain: object, folder: Path) -> Any:
    if isinstance(plain, str):
        return _place(where, "data", text_of(where, "data", plain), folder)
    if isinstance(plain, Mapping):
        table = dict(plain)
        if "source" not in table:
            raise OptionError(f"{where}: [data] needs a source, such as source = 'csv'")
        text_of(where, "data.source", table["source"])
        if isinstance(table.get("path"), str):
            table["path"] = str(_place(where, "data.path", text_of(where, "data.path", table["path"]), folder))
        if isinstance(table.get("database"), str):
            table["database"] = _database_address(table["database"], folder)
        return table
    raise OptionError(f"{where}: data must be a file name or a table with a source, got {plain!r}")


def _database_address(address: str, folder: Path) -> str:
    """Return the address of a database; a file address such as duckdb:///visits.db is relative to the spec's folder."""
    engine, three, file = address.partition(":///")
    if not three or engine not in ("duckdb", "sqlite") or not file or file.startswith("/"):
        return address
    return f"{engine}:///{quote(str(folder))}/{file}"


def _place(where: str, key: str, text: str, folder: Path) -> str | Path:
    """Return a path relative to the spec's folder; a URL unchanged, or refused if it holds credentials."""
    if not is_url(text):
        return folder / text
    check_shared(f"{where}: {key}", text)
    return text


def check_shared(what: str, url: str) -> None:
    """Refuse, with OptionError, a URL of records that holds credentials, as specs are shared."""
    if Url(url).is_secret:
        raise OptionError(
            f"{what} is a URL with a signature or a key in it; name the plain URL, and let the protocol's own library "
            "take credentials from the environment"
        )

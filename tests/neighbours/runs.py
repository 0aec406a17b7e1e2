"""Runs of the whole way on given records: `dpgm fit` on a file, and `fit` on what Python holds.

The structure is given, or chosen by a selector at a fixed seed.
"""

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from attrs import evolve, frozen

import dpgm_core as dpgm
from tests.neighbours.observe import Run

#: What changes between neighbours: a record more, or another record in the place of one.
TERMS = {"add": "add-remove", "replace": "replace-one"}

#: With budgets that they serve; steps of all kinds are among them.
SELECTORS: tuple[tuple[dict[str, object], str], ...] = (
    ({"name": "oneshot"}, "rho"),
    ({"name": "mst"}, "epsilon"),
    ({"name": "aim"}, "rho"),
    ({"name": "auto"}, "epsilon"),
    ({"name": "privbayes"}, "rho"),
    ({"name": "mrf-select"}, "rho"),
    ({"name": "mrf-fw", "width": 1, "steps": 3}, "rho"),
    ({"name": "mrf-stable", "blocks": 5}, "delta"),
    ({"name": "grow"}, "rho"),
    ({"name": "mst"}, "delta"),
    ({"name": "grow"}, "delta"),
    ({"name": "research", "tables": [["sex", "age"]], "then": "mst"}, "epsilon"),
    ({"name": "mst"}, "mu"),
)

_SPEC = """
name = "x"
domain = "domain.toml"
neighbours = "{neighbours}"
budget = {{ epsilon = 3 }}
learner = {{ name = "naive-mle", l2 = 0.01 }}
structure = {{ cliques = [["sex", "age"]] }}
{more}
[ledger]
path = "x.ledger"
budget = {{ epsilon = 9 }}
create = true
[output]
folder = "out"
"""
DOMAIN = b"""
[attributes.sex]
labels = ["F", "M", "1"]
unknown = "F"
null = "M"
[attributes.age]
bins = [0, 40, 99]
unknown = "?"
"""
# Of runs without a key, so that there are pairs to choose from.
_MORE = b'[attributes.id]\nlabels = ["1", "2", "p"]\nunknown = "2"\n'


BUDGETS = {
    "epsilon": dpgm.Budget.pure(3),
    "rho": dpgm.Budget.zcdp(3),
    "delta": dpgm.Budget.approx(3, "1e-6"),
    "mu": dpgm.Budget.gdp(2),
}


@frozen
class Pair:
    """Two runs that may differ in their noise only."""

    name: str
    one: Run
    other: Run


def spec_run(data: str, change: str, keyed: bool, files: Mapping[str, bytes], domain: bytes = DOMAIN) -> Run:
    """`dpgm fit` or, faster, `dpgm release` of a spec. data: its value there; files: that lie beside it, by name."""
    person = 'person = "id"\nrows_per_person = 2' if keyed else ""
    spec = _SPEC.format(neighbours=TERMS[change], more=f"data = {data}\n{person}")
    command = "fit" if keyed else "release"
    read = {"x.toml": spec.encode(), "domain.toml": domain, **files}
    return Run(words=("--debug", command, "FOLDER/x.toml"), files=read)


def file_run(name: str, content: bytes, data: str, change: str, keyed: bool) -> Run:
    """The same on a file of this content."""
    return spec_run(data, change, keyed, {name: content})


def python_run(data: Callable[[], object], change: str, keyed: bool, described: bytes = DOMAIN) -> Run:
    """`fit` on what `data` makes, with a ledger and a file for the release. described: the domain file."""

    def run(folder: Path, selector: Mapping[str, object] | None = None, kind: str = "epsilon") -> object:
        (folder / "domain.toml").write_bytes(described + (b"" if keyed or selector is None else _MORE))
        domain = dpgm.Domain.load(folder / "domain.toml")
        budget, person = BUDGETS[kind], {"person": "id", "rows_per_person": 2} if keyed else {}
        stated = {"neighbours": TERMS[change], "unit": "one", **person}
        asked = {
            "learner": {"name": "naive-mle", "l2": 0.01},
            "terms": dpgm.Terms(**stated),
            "ledger": dpgm.Ledger.create(folder / "x.ledger", name="x", budget=budget, **stated),
            "save_release": folder / "x.release.dpgm",
        }
        if selector is None:
            return dpgm.fit(data(), dpgm.Structure(domain, [("sex", "age")]), budget, **asked).model.guarantee()
        if kind != "epsilon":  # of Laplace noise and so few codes cells are measured whatever is asked
            asked["split"] = {"ranges": ["age"]}
        if selector["name"] == "grow":  # which may name another learner, if none is named
            del asked["learner"]
        steps: list[object] = []
        seeded = {"randomness": dpgm.SeededRandomness(7), "progress": lambda *step: steps.append(step)}
        done = dpgm.fit(data(), selector, budget, workload=domain, **asked, **seeded)
        return done.model.guarantee(), done.model.structure, done.notes, steps

    return Run(python=run)


#: What is done with the files of a run.
_AFTERWARDS = (
    "learn FOLDER/out/x.release.dpgm --learner naive-mle --set learner.l2=0.01 -o FOLDER/out/again.dpgm",
    "report FOLDER/out/again.dpgm -o FOLDER/out/x.html --ledger FOLDER/x.ledger",
    "compare FOLDER/out/again.dpgm FOLDER/out/x.release.dpgm -o FOLDER/out/compared.html",
    "compare FOLDER/out/again.dpgm FOLDER/out/x.release.dpgm --json",
    "query FOLDER/out/again.dpgm sex age",
    "sample FOLDER/out/again.dpgm -n 5 --seed 1 -o FOLDER/out/sample.csv",
    "ledger show FOLDER/x.ledger",
)


def with_uses(pair: Pair) -> Pair:
    """The same, and what is made of the files afterwards: a model, pages, answers, samples."""
    then = tuple(tuple(command.split()) for command in _AFTERWARDS)
    return Pair(f"used {pair.name}", *(evolve(run, then=then) for run in (pair.one, pair.other)))


def by_selector(pair: Pair, number: int) -> Pair:
    """The same records, their structure chosen by one of `SELECTORS`, in turn."""
    selector, kind = SELECTORS[number % len(SELECTORS)]
    return Pair(f"{selector['name']} {pair.name}", *(_chosen(run, selector, kind) for run in (pair.one, pair.other)))


def by_discovery(pair: Pair) -> Pair:
    """The same file, whose labels are found first, and bins and a column of any type where a person has one row."""
    return Pair(f"found {pair.name}", *map(_found, (pair.one, pair.other)))


def by_task(pair: Pair, target: str, model: bytes) -> Pair:
    """The same file, on whose records a classifier of a model's rows is tested. model: its file."""
    words = ["--debug", "compare", "FOLDER/m.dpgm", "--spec", "FOLDER/x.toml", "--set", "budget.epsilon=1", "--task"]
    return Pair(
        f"task {pair.name}",
        *(evolve(run, words=(*words, target), files=run.files | {"m.dpgm": model}) for run in (pair.one, pair.other)),
    )


def _found(run: Run) -> Run:
    spec, domain = run.files["x.toml"].decode(), run.files["domain.toml"].decode()
    for amount in ("3", "9"):
        spec = spec.replace(f"epsilon = {amount}", f"epsilon = {amount}, delta = 1e-6")
    domain = domain.replace(
        'labels = ["F", "M", "1"]\nunknown = "F"\nnull = "M"', "labels = {private = true, keep = 3}"
    )
    if "person" not in spec:
        domain = domain.replace("bins = [0, 40, 99]", "min = 0\nmax = 99\nbins = {private = 4}")
        domain += "[attributes.id]\nprivate = true\n"
    files = {"x.toml": f'mechanism = "gaussian"\n{spec}'.encode(), "domain.toml": domain.encode()}
    return evolve(run, words=("--debug", "fit", "FOLDER/x.toml"), files=run.files | files)


def _chosen(run: Run, selector: Mapping[str, object], kind: str) -> Run:
    if run.python is not None:
        return evolve(run, python=partial(run.python, selector=selector, kind=kind))
    spec = run.files["x.toml"].decode()
    for amount in ("3", "9"):
        asked = f"epsilon = {amount}, delta = 1e-6" if kind == "delta" else f"{kind} = {amount}"
        spec = spec.replace(f"epsilon = {amount}", asked)
    spec = spec if kind == "epsilon" else f'ranges = ["age"]\n{spec}'
    options = ", ".join(f"{name} = {json.dumps(value)}" for name, value in selector.items())
    spec = spec.replace('{ cliques = [["sex", "age"]] }', f"{{ select = {{ {options} }} }}")
    more = b"" if "person" in spec else _MORE
    files = {"x.toml": (spec + "[simulation]\nseed = 7\n").encode(), "domain.toml": run.files["domain.toml"] + more}
    return evolve(run, words=("--debug", "fit", "FOLDER/x.toml"), files=run.files | files)

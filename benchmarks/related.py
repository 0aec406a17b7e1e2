"""Two related tables: one model of pairs beside the flat forms of decision 0027, on generated households and ACS.

    python -m benchmarks.related [--data ma2019.csv] [--seeds 3] [--smoke|--report] [--cells couples]

Cells are the worlds of `cases/related.py`; those that end in `report` have other tables and other seeds, and only the
others were looked at when the default workload was chosen. `acs` are households of --data (by default in
$DPGM_SHARED/data or ../shared/data), drawn with replacement. 20,000 roots, at most five children; (3.2, 1e-6),
add-remove neighbours; a trial is a seed of records and noise.

Ours: `aim` and `auto` over the default workload, sampled through `RelatedModel`. Alternatives: `two models` is cases A
and C of decision 0027, roots by named cliques with .3 of the budget, and children with the columns of their root by
`aim` with .7, up to five rows a root; siblings are then independent given the root. `wide` is case B, five slots of
columns by `mst`. `floor` is another draw of records. Errors are mean total variation distances between the sampled
tables and those of the records; CPU seconds are of a fit and a sample, peak memory of the whole process. dpsynth's
relational synthesis runs on the first seed in an environment of its own (`peers/environments.py`).
"""

from __future__ import annotations

import math
import subprocess
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.cases.related import KINDS, MAX_CHILDREN, Roots, acs, distances, generated, resampled
from benchmarks.harness.alone import Crashed, alone, peak_megabytes
from benchmarks.harness.main import Study, main
from benchmarks.harness.output import grouped, having, markdown
from benchmarks.harness.runs import Line, Task
from benchmarks.peers import dpsynth_worker
from benchmarks.peers.environments import python_of
from dpgm_core import Budget, Codes, Domain, Model, SeededRandomness, Structure, Terms, Workload, fit
from dpgm_core.domain.related import SIZE, Related
from dpgm_core.models.completion import conditional
from dpgm_core.models.related import RelatedModel
from dpgm_core.sources.related import RelatedSource

COUNT, SMOKE_COUNT = 20_000, 1_000
OURS, ALTERNATIVES = ("aim", "auto"), ("two models", "wide")
#: The relational synthesis of dpsynth.
PEERS = ("dpsynth mst", "dpsynth aim")
NO_DPSYNTH = "there is no environment with dpsynth; see benchmarks/README.md"
METHODS = (*OURS, *ALTERNATIVES, *PEERS, "floor")
REPORT_SEED = 1000
EPSILON, DELTA = 3.2, 1e-6
ERRORS = ("cross", "within", "sibling", "later", "size", "root")
#: Kind of error -> alternative -> at most this part of its error.
BARS = {"sibling": {"best": 0.5}, "cross": {"two models": 1.1, "wide": 0.9}}
MAX_SIZE, MAX_SECONDS, MAX_PEAK = 0.005, 60.0, 1000.0


def records(cell: str, seed: int, count: int, data: Path | None) -> Roots:
    """Return the roots of a cell."""
    kind, *report = cell.split()
    if kind == "acs":
        assert data is not None
        return resampled(acs(data), count, seed)
    return generated(kind, count, seed, world=1 if report else 0)


def measure(cell: str, seed: int, method: str, count: int, data: Path | None) -> dict[str, float]:
    """One run in its process: errors, CPU seconds, peak memory and whether every key resolves."""
    real = records(cell, seed, count, data)
    began = time.process_time()
    if method == "floor":
        made = records(cell, seed + 500, count, data)
    elif method == "two models":
        made = _two_models(real, seed)
    elif method == "wide":
        made = _wide(real, seed)
    else:
        made = _related(real, seed, method)
    spent = {"seconds": round(time.process_time() - began, 2), "peak": round(peak_megabytes(), 1)}
    return {key: round(value, 5) for key, value in distances(real, made).items()} | spent


def work(task: Task, asked: Namespace) -> Any:
    """One run, in a process of its own."""
    count = SMOKE_COUNT if asked.extent == "smoke" else COUNT
    if task.method in PEERS:
        return _dpsynth(records(task.cell, task.trial, count, asked.data), task.trial, task.method, asked.limit)
    from benchmarks.related import measure  # by its module, which is __main__ here, and another one in a worker

    return alone(measure, task.cell, task.trial, task.method, count, asked.data)


# --- Methods --------------------------------------------------------------------------------------


def _related(real: Roots, seed: int, selector: str) -> Roots:
    """One model of pairs, and a sample whose every key resolves."""
    related = Related(
        root=Domain.from_sizes(dict(real.root)),
        children=Domain.from_sizes(dict(real.child)),
        key="id",
        max_children=MAX_CHILDREN,
        order="line",
    )
    roots = pa.table({"id": np.arange(len(real.size)), **real.roots})
    children = pa.table({"id": real.keys, "line": real.places, **real.children})
    model = fit(
        RelatedSource(root=roots, children=children, related=related),
        {"name": selector},
        Budget.approx(EPSILON, DELTA),
        workload=Workload.related(related),
        terms=Terms(neighbours="add-remove", related=related),
        randomness=SeededRandomness(seed),
    ).model
    drawn = RelatedModel(model).sample(len(real.size), form="labels", randomness=SeededRandomness(seed))
    keys = drawn.children["id"].to_numpy()
    if not np.isin(keys, drawn.root["id"].to_numpy()).all():
        raise AssertionError("a key of a child is none of a root")
    return Roots(
        root=real.root,
        child=real.child,
        roots={name: _codes(drawn.root, name) for name in real.root},
        size=np.bincount(keys - 1, minlength=drawn.root.num_rows),
        children={name: _codes(drawn.children, name) for name in real.child},
    )


def _codes(table: pa.Table, name: str) -> Any:
    return table[name].cast(pa.int64()).to_numpy()


def _two_models(real: Roots, seed: int) -> Roots:
    """Cases A and C: a model of roots, and one of children with the columns of their root."""
    sizes = {**real.root, SIZE: MAX_CHILDREN + 1}
    above = {**real.roots, SIZE: real.size}
    heads = Domain.from_sizes(sizes)
    own, density, income = real.root
    cliques = [(own, income, SIZE), (own, density, SIZE), (density, income)]
    terms = Terms(neighbours="add-remove")
    first = _fit(above, Structure(heads, cliques), 0.3, terms, seed)
    both = Domain.from_sizes({**sizes, **real.child})
    rows = {"id": real.keys, **{name: column[real.keys] for name, column in above.items()}, **real.children}
    terms = Terms(neighbours="add-remove", person="id", rows_per_person=MAX_CHILDREN)
    second = _fit(rows, {"name": "aim"}, 0.7, terms, seed, both)
    codes = dict(zip(heads.names, _rounded(first, len(real.size), seed), strict=True))
    keys = np.repeat(np.arange(len(real.size)), codes[SIZE])
    given = {name: column[keys].astype(np.int64) for name, column in codes.items()}
    given |= dict.fromkeys(real.child, np.full(len(keys), -1))
    children, _ = conditional(second._distribution, both, {}).draw(given, len(keys), np.random.default_rng(seed))
    return Roots(
        root=real.root,
        child=real.child,
        roots={name: codes[name].astype(np.int64) for name in real.root},
        size=codes[SIZE].astype(np.int64),
        children={name: children[name] for name in real.child},
    )


def _wide(real: Roots, seed: int) -> Roots:
    """Case B: a slot of columns for each child."""
    columns, sizes = dict(real.roots), dict(real.root)
    keys, places = real.keys, real.places
    for slot in range(MAX_CHILDREN):
        for name, size in real.child.items():
            column = np.full(len(real.size), size)
            column[keys[places == slot]] = real.children[name][places == slot]
            columns[f"{name}{slot}"], sizes[f"{name}{slot}"] = column, size + 1
    domain = Domain.from_sizes(sizes)
    model = _fit(columns, {"name": "mst"}, 1.0, Terms(neighbours="add-remove"), seed, domain)
    drawn = dict(zip(domain.names, _rounded(model, len(real.size), seed), strict=True))
    first, size = next(iter(real.child.items()))
    slots = {
        name: np.stack([drawn[f"{name}{slot}"].astype(np.int64) for slot in range(MAX_CHILDREN)], axis=1)
        for name in real.child
    }
    there = slots[first] < size
    children = {name: np.where(slots[name] == real.child[name], 0, slots[name])[there] for name in real.child}
    roots = {name: drawn[name].astype(np.int64) for name in real.root}
    return Roots(root=real.root, child=real.child, roots=roots, size=there.sum(axis=1), children=children)


def _dpsynth(real: Roots, seed: int, method: str, limit: float) -> dict[str, Any]:
    """The peer's errors, CPU seconds and peak memory; or what happened instead."""
    problem = {
        "mechanism": method.split()[1],
        "root": dict(real.root),
        "child": dict(real.child),
        "roots": {name: column.tolist() for name, column in real.roots.items()},
        "children": {name: column.tolist() for name, column in real.children.items()},
        "keys": real.keys.tolist(),
        "max_children": MAX_CHILDREN,
        "rho": float(Budget.approx(EPSILON, DELTA).zcdp_within().rho),
        "seed": seed,
    }
    try:
        answer = alone(dpsynth_worker.synthetic, problem, limit=limit, python=str(python_of("dpsynth")))
    except subprocess.TimeoutExpired:
        return {"ended": f"no result in {limit:.0f} s on the wall"}
    except Crashed as why:
        return {"ended": f"failed: {str(why)[:200]}"}
    keys = np.array(answer["keys"], dtype=np.int64)
    order = np.argsort(keys, kind="stable")
    roots = {name: np.array(column, dtype=np.int64) for name, column in answer["roots"].items()}
    made = Roots(
        root=real.root,
        child=real.child,
        roots=roots,
        size=np.bincount(keys, minlength=len(next(iter(roots.values())))),
        children={name: np.array(column, dtype=np.int64)[order] for name, column in answer["children"].items()},
    )
    return distances(real, made) | {"seconds": round(answer["seconds"], 1), "peak": round(answer["peak"])}


def _fit(
    rows: Mapping[str, Any], structure: Any, part: float, terms: Terms, seed: int, workload: Domain | None = None
) -> Model:
    budget = Budget.approx(EPSILON * part, DELTA * part)
    randomness = SeededRandomness(seed)
    return fit(rows, structure, budget, "gaussian", terms=terms, workload=workload, randomness=randomness).model


def _rounded(model: Model, count: int, seed: int) -> Codes:
    return model._distribution.rounded(count, np.random.default_rng(seed))


# --- Tables -----------------------------------------------------------------------------------------


def tables(lines: Sequence[Line]) -> str:
    """Return bars and errors by cell and method."""
    parts = [f"# Two related tables\n\n{COUNT:,} roots, ({EPSILON}, {DELTA:g}), means over seeds\n"]
    parts += ["## Bars\n", markdown(["cell", "method", "of", "measured", "at most", ""], _bars(lines))]
    rows = []
    for (cell, method), here in grouped(lines, "cell", "method").items():
        at = ", ".join(sorted({line["by"].split()[1].split("+")[-1] for line in here}))
        if "ended" in here[0]:
            rows.append([cell, method, here[0]["ended"], *[""] * (len(ERRORS) + 2), at])
            continue
        errors = [f"{_mean(here, key):.4f}" for key in ERRORS]
        most = [f"{max(line[key] for line in here):.0f}" for key in ("seconds", "peak")]
        rows.append([cell, method, len(here), *errors, *(most if method != "floor" else ["", ""]), at])
    head = ["cell", "method", "seeds", *ERRORS, "CPU s, most", "MB, most", "commits"]
    return "\n".join([*parts, "## Errors, mean total variation distance\n", markdown(head, rows)])


def _bars(lines: Sequence[Line]) -> list[list[object]]:
    rows: list[list[object]] = []
    for (cell, method), here in grouped(lines, "cell", "method").items():
        if method not in OURS:
            continue
        seeds = {line["trial"] for line in here}
        others = {one: having(lines, cell=cell, method=one) for one in ALTERNATIVES}
        others = {one: some for one, some in others.items() if seeds <= {line["trial"] for line in some}}
        theirs = {
            one: {key: _mean([line for line in some if line["trial"] in seeds], key) for key in ERRORS}
            for one, some in others.items()
        }
        for key, bars in BARS.items():
            for one, most in bars.items():
                values = [theirs[name][key] for name in theirs if one in ("best", name)]
                if values and (one != "best" or len(values) == len(ALTERNATIVES)):
                    ratio = _mean(here, key) / min(values)
                    rows.append([cell, method, f"{key} / {one}", f"{ratio:.2f}", most, _verdict(ratio, most)])
        for key, most in (("size", MAX_SIZE), ("seconds", MAX_SECONDS), ("peak", MAX_PEAK)):
            worst = _mean(here, key) if key == "size" else max(line[key] for line in here)
            shown = f"{worst:.4f}" if key == "size" else f"{worst:.0f}"
            rows.append([cell, method, key, shown, most, _verdict(worst, most)])
    return rows


def _verdict(value: float, most: float) -> str:
    return "met" if value <= most else "missed"


def _mean(lines: Sequence[Line], key: str) -> float:
    return float(np.mean([line[key] for line in lines])) if lines else math.nan


# --- The study ------------------------------------------------------------------------------------


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--data", type=lambda text: Path(text).absolute(), help="ma2019.csv, for the cell `acs`")
    parser.add_argument("--limit", type=float, default=600, help="seconds on the wall for a run of dpsynth")
    parser.add_argument("--seeds", type=int, default=3, help="trials of each cell")


def _cells(asked: Namespace) -> dict[str, int]:
    if asked.extent == "smoke":
        return {"couples": 1}
    default = asked.folder / "nist_acs_ma2019" / "ma2019.csv"
    asked.data = asked.data or (default if default.is_file() else None)
    names = [f"{kind}{end}" for end in ("", " report") for kind in KINDS]
    return dict.fromkeys([*names, *(["acs"] if asked.data else [])], asked.seeds)


STUDY = Study(
    about=__doc__,
    name="related",
    data="nist_acs_ma2019/ma2019.csv",
    arguments=_arguments,
    cells=_cells,
    methods=METHODS,
    serves=lambda cell, draw, method: method not in PEERS or draw == 0,
    missing=lambda method: NO_DPSYNTH if method in PEERS and python_of("dpsynth") is None else None,
    trial=lambda asked, cell, draw: draw + (REPORT_SEED if cell.endswith("report") else 0),
    work=work,
    text=tables,
)

if __name__ == "__main__":
    main(STUDY)

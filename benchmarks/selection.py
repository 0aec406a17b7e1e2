"""Private selection on unlike tables: `auto` beside the other selectors, mirror descent, and peers' whole mechanisms.

    python -m benchmarks.selection [DIR] [--smoke|--full|--report] [--cells "adult 1"] [--seeds 5] [--only-methods auto]

Cells are a source of `cases/tables.py` and an epsilon, add-remove neighbours, N unknown, delta = 1e-9. DIR holds
`adult/`, `nist_acs_ma2019/`, `lbs_workweek/` and `bif/`, by default in $DPGM_SHARED/data or ../shared/data; DPGM_LFS
names the CSV file of the EU labour-force survey's sample. What is not there is left out. A trial is a seed, of the
noise and of generated records. Options and defaults may be chosen on development seeds only; cells that end in
`report`, as in "adult 1 report", have others, from 1000 on.

Each run is a process of its own on one thread, ended after --limit seconds on the wall, of the CPU for peers. Errors
are to the records and from the model's exact marginals: mean total variation distances of attributes and pairs, and
mean |p - q|_1 of three, and where all are binary four, attributes (`off` in `cases/coded.py`). Seconds are of the CPU,
selecting and fitting; peak memory is of the whole process, Python and imports included, before anything is judged.
Workloads are of three attributes, or of two where there are too many sets; that of `auto` is the library's default,
that of `auto 4` has four; the last fit of `auto population` is to the population. `singles` measures attributes alone.

"+ mirror descent" is the same selector around the fit of mbi 2.0.0, rewritten (`protocol/selecting.py`): 1,000 steps a
fit, 10,000 in MST, as mbi's script has it. "oneshot's release": the selection is made with `eb-map`, and mirror descent
learns from the very release. Cells `fits` hold it against mbi itself (DPGM_MBI_PYTHON), cells `noise` say how wide
noise is for a promise. Peers' own whole mechanisms (`peers/whole_peer.py`) run at epsilon 1 on some sources, one seed.
Limits of dpgm are of time on the wall, so that a busy machine ends runs that an idle one would not.
"""

from __future__ import annotations

import math
import subprocess
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.cases.coded import adult
from benchmarks.cases.tables import REPORT, SOURCES, source_table
from benchmarks.harness.alone import alone
from benchmarks.harness.main import Study, main
from benchmarks.harness.output import beginning, grouped, having, markdown, marked, section
from benchmarks.harness.runs import Line, Task, say
from benchmarks.peers.mbi_peer import mbi_missing
from benchmarks.peers.whole_peer import add_cache, errors_of, synthesize, whole_missing
from benchmarks.protocol.selecting import DELTA, METHODS, compared_fits, noise, selection

EPSILONS = ("0.1", "1", "10")
SEEDS = 5
#: Cells whose errors vary so much from seed to seed, of what a few seconds measure, that five seeds decide nothing.
NOISY = {"small9 0.5": 32, "small9 1": 32, "small9 2": 32, "health 0.1": 32}
NOISE, FITS = "noise", "mirror descent and mbi"
OTHERS = ("aim", "oneshot", "mst", "singles")
#: Sources that peers run on, all of columns that their memory can hold.
PEERS = ("adult", "lbs", "health", "sparse16", "parity16", "mixed14", "small9")
#: Those that run on them; `benchmarks.peers` has more programs.
PROGRAMS = ("mbi aim", "mbi mst", "dpmm aim", "dpmm mst")
#: Where the rounds of `aim` would not end: too many candidates.
WITHOUT_AIM = ("lfs", "wide120")
BINARY = ("sparse16", "sparse23", "parity16")

#: Of `auto` over the best of OTHERS in each cell of development seeds: the geometric mean, and every cell.
MEAN, WORST = 0.97, 1.05
#: source, key, ours, theirs -> at most, by epsilon: means over development seeds, in ratio to theirs if there is one;
#: seconds and MB of the worst seed. `lost` is the share of planted cliques that lie in no clique of the model.
BARS: Mapping[tuple[str, str, str, str], Mapping[str, float]] = {
    ("adult", "error3", "auto", ""): {"0.1": 0.266, "1": 0.103, "10": 0.068},
    ("lfs", "error2", "auto", ""): {"1": 0.020, "10": 0.014},
    ("lfs", "seconds", "auto", ""): {"1": 60, "10": 60},
    ("lfs", "peak", "auto", ""): {"1": 1000, "10": 1000},
    ("parity16", "error3", "auto", "aim"): {"1": 0.85},
    ("parity16", "error4", "auto", "aim"): {"1": 0.75},
    ("parity16", "error3", "auto 4", "aim"): {"1": 0.85},
    ("parity16", "error4", "auto 4", "aim"): {"1": 0.75},
    ("health", "error3", "auto", "auto population"): {"1": 1.0, "10": 0.6},
    ("small9", "error3", "auto", "auto population"): {"0.5": 1.0, "2": 1.0},
    ("dense30", "error2", "auto", ""): {"1": 0.030, "10": 0.012},
    ("wide120", "lost", "auto", ""): {"1": 6 / 62},
    ("wide120", "seconds", "auto", ""): {"1": 60},
    ("wide120", "peak", "auto", ""): {"1": 1000},
    ("small9", "error1", "auto", "singles"): {"0.5": 1.0, "2": 1.0},
    ("small9", "error2", "auto", "singles"): {"0.5": 1.0, "2": 1.0},
    ("adult", "error3", "aim", "aim + mirror descent"): {"10": 1.0},
}
ERRORS = {"error1": "1-way TV", "error2": "2-way TV", "error3": "3-way L1", "error4": "4-way L1"}
KEYS = {**ERRORS, "seconds": "CPU s", "peak": "peak MB", "lost": "planted cliques lost"}
MIRRORED = [
    ("aim", "aim + mirror descent"),
    ("oneshot", "oneshot's release + mirror descent"),
    ("auto", "mst + mirror descent"),
]


def work(task: Task, asked: Namespace) -> Any:
    """One run: its cell is "adult 1", "adult 1 report", "fits 1" or "noise 1"."""
    name, epsilon, *_ = task.cell.split()
    if name == "noise":
        return noise(epsilon)
    if name == "fits":
        return alone(compared_fits, adult(asked.folder / "adult"), epsilon, task.trial)
    table = source_table(asked.folder, name, task.trial)
    if task.method in PROGRAMS:
        limit = round(asked.limit)
        return errors_of(
            synthesize(task.method, table, epsilon, DELTA, task.trial, limit=limit, cache=asked.cache), table
        )
    try:
        return alone(selection, task.method, table, epsilon, task.trial, limit=asked.limit)
    except subprocess.TimeoutExpired:
        return {"ended": f"no result in {asked.limit:.0f} s on the wall"}


def cells(asked: Namespace) -> dict[str, int]:
    """cell -> draws; those of sources that are there."""
    smoke = asked.extent == "smoke"
    found = dict.fromkeys([f"noise {epsilon}" for epsilon in (EPSILONS[1:2] if smoke else EPSILONS)], 1)
    for name in ("adult", "small9") if smoke else SOURCES:
        if why := SOURCES[name].missing(asked.folder):
            say(f"{name} is left out: {why}")
        elif smoke:
            found[f"{name} 1"] = 1
        else:
            found |= {
                f"{name} {one}{end}": asked.seeds or NOISY.get(f"{name} {one}{end}", SEEDS)
                for end in ("", " report")
                for one in SOURCES[name].epsilons
            }
            found |= {f"fits {epsilon}": 1 for epsilon in EPSILONS if name == "adult"}
    return found


def serves(cell: str, draw: int, method: str) -> bool:
    """Whole mechanisms of peers run once, mirror descent on Adult."""
    name, epsilon, *report = cell.split()
    if name in ("noise", "fits"):
        return method == {"noise": NOISE, "fits": FITS}[name]
    if method in PROGRAMS:
        return name in PEERS and epsilon == "1" and draw == 0 and not report
    if method == "aim" and name in WITHOUT_AIM:
        return False
    if method == "auto 4":
        return name in BINARY
    if method == "auto population":
        return name in ("adult", "health", "small9", "sparse16", "mixed14", "lbs")
    return method in ("auto", *OTHERS) or (method in METHODS and name == "adult" and not report)


def missing(method: str) -> str | None:
    """Why a method cannot run here."""
    if method in PROGRAMS:
        return whole_missing(method)
    return mbi_missing() if method == FITS else None


def tables(lines: Sequence[Line]) -> str:
    """Bars, errors of all sources, mirror descent, noise, and peers."""
    errors = "\n".join(table for table in (_errors(lines), _mirrored(lines)) if table)
    said = "Means, one for each epsilon. Ratios: `auto` over the best other; CPU s and MB: `auto`, its worst seed.\n"
    parts = ["# Private selection\n", _bars(lines), f"## Errors\n\n{said}\n{marked('table', errors)}" if errors else ""]
    parts += [_fits(lines), _noise(lines), _peers(lines), _ended(lines)]
    return "\n".join(part for part in parts if part)


def _bars(lines: Sequence[Line]) -> str:
    """What was asked for: geometric mean and worst cell of `auto` over the best of the others; then single sources."""
    rows = []
    for what, end, most in (("development", "", (MEAN, WORST)), ("report", " report", (math.inf, math.inf))):
        cells = [f"{name} {epsilon}{end}" for name, one in SOURCES.items() for epsilon in one.epsilons]
        for key in ("error2", "error3"):
            found = {cell: _over_best(lines, cell, key) for cell in cells}
            if ratios := {cell: ratio for cell, ratio in found.items() if ratio is not None}:
                worst = max(ratios, key=ratios.__getitem__)
                who = f"auto / best other: mean of {len(ratios)} {what} cells; worst, {worst}"
                rows.append([who, KEYS[key], *_held([_geometric(list(ratios.values())), ratios[worst]], most)])
    for (name, key, ours, theirs), bars in BARS.items():
        cells = [f"{name} {epsilon}" for epsilon in bars]
        mine = [_value(lines, cell, ours, key) for cell in cells]
        other = [_value(lines, cell, theirs, key) if theirs else 1.0 for cell in cells]
        if any(one is not None for one in mine):
            who = f"{ours}{' / ' * bool(theirs)}{theirs}, {name} {' '.join(bars)}"
            rows.append([who, KEYS[key], *_held(list(map(_ratio, mine, other)), list(bars.values()))])
    return section("Bars", ["what", "of", "measured", "at most"], rows, name="bars")


def _ratio(mine: float | None, other: float | None) -> float | None:
    return None if mine is None or other is None else mine / other


def _held(values: Sequence[float | None], most: Sequence[float]) -> list[str]:
    """Measured values, their bars, and whether all are met."""
    pairs = list(zip(values, most, strict=True))
    met = "missed" if any(one is not None and one > bar for one, bar in pairs) else "met"
    bars = (
        "-" if math.inf in most else f"{' '.join(map(_figures, most))}, {met if None not in values else 'not all run'}"
    )
    return [" ".join("-" if one is None else _figures(one) for one in values), bars]


def _figures(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _errors(lines: Sequence[Line]) -> str:
    """Means over development seeds, at each epsilon; the last ratios are of the others."""
    rows = []
    for name, source in SOURCES.items():
        cells = [f"{name} {epsilon}" for epsilon in source.epsilons]
        here = [line for line in lines if line["cell"] in cells]
        for key in [key for key in list(ERRORS)[1:] if any(key in line for line in here)]:
            shown = [_each(_value(lines, cell, one, key) for cell in cells) for one in ("auto", *OTHERS)]
            ratios = [_each((_over_best(lines, cell + end, key) for cell in cells), 2) for end in ("", " report")]
            spent = [_each((_value(lines, cell, "auto", one) for cell in cells), 0) for one in ("seconds", "peak")]
            rows.append([name, " ".join(source.epsilons), ERRORS[key], *shown, *ratios, *(spent * (key == "error2"))])
            rows[-1] += [""] * (12 - len(rows[-1]))
    head = ["source", "epsilon", "of", "auto", *OTHERS, "ratios", "ratios, report seeds", "CPU s", "MB"]
    return markdown(head, rows) if rows else ""


def _mirrored(lines: Sequence[Line]) -> str:
    """Ours and theirs on Adult, seed by seed: 3-way errors, and geometric means of ratios."""
    rows = []
    for ours, theirs in MIRRORED:
        for cell in (f"adult {epsilon}" for epsilon in EPSILONS):
            seeds = _both(_of(lines, cell, ours), _of(lines, cell, theirs))
            if not seeds:
                continue
            ratios = {key: [mine[key] / other[key] for mine, other in seeds] for key in ("error3", "error2", "seconds")}
            errors = [f"{np.mean([line['error3'] for line in some]):.4f}" for some in zip(*seeds, strict=True)]
            row = [f"{ours} / {theirs}", cell.split()[1], *errors, f"{_geometric(ratios['error3']):.3f}"]
            row += [f"{max(ratios['error3']):.3f}", f"{_geometric(ratios['error2']):.3f}"]
            rows.append([*row, f"{_geometric(ratios['seconds']):.2f}", str(len(seeds))])
    head = ["ratio", "epsilon", "3-way, ours", "theirs", "3-way", "worst seed", "2-way", "CPU s", "seeds"]
    return markdown(head, rows) if rows else ""


def _fits(lines: Sequence[Line]) -> str:
    """Our mirror descent and mbi's on one release."""
    rows = []
    for line in beginning(lines, "fits"):
        errors = [f"{line[f'{who}_{key}']:.5f}" for who in ("ours", "nudged", "mbi") for key in ("error3", "error2")]
        rows.append([line["cell"].split()[1], *errors, f"{line['apart_100']:.0e}", f"{line['apart']:.0e}"])
        rows[-1] += [f"{line['seconds']:.2f}", f"{line['mbi_seconds']:.2f} + {line['mbi_compile']:.0f}"]
    head = ["epsilon", "3-way, rewritten", "2-way", "3-way, nudged", "2-way", "3-way, mbi", "2-way"]
    head += ["apart after 100 steps", "apart after 1,000", "CPU s", "mbi, + compiling"]
    said = "One release, 1,000 steps each; `nudged` starts 1e-15 nats away. `apart`: the most in a cell, probability.\n"
    return section("Mirror descent, rewritten and mbi 2.0.0", head, rows, said=said)


def _noise(lines: Sequence[Line]) -> str:
    """Widths for a promise."""
    rows = [
        [line["cell"].split()[1], f"{line['ours']:.6f}", f"{line['mbi']:.6f}", f"{line['ours'] / line['mbi']:.7f}"]
        for line in beginning(lines, "noise")
    ]
    said = "Standard deviation of one table's noise, records, for all of (epsilon, 1e-9).\n"
    return section("Noise", ["epsilon", "ours", "mbi", "ratio"], rows, said=said)


def _peers(lines: Sequence[Line]) -> str:
    """Peers' own whole mechanisms beside `auto` on the same seed; errors of theirs have sampling in them."""
    rows, pairs = [], dict[str, dict[str, tuple[Line, Line]]]()
    for cell in (f"{name} 1" for name in PEERS):
        runs = {line["method"]: line for line in having(lines, cell=cell, trial=0)}
        if runs.keys() & set(PROGRAMS):
            rows.append([cell, *(_run(runs.get(one)) for one in ("auto", *PROGRAMS))])
        for peer in PROGRAMS:
            if "error2" in runs.get(peer, {}) and "auto" in runs:
                pairs.setdefault(peer, {})[cell] = runs["auto"], runs[peer]
    said = "Seed 0. 2-way TV, 3-way L1; CPU seconds, peak MB. Ratios: geometric means, and where `auto` is worst.\n"
    beside = section("Peers", ["cell", "auto", *PROGRAMS], rows, said=said)
    head = ["ratio", "cells", *(f"{ERRORS[key]}{end}" for key in ("error2", "error3") for end in ("", ", worst"))]
    ratios = markdown(head, [_over_peer(peer, some) for peer, some in pairs.items()]) if pairs else ""
    return "\n".join(filter(None, (beside, ratios)))


def _over_peer(peer: str, cells: Mapping[str, tuple[Line, Line]]) -> list[str]:
    """One row: `auto` over a peer in the cells that both have."""
    row = [f"auto / {peer}", str(len(cells))]
    for key in ("error2", "error3"):
        ratios = {cell: ours[key] / theirs[key] for cell, (ours, theirs) in cells.items()}
        worst = max(ratios, key=ratios.__getitem__)
        row += [f"{_geometric(list(ratios.values())):.2f}", f"{ratios[worst]:.2f} {worst}"]
    return row


def _run(line: Line | None) -> str:
    if line is None or "ended" in line:
        return "-" if line is None else line["ended"]
    return f"{_each(line[key] for key in ('error2', 'error3'))}; {line['seconds']:.0f}, {line['peak']:.0f}"


def _ended(lines: Sequence[Line]) -> str:
    """What of ours gave no result."""
    ended = [line for line in lines if "ended" in line and line["method"] not in PROGRAMS]
    rows = [[who, ", ".join(line["cell"] for line in some)] for who, some in grouped(ended, "method").items()]
    return section("Without a result in time", ["method", "cells"], rows)


def _over_best(lines: Sequence[Line], cell: str, key: str) -> float | None:
    """The mean of `auto` over that of the best other, on the seeds that both have."""
    seeds = [_both(_of(lines, cell, "auto"), _of(lines, cell, one)) for one in OTHERS]
    ratios = [sum(mine[key] for mine, _ in some) / sum(other[key] for _, other in some) for some in seeds if some]
    return max(ratios, default=None)


def _of(lines: Sequence[Line], cell: str, method: str) -> list[Line]:
    return [line for line in having(lines, cell=cell, method=method) if "error2" in line]


def _value(lines: Sequence[Line], cell: str, method: str, key: str) -> float | None:
    """The mean of the seeds; the share of what is lost, and the most that is spent."""
    some = [line for line in _of(lines, cell, method) if key in line]
    if not some:
        return None
    if key == "lost":
        return sum(line["lost"] for line in some) / sum(line["planted"] for line in some)
    values = [float(line[key]) for line in some]
    return max(values) if key in ("seconds", "peak") else float(np.mean(values))


def _each(values: Iterable[float | None], digits: int = 4) -> str:
    """Numbers in a row, without the zero before a point."""
    return " ".join("-" if one is None else f"{one:.{digits}f}".removeprefix("0" * (digits > 2)) for one in values)


def _both(ours: Sequence[Line], theirs: Sequence[Line]) -> list[tuple[Line, Line]]:
    others = {line["trial"]: line for line in theirs}
    return [(line, others[line["trial"]]) for line in ours if line["trial"] in others]


def _geometric(values: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


def arguments(parser: ArgumentParser) -> None:
    """How often, and for how long."""
    parser.add_argument("--seeds", type=int, help="draws of a cell")
    parser.add_argument(
        "--limit", type=float, default=600, help="seconds for a run: on the wall for dpgm, of the CPU for peers"
    )
    add_cache(parser)


def check(asked: Namespace, cell: str) -> None:
    """Read a table that is a file."""
    name = cell.split()[0]
    if name in SOURCES and SOURCES[name].file:
        source_table(asked.folder, name, 0)


def trial(asked: Namespace, cell: str, draw: int) -> int:
    """The seed of a draw."""
    return draw + REPORT * cell.endswith(" report")


STUDY = Study(
    about=__doc__,
    name="selection",
    data="adult/, nist_acs_ma2019/, lbs_workweek/ and bif/",
    arguments=arguments,
    check=check,
    cells=cells,
    methods=[*METHODS, NOISE, FITS, *PROGRAMS],
    serves=serves,
    trial=trial,
    missing=missing,
    work=work,
    text=tables,
)

if __name__ == "__main__":
    main(STUDY)

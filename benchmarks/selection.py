"""Private selection: what is chosen and how well it is fitted, beside the same loops with mirror descent, and peers.

    python -m benchmarks.selection [DIR] [--smoke|--full|--report] [--cells "adult 1"] [--seeds 5] [--only-methods auto]

DIR holds `adult/` (adult.csv of codes and adult-domain.json), by default in $DPGM_SHARED/data or ../shared/data;
without it only what needs no data is run. Its 48,842 x 14 records, add-remove neighbours, N unknown, delta = 1e-9, all
marginals on three attributes of at most 1e4 cells wanted. A trial is a seed. Rare codes are merged as users get it,
and the model answers about the records' own.

Each run is a process of its own on one thread. Errors are to the records and from the model's exact marginals: 3-way,
the mean of |p - q|_1 over marginals on three attributes of at most 1e4 cells; 2-way, the mean total variation distance
over all pairs. Seconds are of the CPU, reading included; peak memory is of the whole process, Python and imports
included, before anything is judged.

"+ mirror descent" is the same selector around the fit of mbi 2.0.0, rewritten (`protocol/selecting.py`): 1,000 steps a
fit, 10,000 where the row says x 10, and in MST, as mbi's script has it. "oneshot's release": the selection is made with
`eb-map`, and mirror descent learns from the very release. Cells `release` hold it against mbi itself
(DPGM_MBI_PYTHON), cells `noise` say how wide noise is for a promise, `wide` is 100,000 made-up records of 100
attributes. Peers' own whole mechanisms (see `peers/whole_peer.py`) get --limit seconds and one seed.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cases.coded import adult
from benchmarks.harness.alone import alone
from benchmarks.harness.main import Study, main
from benchmarks.harness.output import beginning, grouped, having, markdown, section
from benchmarks.harness.runs import Line, Task, say
from benchmarks.peers.mbi_peer import mbi_missing
from benchmarks.peers.whole_peer import WHOLE, whole, whole_missing
from benchmarks.protocol.selecting import DELTA, METHODS, compared_fits, noise, selection, selection_of_wide

EPSILONS = ("0.1", "1", "10")
SEEDS = 5
NOISE, FITS = "noise", "mirror descent and mbi"
WIDE = (100, 100_000)
SMALL = (12, 2000)

#: What the ratios are held against: (ours, theirs, epsilon) -> the 3-way ratio at most.
TARGETS = {
    ("aim", "aim + mirror descent", "0.1"): 1.02,
    ("aim", "aim + mirror descent", "1"): 1.00,
    ("aim", "aim + mirror descent", "10"): 1.00,
    ("oneshot", "oneshot's release + mirror descent", "1"): 0.92,
    ("auto", "mst + mirror descent", "0.1"): 0.92,
    ("auto", "mst + mirror descent", "1"): 0.72,
}
PAIRS = [
    ("aim", "aim + mirror descent"),
    ("oneshot", "oneshot + mirror descent"),
    ("oneshot", "oneshot's release + mirror descent"),
    ("oneshot", "oneshot's release + mirror descent x 10"),
    ("mst", "mst + mirror descent"),
    ("auto", "mst + mirror descent"),
]
#: Of `auto` on adult: epsilon -> CPU seconds and MB at most; of `wide`.
SPENT = {"0.1": (15, 250), "1": (15, 250), "10": (180, 1000)}
WIDE_SPENT = (120, 1000)


def work(task: Task, asked: Namespace) -> Any:
    """One run: its cell is "adult 1", "release 1", "noise 1" or "wide 100 x 100000"."""
    folder, (kind, *rest) = folder_of(asked), task.cell.split()
    if kind == "noise":
        return noise(rest[0])
    if kind == "release":
        return alone(compared_fits, folder, rest[0], task.trial)
    if kind == "wide":
        return alone(selection_of_wide, task.method, int(rest[0]), int(rest[2]), task.trial)
    if task.method in WHOLE:
        return whole(task.method, folder, rest[0], DELTA, task.trial, asked.limit)
    return alone(selection, task.method, folder, rest[0], task.trial)


def cells(asked: Namespace) -> dict[str, int]:
    """cell -> draws; those of the Adult table where it is there."""
    smoke = asked.extent == "smoke"
    epsilons = ("1",) if smoke else EPSILONS
    found = {f"noise {epsilon}": 1 for epsilon in epsilons}
    if (folder_of(asked) / "adult.csv").is_file():
        found |= {f"adult {epsilon}": 1 if smoke else asked.seeds for epsilon in epsilons}
        found |= {} if smoke else {f"release {epsilon}": 1 for epsilon in epsilons}
    else:
        path = folder_of(asked) / "adult.csv"
        say(f"there is no {path}: cells on the Adult table are left out; name a folder with it")
    attributes, records = SMALL if smoke else WIDE
    return found | {f"wide {attributes} x {records}": 1}


def serves(cell: str, draw: int, method: str) -> bool:
    """Peers' whole mechanisms run once; the wide table is for `oneshot`."""
    kind = cell.split()[0]
    if kind in ("noise", "release"):
        return method == {"noise": NOISE, "release": FITS}[kind]
    if kind == "wide":
        return method == "oneshot"
    return method in METHODS or (method in WHOLE and draw == 0)


def missing(method: str) -> str | None:
    """Why a method cannot run here."""
    if method in WHOLE:
        return whole_missing(method)
    return mbi_missing() if method == FITS else None


def tables(lines: Sequence[Line]) -> str:
    """All in one table, then ratios with their targets, and the three checks."""
    parts = ["# Private selection\n"]
    runs = beginning(lines, "adult")
    if runs:
        parts += ["<!-- --8<-- [start:table] -->\n", _runs(runs), "\n", _ratios(runs), "<!-- --8<-- [end:table] -->\n"]
        parts.append(_spent(runs))
    parts += [_wide(lines), _fits(lines), _noise(lines), _ended(runs)]
    return "\n".join(part for part in parts if part)


def _runs(lines: Sequence[Line]) -> str:
    """Means over the seeds; the largest peak. Rounds: how often tables were measured after the one-way tables."""
    rows = []
    for cell in _cells(lines):
        for method in (*METHODS, *WHOLE):
            if some := _of(lines, cell, method):
                errors = [f"{_mean(some, key):.4f}" for key in ("error3", "error2")]
                spent = [f"{_mean(some, 'seconds'):.1f}", f"{max(line['peak'] for line in some):.0f}"]
                rounds = f"{_mean(some, 'measured') - 1:.0f}" if "measured" in some[0] else "-"
                rows.append([cell.split()[1], method, *errors, *spent, rounds, str(len(some))])
    return markdown(["epsilon", "method", "3-way L1", "2-way TV", "CPU s", "peak MB", "rounds", "seeds"], rows)


def _ratios(lines: Sequence[Line]) -> str:
    """Ours over theirs, seed by seed: geometric means, and the worst seed of 3-way errors."""
    rows = []
    for ours, theirs in PAIRS:
        for cell in _cells(lines):
            seeds = _both(_of(lines, cell, ours), _of(lines, cell, theirs))
            if not seeds:
                continue
            ratios = {key: [mine[key] / other[key] for mine, other in seeds] for key in ("error3", "error2", "seconds")}
            mean = {key: float(np.exp(np.mean(np.log(values)))) for key, values in ratios.items()}
            same = all(mine["release"] == other["release"] for mine, other in seeds)
            most = TARGETS.get((ours, theirs, cell.split()[1]))
            row = [f"{ours} / {theirs}", cell.split()[1], f"{mean['error3']:.3f}", f"{max(ratios['error3']):.3f}"]
            row += [f"{mean['error2']:.3f}", f"{mean['seconds']:.2f}", str(len(seeds)), "yes" if same else "no"]
            met = "met" if most is None or mean["error3"] <= most else "missed"
            rows.append([*row, "-" if most is None else f"{most:.2f}, {met}"])
    head = ["ratio", "epsilon", "3-way", "worst seed", "2-way", "CPU s", "seeds", "one release", "3-way at most"]
    return markdown(head, rows) if rows else ""


def _spent(lines: Sequence[Line]) -> str:
    """What `auto` took, and what it may."""
    rows = []
    for cell in _cells(lines):
        some = _of(lines, cell, "auto")
        if some:
            rows.append([cell.split()[1], *_against(some, SPENT.get(cell.split()[1]))])
    return section("`auto`, worst of the seeds", ["epsilon", "CPU s", "peak MB", "at most"], rows)


def _wide(lines: Sequence[Line]) -> str:
    """Made-up tables, all pairs."""
    rows = [
        [line["cell"].removeprefix("wide "), line["method"], f"{line['error2']:.4f}", *_against([line], WIDE_SPENT)]
        for line in beginning(lines, "wide")
    ]
    head = ["attributes x records", "method", "2-way TV", "CPU s", "peak MB", "at most"]
    return section("Wide: all pairs, epsilon = 1", head, rows)


def _against(lines: Sequence[Line], most: tuple[float, float] | None) -> list[str]:
    seconds, peak = (max(line[key] for line in lines) for key in ("seconds", "peak"))
    if most is None:
        return [f"{seconds:.1f}", f"{peak:.0f}", "-"]
    met = "met" if seconds <= most[0] and peak <= most[1] else "missed"
    return [f"{seconds:.1f}", f"{peak:.0f}", f"{most[0]} s, {most[1]} MB: {met}"]


def _fits(lines: Sequence[Line]) -> str:
    """Our mirror descent and mbi's on one release."""
    rows = []
    for line in beginning(lines, "release"):
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


def _ended(lines: Sequence[Line]) -> str:
    """What came of peers that gave no result."""
    rows = [[line["cell"].split()[1], line["method"], line["ended"]] for line in lines if "ended" in line]
    return section("Peers without a result", ["epsilon", "method", "what happened"], rows)


def _cells(lines: Sequence[Line]) -> list[str]:
    return sorted(grouped(lines, "cell"), key=lambda cell: float(cell.split()[1]))


def _of(lines: Sequence[Line], cell: str, method: str) -> list[Line]:
    return [line for line in having(lines, cell=cell, method=method) if "error3" in line]


def _both(ours: Sequence[Line], theirs: Sequence[Line]) -> list[tuple[Line, Line]]:
    others = {line["trial"]: line for line in theirs}
    return [(line, others[line["trial"]]) for line in ours if line["trial"] in others]


def _mean(lines: Sequence[Line], key: str) -> float:
    return float(np.mean([line[key] for line in lines]))


def arguments(parser: ArgumentParser) -> None:
    """How often, and how long peers get."""
    parser.add_argument("--seeds", type=int, default=SEEDS, help="of the noise, 0 and on")
    parser.add_argument("--limit", type=float, default=600, help="seconds on the wall for a peer's whole mechanism")


def check(asked: Namespace, cell: str) -> None:
    """Read the table."""
    if cell.startswith(("adult", "release")):
        adult(folder_of(asked))


def folder_of(asked: Namespace) -> Path:
    """Where adult.csv is, or would be."""
    folder: Path = asked.folder
    return folder if (folder / "adult.csv").is_file() else folder / "adult"


STUDY = Study(
    about=__doc__,
    name="selection",
    data="adult/",
    arguments=arguments,
    check=check,
    cells=cells,
    methods=[*METHODS, NOISE, FITS, *WHOLE],
    serves=serves,
    missing=missing,
    work=work,
    text=tables,
)

if __name__ == "__main__":
    main(STUDY)

"""How fast inference is: ours beside mbi, pyAgrum, pgmpy and pgmax, in one run, one thread each.

    python -m benchmarks.inference --peers FOLDER [--install] [--only exact,...] [--models chain3-k10,...] [--smoke]
    python -m benchmarks.inference --report

FOLDER has a virtual environment for each peer, FOLDER/mbi and so on, which --install makes; a peer without one is left
out with one line. What is measured goes to results/inference.json, where each part stays until it is measured again,
and into the tables of results/inference.md, which docs/performance.md shows; of --smoke to results/smoke.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from functools import partial
from pathlib import Path

from benchmarks.harness.main import RESULTS, Measurement, main
from benchmarks.harness.runs import refuse, say
from benchmarks.peers.environments import make_environments
from benchmarks.speed import busy, exact, first, fits, instances, ours, page, paths, sweeps
from benchmarks.speed.contestants import PEERS
from benchmarks.speed.page import Part

PARTS = {
    "exact": Part(exact.__doc__, exact.measure, exact.table, exact.aims),
    "loopy": Part(sweeps.__doc__, sweeps.measure, sweeps.table),
    "instances": instances.INSTANCES,
    "many": ours.MANY,
    "compile": ours.COMPILE,
    "first": Part(first.__doc__, first.measure, first.table, first.aims),
    "fits": Part(fits.__doc__, fits.measure, fits.table, fits.aims),
    "paths": Part(paths.__doc__, paths.measure, paths.table, paths.aims),
    "busy": Part(busy.__doc__, busy.measure, busy.table, busy.aims),
    "limits": ours.LIMITS,
    "predicted": ours.PREDICTED,
}
SHARED = Path(__file__).parents[2] / "shared" / "data"


def _part(name: str, asked: Namespace) -> None:
    store = asked.json or (RESULTS / "smoke" if asked.smoke else RESULTS) / "inference.json"
    kept = json.loads(store.read_text(encoding="utf-8")) if store.is_file() else {}
    if not asked.report:
        if asked.install:
            if asked.peers is None:
                refuse("--install needs --peers FOLDER, where environments are made")
            if failed := make_environments(asked.peers, PEERS):
                refuse("; ".join(f"{name} {why}" for name, why in failed.items()))
        earlier = kept.get(name, {})
        kept[name] = page.stamped(PARTS[name].measure(asked), asked.peers)
        commits = [one.get("revision", "").removesuffix("-dirty") for one in (earlier, kept[name])]  # the store is dirt
        if name == "paths" and asked.models != "*" and commits[0] == commits[1]:  # what it measured of others stays
            kept[name]["figures"] = earlier["figures"] | kept[name]["figures"]
        store.parent.mkdir(parents=True, exist_ok=True)
        store.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    if name not in kept:
        say(f"{name} was not measured yet")
        return
    print(PARTS[name].table(kept[name]["figures"]))
    store.with_suffix(".md").write_text(page.text(PARTS, kept), encoding="utf-8")


def _parts() -> dict[str, partial[None]]:
    found = {}
    for name, part in PARTS.items():
        found[name] = partial(_part, name)
        found[name].__doc__ = part.about
    return found


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--peers", type=Path, help="folder with a virtual environment for each peer")
    parser.add_argument("--install", action="store_true", help="make those that are missing there")
    parser.add_argument("--report", action="store_true", help="measure nothing, write the tables of what was measured")
    parser.add_argument("--networks", type=Path, default=SHARED / "bif", help="folder of BIF files")
    parser.add_argument("--instances", type=Path, default=SHARED / "uai", help="folder of UAI files")
    parser.add_argument("--models", default="*", help="names or patterns (*, ?), separated by commas")
    parser.add_argument("--limit", type=float, default=120, help="seconds after which a first call is given up")
    parser.add_argument("--before", type=Path, help="another checkout, to measure whole paths beside")
    parser.add_argument("--json", type=Path, help="another file of results")


MEASUREMENT = Measurement(about=__doc__, parts=_parts(), arguments=_arguments)

if __name__ == "__main__":
    main(MEASUREMENT)

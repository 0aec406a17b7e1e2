"""python -m tests.kill --kills 1000 --processes 4: kill whole runs and look at what is left; exit 1 for any fault."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.kill.machine import Machine
from tests.kill.spoilt import SPOILT

parser = argparse.ArgumentParser(prog="python -m tests.kill", description=__doc__)
parser.add_argument("--kills", type=int, default=1000)
parser.add_argument("--processes", type=int, default=4)
parser.add_argument("--sessions", type=float, default=0.5, help="share of ledgers whose runs choose their structure")
parser.add_argument("--seed", type=int, default=0, help="of aims and delays; instants still depend on the machine")
parser.add_argument("--wrong", choices=list(SPOILT), help="spoil ledgers or files on purpose; the machine must say so")
parser.add_argument("--keep", type=Path, help="work in this folder and leave what is found there")


def run(folder: Path, words: argparse.Namespace) -> int:
    """One line with the counts, and a line for each of the first faults."""
    spoil = SPOILT[words.wrong] if words.wrong else None
    machine = Machine(
        folder=folder,
        kills=words.kills,
        processes=words.processes,
        seed=words.seed,
        sessions=words.sessions,
        spoil=spoil,
    )
    began = time.monotonic()
    machine.work()
    counted = ", ".join(f"{name} {number}" for name, number in sorted(machine.counts.items()))
    sys.stdout.write(
        f"kill: {machine.counts['kills']} kills, {words.processes} processes, seed {words.seed}: "
        f"{len(machine.faults)} faults ({counted}) in {time.monotonic() - began:.0f} s\n"
    )
    for fault in machine.faults[:10]:
        sys.stdout.write(f"kill: {fault}\n")
    return 1 if machine.faults else 0


if __name__ == "__main__":
    given = parser.parse_args()
    if given.keep:
        sys.exit(run(given.keep, given))
    with tempfile.TemporaryDirectory() as temporary:
        sys.exit(run(Path(temporary), given))

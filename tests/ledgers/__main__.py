"""python -m tests.ledgers --ledgers 1000000: random ledgers against an independent account; exit 1 for any fault."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.ledgers.machine import WRONG, Machine

parser = argparse.ArgumentParser(prog="python -m tests.ledgers", description=__doc__)
parser.add_argument("--ledgers", type=int, default=10_000)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--files", type=int, default=500, help="one in so many goes through a file")
parser.add_argument("--wrong", choices=list(WRONG), help="spoil ledgers on purpose; the machine must say so")


def run(folder: Path, words: argparse.Namespace) -> int:
    """One line with the counts, and a line for each of the first faults."""
    if words.wrong:
        WRONG[words.wrong]()
    machine = Machine(ledgers=words.ledgers, seed=words.seed, folder=folder, files=words.files)
    began = time.monotonic()
    machine.work()
    counted = ", ".join(f"{name} {number}" for name, number in sorted(machine.counts.items()))
    sys.stdout.write(
        f"ledgers: seed {words.seed}: {len(machine.faults)} faults ({counted}) in {time.monotonic() - began:.0f} s\n"
    )
    for fault in machine.faults[:10]:
        sys.stdout.write(f"ledgers: {fault}\n")
    return 1 if machine.faults else 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        sys.exit(run(Path(temporary), parser.parse_args()))

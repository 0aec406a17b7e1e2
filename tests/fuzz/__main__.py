"""Fuzz from the command line: python -m tests.fuzz --cases 100000 --target model --seed 0

Each target runs in a process of its own, so that a crash is a failing case like others. What fails is kept in
tests/fuzz/cases/TARGET/ (--keep elsewhere) and read again by the tests from then on.
"""

import argparse
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.fuzz.machine import CASES, SECONDS, drop, kept, run, scratch
from tests.fuzz.targets import TARGETS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000, help="of each target")
    parser.add_argument("--target", choices=sorted(TARGETS), action="append", help="repeatable; all by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seconds", type=float, help="stop a target after so long")
    parser.add_argument("--keep", type=Path, default=CASES, help="folder for what fails")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker is not None:
        (name,) = given.target
        report = run(name, given.seed, given.first, given.cases, given.worker, seconds=given.seconds, keep=given.keep)
        print(json.dumps([report.cases, report.outcomes, report.odd, report.failures]))
        return 0
    return max(_fuzz(name, given) for name in given.target or TARGETS)


def _fuzz(name: str, given: argparse.Namespace) -> int:
    """Run a target, going on behind a case at which the process died; one line of counts."""
    outcomes: Counter[str] = Counter()
    odd: Counter[str] = Counter()
    failures: dict[int, str] = {}
    first, end, cases = given.first, given.first + given.cases, 0
    while first < end:
        folder = scratch()
        try:
            block = min(2000, end - first)
            words = [sys.executable, "-m", "tests.fuzz", "--target", name, "--seed", str(given.seed)]
            words += ["--first", str(first), "--cases", str(block), "--keep", str(given.keep), "--worker", str(folder)]
            words += [] if given.seconds is None else ["--seconds", str(given.seconds)]
            try:
                done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False, timeout=600 + 4 * SECONDS)
                died = None if done.returncode == 0 else f"the process ended with {done.returncode}"
            except subprocess.TimeoutExpired:
                died = "the process hung"
            if died is None:
                count, *found = json.loads(done.stdout.splitlines()[-1])
                outcomes.update(found[0])
                odd.update(found[1])
                failures |= {int(number): why for number, why in found[2].items()}
                cases += count
                first += block
                if given.seconds is not None and count < block:
                    break
            elif not (folder / "number").exists():
                raise SystemExit(f"{name}: the process did not start")
            else:  # all before the case it died at were sound or are kept
                number, chosen = (folder / "number").read_text().split(" ", 1)
                stuck = next(one for one in sorted(folder.iterdir()) if one.name.startswith("case"))
                kept(given.keep, name, given.seed, int(number), chosen, stuck.read_bytes())
                failures[int(number)] = died
                cases += int(number) - first + 1
                first = int(number) + 1
        finally:
            drop(folder)
    told = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(outcomes.items()))
    print(f"{name}: {cases:,} cases, seed {given.seed}: {told}; {len(failures)} failures", flush=True)
    for edits, count in odd.most_common(5):
        print(f"  {count:,} by {edits}")
    for number, why in list(failures.items())[:20]:
        print(f"  case {number}: {why[:200]}")
    return int(bool(failures))


sys.exit(main())

"""Audit every mechanism by samples, through a whole curator: `python -m tests.audit --draws 1000000`.

Prints a line per case and one at the end. Exit code 1 where a mechanism is refuted; with --thin, where one is not.
"""

import argparse
import sys
import time
from fractions import Fraction

from benchmarks.harness.main import main as run_study
from tests.audit.audit import ALARM, audited
from tests.audit.pipeline import all_cases, thinned
from tests.audit.refute import verdict
from tests.audit.sessions import WHOLE, two_steps

#: They take much longer than a release, so there are fewer: one draw in 200.
SESSIONS = "sessions of two steps"


def main() -> None:
    if "--pipelines" in sys.argv[1:]:
        from tests.audit.pipelines import STUDY  # what needs joblib, and the benchmarks' harness

        run_study(STUDY, [one for one in sys.argv[1:] if one != "--pipelines"])
        return
    parser = argparse.ArgumentParser(prog="python -m tests.audit", description=__doc__)
    parser.add_argument("--draws", type=int, default=1_000_000, help="of each of the two data sets, per case")
    parser.add_argument("--blocks", type=int, default=5000, help="draws per release; 1: true neighbours as they stand")
    parser.add_argument("--thin", type=Fraction, help="audit mechanisms with this share of the noise they claim: 0.95")
    parser.add_argument("--only", default="", help="cases whose name holds this text")
    parser.add_argument("--pipelines", action="store_true", help="whole pipelines in place of mechanisms; see --help")
    given = parser.parse_args()
    if given.draws < 100 or given.blocks < 1:
        parser.error("at least 100 draws, and one block")
    cases = list(all_cases())
    alarm = ALARM / (len(cases) + 1)
    if given.thin is not None:  # where a claim has slack, a little less noise breaks nothing
        cases = [thinned(case, given.thin) for case in cases if case.tight]
    cases = [case for case in cases if given.only in str(case)]
    refuted, began = 0, time.perf_counter()
    for case in cases:
        found = audited(case, given.draws, given.blocks, alarm)
        refuted += found.refuted
        what = "rho" if case.budget.kind == "zcdp" else "epsilon"
        print(
            f"{'REFUTED' if found.refuted else 'stands'}: {case}: {what} at least {found.bound:.4f}, "
            f"claimed {found.claimed:.4f}",
            flush=True,
        )
    tried = len(cases)
    if given.thin is None and given.only in SESSIONS:
        held = verdict(WHOLE, *two_steps(max(1, given.draws // 50_000)), alarm)
        refuted, tried = refuted + held.refuted, tried + 1
        print(
            f"{'REFUTED' if held.refuted else 'stands'}: {SESSIONS}, {WHOLE}: epsilon at least {held.bound:.4f}, "
            f"claimed {held.claimed:.4f}",
            flush=True,
        )
    noise = "" if given.thin is None else f" with {float(given.thin):g} of their noise"
    print(
        f"audit: {tried} cases{noise}, {given.draws:,} draws of each side, {refuted} refuted, "
        f"{tried - refuted} stand; false alarm {ALARM:g} in all; {time.perf_counter() - began:.0f} s"
    )
    sys.exit(refuted > 0 if given.thin is None else refuted < len(cases))


if __name__ == "__main__":
    main()

"""python -m tests.neighbours --pairs 5000: neighbours that can be told apart by anything but the noise.

With `--engine duckdb` (repeatable) so many pairs of tables in that engine instead, where its plugin is installed; with
`--related` of two related tables that differ in one key.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import chain, cycle, islice

import click

from tests.neighbours.differences import choosing, differences, pairs, scratch
from tests.neighbours.engines import ENGINES, engine_pairs
from tests.neighbours.observe import MODES
from tests.neighbours.related import related_pairs
from tests.neighbours.runs import Pair


def main() -> int:
    """Say which pairs differ, and where; exit code 1 if any does."""
    parser = argparse.ArgumentParser(prog="python -m tests.neighbours", description=__doc__)
    parser.add_argument("--pairs", type=int, default=5000, help="how many; the named worst cases come first")
    parser.add_argument("--choosing", type=int, default=500, help="how many more, their structure chosen by a selector")
    parser.add_argument("--seed", type=int, default=0, help="of the random ones")
    parser.add_argument("--first", type=int, default=0, help="of an engine: number of the first pair")
    parser.add_argument("--match", default="", help="only pairs whose name holds this text")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--engine", choices=sorted(ENGINES), action="append", default=[], help="repeatable")
    parser.add_argument("--related", action="store_true", help="pairs of two related tables")
    chosen = parser.parse_args()
    started, tried, failed = time.monotonic(), Counter[str](), 0
    with scratch() as folder:
        for pair, mode in _chosen(chosen):
            if chosen.match not in pair.name:
                continue
            if time.monotonic() - started > chosen.seconds:
                break
            tried[pair.name.split()[0]] += 1
            found = differences(pair, folder / "run", mode)
            if found:
                failed += 1
                click.echo("\n  ".join([f"DIFFERS {pair.name} ({mode})", *found]))
    kinds = ", ".join(f"{number} {kind}" for kind, number in tried.items())
    click.echo(
        f"neighbours: {tried.total()} pairs ({kinds}), {failed} told apart; seed {chosen.seed}, "
        f"{time.monotonic() - started:.0f} s"
    )
    return int(failed > 0)


def _chosen(chosen: argparse.Namespace) -> Iterator[tuple[Pair, str]]:
    if chosen.related:
        yield from zip(islice(related_pairs(chosen.seed), chosen.pairs), cycle(MODES), strict=False)
        return
    if not chosen.engine:
        yield from chain(pairs(chosen.pairs, chosen.seed), choosing(chosen.choosing, chosen.seed))
    for engine in chosen.engine:
        with engine_pairs(engine, chosen.seed, chosen.first) as made:
            yield from zip(islice(made, chosen.pairs), islice(cycle(MODES), chosen.first, None), strict=False)


if __name__ == "__main__":
    sys.exit(main())

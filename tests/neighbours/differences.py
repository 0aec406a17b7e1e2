"""Which pairs there are, and what tells the two sides of one apart."""

import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, count, cycle, islice
from pathlib import Path

from tests.neighbours.cells import named_cells, random_cells
from tests.neighbours.lines import named_lines, random_lines
from tests.neighbours.observe import MODES, observed
from tests.neighbours.runs import Pair, by_selector


def pairs(number: int, seed: int = 0) -> Iterator[tuple[Pair, str]]:
    """So many pairs, the named ones first, each with the settings of the process under which it runs."""
    return islice(zip(chain(named_lines(), named_cells(), _random(seed)), cycle(MODES), strict=False), number)


def choosing(number: int, seed: int = 0) -> Iterator[tuple[Pair, str]]:
    """So many of the same pairs spread over all of them, their structure chosen by a selector; half are random ones."""
    named = [*named_lines(), *named_cells()]
    random.Random(seed).shuffle(named)
    mixed = chain.from_iterable(zip(cycle(named), _random(seed), strict=False))
    chosen = (by_selector(pair, place) for place, pair in enumerate(mixed))
    # Three modes and eight selectors, so that each meets each.
    return islice(zip(chosen, cycle(MODES), strict=False), number)


def _random(seed: int) -> Iterator[Pair]:
    for number in count():
        draw = random.Random(f"{seed}/{number}")  # each pair its own, so that it does not depend on those before
        name = f"{number} of seed {seed}"
        yield random_lines(f"lines {name}", draw) if draw.random() < 0.5 else random_cells(f"cells {name}", draw)


def differences(pair: Pair, folder: Path, mode: str = "default") -> list[str]:
    """What differs between the sides, one line each."""
    one, other = observed(pair.one, folder, mode), observed(pair.other, folder, mode)
    return [f"{what}: {one[what]!r:.600} != {other[what]!r:.600}" for what in one if one[what] != other[what]]


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for the runs, in memory where there is such a place: ledgers wait for disks."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)

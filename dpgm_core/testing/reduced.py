"""What a source that sums where the rows are brought back, once for all checks that look at it: jobs may be slow."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

from dpgm_core.arrays import IntArray
from dpgm_core.counting.gradients import GradientSums
from dpgm_core.counting.rows import Recoded
from dpgm_core.counting.statistic import Sum
from dpgm_core.domain import Domain, code_dtype
from dpgm_core.privacy.gradients import NodeGradients
from dpgm_core.privacy.regressions import Regressions
from dpgm_core.sources.contract import Pinned, Reading
from dpgm_core.structure import Structure
from dpgm_core.testing.reductions import Hidden, Large, embedded, tallies
from dpgm_core.testing.source_records import DOMAIN, example_table, in_chunks
from dpgm_core.testing.subjects import SourceSubject

__all__ = ["Study", "attempted", "pinned", "study"]

#: Where the rows of the study's table are cut: uneven chunks; the first, one in the middle and the last are empty.
_CUTS = (0, 0, 11, 12, 12, 150, 300, 300)


@frozen(repr=False)
class Study:
    """What came of several sums over one pin of the example in 7 chunks, by name: a vector, or what was raised.

    expected: what had to come. "hidden" is "counts" again, of which no more is known than that it is a sum, and "again"
    is "counts" at the end, after the first vector was written into; "left" is of a pin that was left.
    """

    found: Mapping[str, Any]
    expected: Mapping[str, IntArray]

    def vector(self, name: str) -> Any:
        """What one sum came to. Raises what the source did."""
        found = self.found[name]
        if isinstance(found, Exception):
            raise found
        return found


def study(subject: SourceSubject) -> Study:
    """Made once; seven jobs at most."""
    if "study" not in subject.kept:
        subject.kept["study"] = _studied(subject)
    made: Study = subject.kept["study"]
    return made


def _studied(subject: SourceSubject) -> Study:
    table = in_chunks(example_table(), _CUTS)
    reading = Reading(domain=DOMAIN, columns=DOMAIN.names, several=True)
    asked = _asked()
    expected = {name: embedded(table, reading, one) for name, one in asked.items()}
    found: dict[str, Any] = {}
    pin: Pinned | None = None
    try:
        with pinned(subject, table, reading) as pin:
            for name, one in asked.items():
                found[name] = attempted(pin, one)
                if name == "counts":
                    found[name] = _taken(found[name])
    except Exception as error:
        found = dict.fromkeys(asked, error)
    found["left"] = None if pin is None else attempted(pin, asked["counts"])
    return Study(found=found, expected=expected)


def _asked() -> dict[str, Sum]:
    counts = tallies(DOMAIN, [tuple(reversed(DOMAIN.names)), ("visits", "town")])
    regressions = Regressions(candidates=Structure.complete(DOMAIN), loss="softmax")
    weights = np.arange(regressions.allowed.size).reshape(regressions.allowed.shape) % 5 * regressions.allowed
    gradients = NodeGradients(regressions=regressions, weights=weights, radius=40, clip="0.5")
    fewer = Domain.from_sizes({"town": 2, "age": 3, "visits": 2})
    codes = {one.name: (np.arange(DOMAIN[one.name].size) % one.size).astype(code_dtype(one.size)) for one in fewer}
    return {
        "counts": counts,
        "hidden": Hidden(counts),
        "gradients": GradientSums(gradients, "zcdp"),
        "recoded": Recoded(tallies(fewer, [("visits", "town"), ("age",)]), codes),
        "large": Large(("visits", "town")),
        "again": counts,
    }


def _taken(found: Any) -> Any:
    """A copy of a vector that is then written into, as its caller may; the vector itself where that fails."""
    if not isinstance(found, np.ndarray) or not found.flags.writeable:
        return found
    copy = found.copy()
    found[...] = -7
    return copy


@contextmanager
def pinned(subject: SourceSubject, table: Any, reading: Reading) -> Iterator[Pinned]:
    """The table's rows, pinned."""
    with tempfile.TemporaryDirectory() as folder:
        source: Any = subject.open(table, Path(folder))
        with source.pinned(reading) as pin:
            yield pin


def attempted(pin: Pinned, reduction: Sum) -> Any:
    """The vector, or what was raised."""
    try:
        return pin.reduce(reduction)
    except Exception as error:
        return error

"""Arrays of integer codes: every way in gives the same records."""

from __future__ import annotations

from collections import Counter

import numpy as np

from dpgm_core.domain import Attribute, Domain, code_dtype
from dpgm_core.sources import as_source
from dpgm_core.sources.contract import Source

DOMAIN = Domain(
    [
        Attribute.of_labels("town", ["A", "B", "Zürich"], unknown="?", null="none"),
        Attribute.of_bins("age", [0, 18, 65, float("inf")], unknown="?", null="none"),
        Attribute.of_size("visits", 4, unknown=3),
        Attribute.of_labels("coded", ["low", "high"], unknown="low", coded=True),
    ]
)


def codes(source: Source, domain: Domain = DOMAIN) -> Counter[tuple[int, ...]]:
    found: Counter[tuple[int, ...]] = Counter()
    for batch in source.batches(domain, domain.names):
        assert [part.dtype for part in batch] == [code_dtype(attribute.size) for attribute in domain]
        found.update(zip(*(part.tolist() for part in batch), strict=True))
    return found


def test_codes_ways_in_agree() -> None:
    """A 2-d array in either layout, a mapping, and every integer type: codes outside the labels are unknown."""
    rng = np.random.default_rng(0)
    raw = rng.integers(-2, 7, size=(300, 4))
    wanted = Counter(
        tuple(int(code) if 0 <= code < a.size else a.unknown for code, a in zip(row, DOMAIN, strict=True))
        for row in raw
    )
    assert codes(as_source(raw)) == codes(as_source(np.asfortranarray(raw.astype(np.int8)))) == wanted
    assert codes(as_source({name: raw[:, i] for i, name in enumerate(DOMAIN.names)})) == wanted

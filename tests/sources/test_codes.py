"""Arrays of integer codes: every way in gives the same records."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import numpy as np

from dpgm_core.sources import as_source


def test_codes_ways_in_agree(visits: SimpleNamespace) -> None:
    """A 2-d array in either layout, a mapping, and every integer type: codes outside the labels are unknown."""
    rng = np.random.default_rng(0)
    raw = rng.integers(-2, 7, size=(300, 4))
    wanted = Counter(
        tuple(int(code) if 0 <= code < a.size else a.unknown for code, a in zip(row, visits.domain, strict=True))
        for row in raw
    )
    assert visits.codes(as_source(raw)) == visits.codes(as_source(np.asfortranarray(raw.astype(np.int8)))) == wanted
    assert visits.codes(as_source({name: raw[:, i] for i, name in enumerate(visits.domain.names)})) == wanted

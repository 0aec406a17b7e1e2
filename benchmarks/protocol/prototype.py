"""What the specification's own prototype needed: n* for structure and parameters; where searches begin, too.

rho = .01, (.75, 1e-6), epsilon = .75; about +-15 %. Its `mrf-select` measured products, knew that there are no fields
and gave nothing to single attributes.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["PROTOTYPE", "prototype", "starts"]

Both = tuple[int | None, int | None]

PROTOTYPE: Mapping[tuple[str, str, str], Both] = {
    ("zcdp", cell, method): values
    for cell, each in {
        "matching 8": [(102, 790), (1722, 9742), None, (406, 1218), (304, 588)],
        "matching 16": [(164, 724), (3649, 15024), None, (1117, 2521), (588, 861)],
        "matching 32": [(235, 865), (8421, 21384), (4211, 18051), (2950, 6680), (890, 1625)],
        "matching 64": [(269, None), (13529, 39923), (7520, 30253), (5953, None), (1482, 2178)],
        "matching 128": [None, None, None, None, (1905, 3024)],
        "3-regular 8": [(279, 1218), (5405, 27554), None, (861, 2048), None],
        "3-regular 16": [(396, 1850), (9548, 48121), (6480, 29661), (1810, 4000), (1337, 2138)],
        "3-regular 32": [None, (18664, None), (11654, 57613), None, (3492, 4105)],
        "3-regular 64": [None, None, None, None, (3951, 4539)],
        "grid 16": [(445, 2119), None, (6742, 32072), (2060, 5827), (1805, 4277)],
        "grid 64": [(729, None), None, (26970, None), None, (5938, 11672)],
    }.items()
    for method, values in zip(("non-private", "mrf-fw", "mrf-fw clipped", "all pairs", "mrf-select"), each, strict=True)
    if values
} | {
    (promise, cell, method): (value, parameters)
    for promise, cell, each in [
        ("delta", "matching 8", {"graph": (8064, None), "votes": (4416, None), "threshold": (323, None)}),
        ("delta", "matching 16", {"graph": (10752, None), "votes": (5760, None), "threshold": (405, None)}),
        ("delta", "matching 32", {"graph": (12800, None), "votes": (7168, None), "threshold": (507, None)}),
        ("delta", "matching 64", {"threshold": (567, None)}),
        ("delta", "matching 128", {"threshold": (658, None)}),
        ("delta", "3-regular 8", {"graph": (19456, None), "votes": (8832, None)}),
        ("delta", "3-regular 16", {"graph": (40960, None), "votes": (11776, None)}),
        ("delta", "3-regular 32", {"votes": (15360, None)}),
        ("pure", "matching 8", {"mrf-select": (424, 600), "all pairs": (631, 1945), "mrf-fw": (7336, 57018)}),
        ("pure", "matching 16", {"mrf-select": (1100, 1500), "all pairs": (4633, None), "mrf-fw": (25398, None)}),
        ("pure", "matching 32", {"mrf-select": (2626, 2947), "mrf-fw": (52411, None)}),
        ("labels", "3 8", {"printed": (8000, None), "touched": (4000, None), "softmax": (4000, None)}),
        ("labels", "3 16", {"printed": (16000, None), "touched": (8000, None), "softmax": (8000, None)}),
        ("labels", "4 8", {"printed": (32000, None), "touched": (16000, None)}),
    ]
    for method, (value, parameters) in each.items()
}
#: Where nothing was measured.
OTHERWISE = (2048, 4096)


def prototype(promise: str, cell: str, method: str) -> Both:
    """Of the method, or of the one that it is a kind of.

    >>> prototype("zcdp", "matching 16", "mrf-select contrasts")
    (588, 861)
    """
    names = [name for (kind, there, name) in PROTOTYPE if (kind, there) == (promise, cell) and name in method]
    return PROTOTYPE[promise, cell, max(names, key=len)] if names else (None, None)


def starts(promise: str, cell: str, method: str) -> tuple[int, int]:
    """Records to begin a search at, for structure and for parameters.

    >>> starts("zcdp", "matching 64", "all pairs, tables")
    (5953, 23812)
    """
    structure, parameters = prototype(promise, cell, method)
    return structure or OTHERWISE[0], parameters or (4 * structure if structure else OTHERWISE[1])

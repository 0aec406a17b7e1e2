"""A model of three variables as a UAI file (one table twice, zeros, and a constant), and the published files."""

import os
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("DPGM_SHARED", Path(__file__).parents[3].parent / "shared")) / "data"


def shared_file(name: str) -> Path:
    """The path of `name`, say `asia.bif`; skips the test where the folder of its kind is absent."""
    path = SHARED / name.split(".")[-1] / name
    if not path.exists():
        pytest.skip(f"{path} is absent")
    return path


SMALL = """MARKOV
3
2 3 2
4
2 1 0
2 0 1
2 0 2
0

6
1 2 3 4 5 6

6
1 1 1 1 1 2
4
1 0 0 1
1
10
"""

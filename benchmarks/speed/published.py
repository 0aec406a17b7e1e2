"""Instances of the UAI competitions with their evidence, ours alone: CPU milliseconds and memory of one inference.

Beside it how many times the same structure takes with mild potentials and no zeros. Each instance is a process of its
own; errors are against the published answers, which have six digits. `python -m benchmarks.uai` has more models.
"""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from benchmarks.uai import published


def measure(asked: Namespace) -> dict[str, Any]:
    """Instance -> figures."""
    found = published(asked.instances, 2 if asked.smoke else 10)
    return dict(list(found.items())[:1]) if asked.smoke else found

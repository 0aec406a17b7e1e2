"""Two or more releases, models or synthetic files side by side: computed from released things alone, so free.

`compare` takes them as objects or files and gives a `Comparison`: what each costs and promises, and how far each of the
others is from the first. No records are read; what compares a model with records is in `dpgm_core.evaluate`.
"""

from __future__ import annotations

from dpgm_core.comparison.compared import compare, privacy_of
from dpgm_core.comparison.matching import Matching, matching
from dpgm_core.comparison.page import make_page
from dpgm_core.comparison.subjects import Synthetic, read_subject
from dpgm_core.comparison.values import Comparison, Difference, Gap, Pair, Subject

__all__ = [
    "Comparison",
    "Difference",
    "Gap",
    "Matching",
    "Pair",
    "Subject",
    "Synthetic",
    "compare",
    "make_page",
    "matching",
    "privacy_of",
    "read_subject",
]

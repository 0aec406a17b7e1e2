"""A report about a model, for a review board and for whoever looks at it first: one page that needs nothing else.

`make(model)` gives the page; `dpgm report MODEL` writes it. An owner's annex, NOT PRIVATE, is `make_annex`.
"""

from __future__ import annotations

from dpgm_core.report.annex import make_annex
from dpgm_core.report.making import make

__all__ = ["make", "make_annex"]

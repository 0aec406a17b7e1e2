"""Reports about a model: one self-contained page for a review board and for readers.

`make_report(model)` returns the page; `dpgm report MODEL` writes it. An owner's annex, NOT PRIVATE, is `make_annex`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgm_core._util.lazy import face

if TYPE_CHECKING:
    from dpgm.report.annex import make_annex
    from dpgm.report.page import make_report

# module -> its public names
_LAZY = {"annex": ["make_annex"], "page": ["make_report"]}

__all__ = ["make_annex", "make_report"]

__getattr__, __dir__ = face(__name__, _LAZY)

"""Pictures of what a model says, with intervals and standing: for notebooks, pages and papers.

Each function returns a `Picture`: `svg()` needs nothing else, `draw(axes)` and `save("x.pdf")` need the extra `plots`.
`measure_dependence` returns the numbers behind the matrix of `dependence`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgm_core._util.lazy import face

if TYPE_CHECKING:
    from dpgm.plots.functions import dependence, graph, marginal, pair
    from dpgm.plots.picture import Picture
    from dpgm_core.models.dependence import Dependence, measure_dependence

# module -> its public names
_LAZY = {
    "functions": ["dependence", "graph", "marginal", "pair"],
    "picture": ["Picture"],
    "dpgm_core.models.dependence": ["Dependence", "measure_dependence"],
}

__all__ = ["Dependence", "Picture", "dependence", "graph", "marginal", "measure_dependence", "pair"]

__getattr__, __dir__ = face(__name__, _LAZY)

"""`import dpgm`: the names of `dpgm_core`, the same objects, and `shown`, which displays progress (decision 0031).

A name loads on first use, as in `dpgm_core`. Submodules are core's, so that there is one copy of each: `dpgm.plots` is
`dpgm.plots`, and imports of what is below it say `dpgm_core`.

>>> import dpgm, dpgm_core
>>> dpgm.Domain is dpgm_core.Domain
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import dpgm_core

__all__ = ["shown"]
__all__ += dpgm_core.__all__

if TYPE_CHECKING:
    from dpgm import plots as plots
    from dpgm.progress import shown as shown
    from dpgm_core import *  # noqa: F403  the names of its __all__
else:  # for a type checker every name would be one of ours

    def __getattr__(name: str) -> Any:
        if name == "shown":
            from dpgm.progress import shown

            return shown
        return getattr(dpgm_core, name)


def __dir__() -> list[str]:
    return sorted([*dir(dpgm_core), "shown"])

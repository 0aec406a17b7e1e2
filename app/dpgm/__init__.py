"""The application: the command line, spec files, reports, comparisons, studies, plots and other programs' formats.

`import dpgm` also gives the public names of `dpgm_core`, the same objects, by the name that was installed (decision
0031). A name loads on first use, so that `import dpgm` loads neither numpy nor scipy.

>>> import dpgm, dpgm_core
>>> dpgm.Domain is dpgm_core.Domain
True
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import dpgm_core

__all__ = [*dpgm_core.__all__, "RelatedModel", "analyse", "init", "shown"]

#: Packages of the application that users import from.
PACKAGES = ("comparison", "interop", "plots", "report", "study")
#: Other names of the application, and their modules.
_FUNCTIONS = {"RelatedModel": "related", "analyse": "analysis", "init": "starting", "shown": "progress"}

if TYPE_CHECKING:
    from dpgm import comparison as comparison
    from dpgm import interop as interop
    from dpgm import plots as plots
    from dpgm import report as report
    from dpgm import study as study
    from dpgm.analysis import analyse as analyse
    from dpgm.progress import shown as shown
    from dpgm.related import RelatedModel as RelatedModel
    from dpgm.starting import init as init
    from dpgm_core import *  # noqa: F403  the names of its __all__
else:  # for a type checker every name would be one of ours

    def __getattr__(name: str) -> Any:
        if name in PACKAGES:
            return importlib.import_module(f"dpgm.{name}")
        if name in _FUNCTIONS:
            return getattr(importlib.import_module(f"dpgm.{_FUNCTIONS[name]}"), name)
        return getattr(dpgm_core, name)


def __dir__() -> list[str]:
    return sorted(__all__)

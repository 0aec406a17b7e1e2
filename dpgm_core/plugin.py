"""All that a plugin imports at load time: the one hook, its marker, and the declaration it yields. No numpy here.

A plugin is a distribution with an entry point in group ``dpgm`` whose value is a module like this one::

    from dpgm_core.plugin import Component, hookimpl

    @hookimpl
    def dpgm_components():
        yield Component(kind="mechanism", name="laplace", target="dpgm_laplace.mechanism:Laplace",
                        summary="exact discrete Laplace noise")

The target is imported only when somebody uses the component.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal

import pluggy
from attrs import frozen

from dpgm_core.errors import PluginError, did_you_mean

__all__ = ["Component", "Kind", "KINDS", "dpgm_components", "hookimpl", "hookspec"]

Kind = Literal["mechanism", "inference", "collective", "learner", "selector", "source"]
#: Each kind of component and the contract it keeps, as "module:Protocol", imported when a component is first loaded.
KINDS: Mapping[str, str] = {
    "mechanism": "dpgm_core.noise.contract:Mechanism",
    "inference": "dpgm_core.inference.contract:Inference",
    "collective": "dpgm_core.collective.contract:Collective",
    "learner": "dpgm_core.learning.contract:Learner",
    "selector": "dpgm_core.selection.contract:Selector",
    "source": "dpgm_core.sources.contract:Source",
}

hookspec = pluggy.HookspecMarker("dpgm")
hookimpl = pluggy.HookimplMarker("dpgm")

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_TARGET = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


@frozen(kw_only=True)
class Component:
    """A declaration of one component; cheap, and importable without numpy.

    kind: mechanism, inference, collective, learner, selector or source. name: kebab-case, what users type. target:
    "package.module:Class", imported on first use. summary: one line for `dpgm plugins`. records: for a source,
    "package.module:function", which the conformance kit alone imports: given a pyarrow Table and an empty folder
    (pathlib.Path, may be written to), the function returns a source of this class that holds the table's rows; without
    it most checks of a source are skipped. Raises PluginError.

    >>> Component(kind="learner", name="mine", target="my_package.learner:Mine", summary="a demonstration").name
    'mine'
    """

    kind: Kind
    name: str
    target: str
    summary: str
    records: str | None = None

    def __attrs_post_init__(self) -> None:
        if self.kind not in KINDS:
            raise PluginError(
                f"component {self.name!r}: there is no kind {self.kind!r}{did_you_mean(self.kind, KINDS)}"
            )
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise PluginError(f"component name {self.name!r} must be kebab-case, such as 'naive-mle'")
        if not isinstance(self.target, str) or not _TARGET.fullmatch(self.target):
            raise PluginError(f"component {self.name!r}: target {self.target!r} must be 'package.module:Class'")
        if not isinstance(self.summary, str) or not self.summary.strip() or "\n" in self.summary:
            raise PluginError(f"component {self.name!r} needs a summary, one line of text")
        if self.records is None:
            return
        if self.kind != "source":
            raise PluginError(f"component {self.name!r}: a {self.kind} takes no records; only a source declares them")
        if not isinstance(self.records, str) or not _TARGET.fullmatch(self.records):
            raise PluginError(f"component {self.name!r}: records {self.records!r} must be 'package.module:function'")


@hookspec
def dpgm_components() -> Iterable[Component]:  # type: ignore[empty-body]
    """Yield this distribution's components. The only hook; it takes nothing, so it can never break on arguments."""

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

__all__ = ["Component", "KINDS", "Kind", "dpgm_components", "hookimpl", "hookspec"]

Kind = Literal["mechanism", "inference", "collective", "learner", "selector", "source"]
#: Each kind of component and the contracts of which it keeps one at least, as "module:Protocol", imported when a
#: component is first loaded.
KINDS: Mapping[str, tuple[str, ...]] = {
    "mechanism": ("dpgm_core.privacy.mechanism:Mechanism",),
    "inference": ("dpgm_core.inference.contract:Inference",),
    "collective": ("dpgm_core.inference.collective.contract:Collective",),
    "learner": ("dpgm_core.learning.contract:Learner",),
    "selector": ("dpgm_core.learning.selector:Selector",),
    "source": ("dpgm_core.sources.contract:Source", "dpgm_core.sources.contract:ReducingSource"),
}

hookspec = pluggy.HookspecMarker("dpgm")
hookimpl = pluggy.HookimplMarker("dpgm")

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_TARGET = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_TAKEN = re.compile(_TARGET.pattern + r"(\.[A-Za-z_]\w*)*")  # a class may stand in another one


@frozen(kw_only=True)
class Component:
    """A declaration of one component; cheap, and importable without numpy.

    kind: mechanism, inference, collective, learner, selector or source. name: kebab-case, what users type. target:
    "package.module:Class", imported on first use. summary: one line for `dpgm plugins`. records: for a source,
    "package.module:function", which the conformance kit alone imports: given a pyarrow Table and an empty folder
    (pathlib.Path, may be written to), the function returns a source of this class that holds the table's rows; without
    it most checks of a source are skipped. The table's chunks stand for partitions: a source that sums where the rows
    are should keep them apart, empty ones too, where its engine can. takes: for a source, "package.module:Class" of
    objects, such as an engine's frames, that are records by themselves: an object of that class or a subclass is given
    to the source as option `data`. Raises PluginError.

    >>> Component(kind="learner", name="mine", target="my_package.learner:Mine", summary="a demonstration").name
    'mine'
    """

    kind: Kind
    name: str
    target: str
    summary: str
    records: str | None = None
    takes: tuple[str, ...] = ()

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
        if self.kind != "source" and (self.records is not None or self.takes):
            raise PluginError(f"component {self.name!r}: a {self.kind} takes no records; only a source declares them")
        if self.records is not None and not (isinstance(self.records, str) and _TARGET.fullmatch(self.records)):
            raise PluginError(f"component {self.name!r}: records {self.records!r} must be 'package.module:function'")
        if not isinstance(self.takes, tuple) or not all(
            isinstance(one, str) and _TAKEN.fullmatch(one) for one in self.takes
        ):
            raise PluginError(
                f"component {self.name!r}: takes {self.takes!r} must be a tuple of 'package.module:Class'"
            )


@hookspec
def dpgm_components() -> Iterable[Component]:  # type: ignore[empty-body]
    """Yield this distribution's components. The only hook; it takes nothing, so it can never break on arguments."""

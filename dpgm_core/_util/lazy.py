"""Packages whose public names load on first use, so that importing one loads neither numpy nor other packages."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["FACES", "face"]

#: What a plugin may import from; everything else in dpgm_core may change in any release.
FACES = (
    "dpgm_core",
    "dpgm_core.plugin",
    "dpgm_core.domain",
    "dpgm_core.inference",
    "dpgm_core.learning",
    "dpgm_core.privacy",
    "dpgm_core.sources",
)


def face(package: str, homes: Mapping[str, Sequence[str]]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package that offers names of its modules.

    package: its `__name__`. homes: module, relative to the package, or by its whole name if it is of another one ->
    the names it lends. A name is looked up once and then stands in the package; what is in no home raises
    AttributeError, so that hasattr and star imports behave.
    """
    home = {name: module for module, names in homes.items() for name in names}

    def load(name: str) -> Any:
        if f"{package}.{name}" in FACES:
            return importlib.import_module(f"{package}.{name}")
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        whole = home[name] if home[name].startswith("dpgm_core.") else f"{package}.{home[name]}"
        value = getattr(importlib.import_module(whole), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted(sys.modules[package].__all__)

"""Checks of every component's class before it runs: the contract of its kind, and honest options."""

from __future__ import annotations

from typing import Any

import attrs

from dpgm_core.components.options import build, describe, plain_options
from dpgm_core.components.registry import Registry
from dpgm_core.plugin import Component
from dpgm_testing.check import Checklist, require
from dpgm_testing.subjects import SourceSubject, Subject

__all__ = ["CHECKS"]

CHECKS = Checklist("declaration")


def _class(subject: Subject) -> Any:
    return subject.component if isinstance(subject.component, type) else type(subject.component)


def _kind(subject: Subject) -> str:
    return type(subject).__name__.removesuffix("Subject").lower()


@CHECKS.add()
def keeps_its_contract(subject: Subject) -> None:
    """It is a frozen, keyword-only attrs class whose method takes what the protocol of its kind says."""
    cls, kind = _class(subject), _kind(subject)
    registry = Registry()
    declared = Component(kind=kind, name="subject", target="here:Subject", summary="the class under test")  # type: ignore[arg-type]
    registry.add(declared, cls)
    registry.load(kind, "subject")
    for field in attrs.fields(cls):
        try:
            setattr(object.__new__(cls), field.name, None)
        except attrs.exceptions.FrozenError:
            continue
        require(False, f"option {field.name!r} can be changed after the component is made; use @frozen(kw_only=True)")


@CHECKS.add()
def options_are_described(subject: Subject) -> None:
    """Every option has a help text. Cannot show: that the text is true."""
    for one in describe(_class(subject)):
        require(one.help, f"option {one.name!r} has no help text; declare it with dpgm_core.option(..., help=...)")


@CHECKS.add()
def options_survive_a_file(subject: Subject) -> None:
    """Its options become plain values and make an equal component again. Cannot show: anything for sources."""
    if isinstance(subject, SourceSubject):
        return
    component = subject.component
    fields = attrs.fields_dict(type(component))
    inner = {name: getattr(component, name) for name in fields if "component" in fields[name].metadata}
    plain = {name: value for name, value in plain_options(component).items() if name not in inner}
    again = attrs.evolve(build(type(component), plain, what="the component under test"), **inner)
    require(again == component, f"{component!r} became {again!r}")

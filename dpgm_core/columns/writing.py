"""Attributes as tables of a domain file, without default settings."""

from __future__ import annotations

import math
from typing import Any

from dpgm_core.columns.declared import PrivateBins, PrivateLabels
from dpgm_core.columns.labelling import bin_labels
from dpgm_core.columns.matching import EXACT, Matching
from dpgm_core.columns.tables import MISSING
from dpgm_core.columns.values import PLAIN, Values
from dpgm_core.errors import DomainError

__all__ = ["attribute_table"]


def attribute_table(
    *,
    labels: tuple[str, ...],
    unknown: int,
    null: int,
    edges: tuple[float, ...] | None,
    cap: bool,
    null_values: tuple[str, ...],
    coded: bool,
    matching: Matching,
    values: Values,
    private: PrivateBins | PrivateLabels | None,
) -> dict[str, Any]:
    """The table of an attribute of these parts, without what goes without saying; plain TOML and JSON values.

    >>> from dpgm_core.columns.tables import attribute_fields
    >>> fields = attribute_fields("a", {"bins": [0, 1, 2], "type": "number"})
    >>> attribute_table(**{"cap": False, "null_values": ("",), "coded": False, "private": None} | fields)
    {'type': 'number', 'bins': [0.0, 1.0, 2.0]}
    """
    plain: dict[str, Any] = {key: value for key, value in _parts(values).items() if value != _parts(PLAIN)[key]}
    own = unknown == null == len(labels) - 1 and labels[-1] == MISSING  # what goes without saying
    if isinstance(private, PrivateLabels):
        plain["labels"] = {"private": True, "keep": private.keep, "share": str(private.share)}
        own = True
        if labels[null] != MISSING:
            plain["missing"] = labels[null]
    elif isinstance(private, PrivateBins):
        share = {} if private.share is None else {"share": str(private.share)}
        plain |= {"min": _place(private.low, values), "max": _place(private.high, values)}
        plain["bins"] = {"private": private.count, **share}
    elif edges is not None:
        plain["bins"] = [_place(edge, values) for edge in edges]
        if list(labels[: len(edges) - 1]) != _default_labels(edges, values, cap):
            plain["labels"] = list(labels[: len(edges) - 1])
    else:
        plain["labels"] = list(labels[:-1] if own and len(labels) > 1 else labels)
    if cap:
        plain["cap"] = True
    if not own:
        plain["unknown"] = labels[unknown]
        if null != unknown:
            plain["missing"] = labels[null]
    plain |= {key: value for key, value in _rules(matching).items() if value != _rules(EXACT)[key]}
    if null_values != ("",):
        plain["null_values"] = list(null_values)
    if coded:
        plain["coded"] = True
    return plain


def _default_labels(edges: tuple[float, ...], values: Values, cap: bool) -> list[str] | None:
    try:
        return bin_labels("", edges, values, cap=cap)
    except DomainError:  # bins of this kind have no names of their own
        return None


def _place(edge: float, values: Values) -> float | str:
    """A place of the axis as a file has it; JSON has no infinity, so infinite edges travel as texts."""
    if not math.isfinite(edge):
        return str(edge)
    if values.kind == "integer" and edge.is_integer():
        return int(edge)
    if values.is_temporal and edge.is_integer():
        try:
            written = Values(kind=values.kind).text(edge)
        except DomainError:
            return edge
        if Values(kind=values.kind).number(written) == edge and "." not in written:
            return written
    return edge


def _parts(values: Values) -> dict[str, Any]:
    return {
        "type": values.kind,
        "format": values.format,
        "decimals": values.decimals,
        "scale": values.scale,
        "shape": values.shape,
    }


def _rules(matching: Matching) -> dict[str, Any]:
    return {
        "case": matching.case,
        "blanks": matching.blanks,
        "numbers": matching.numbers,
        "thousands": matching.thousands,
        "decimal": matching.decimal,
    }

"""The notebook card of a model."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from dpgm_core.domain import Domain
from dpgm_core.markup import Html, card, first
from dpgm_core.printable import listed

__all__ = ["model_card"]


def model_card(
    facts: Sequence[tuple[str, str]], domain: Domain, unmeasured: Collection[str], flaws: Sequence[str]
) -> Html:
    """Show a model's facts and attributes; nothing is inferred, as that may take long."""
    rows = ((one.name, one.size, listed(one.labels), "no" if one.name in unmeasured else "yes") for one in domain)
    return card("Model", facts, first(["attribute", "labels", "", "measured"], rows, len(domain)), flaws=flaws)

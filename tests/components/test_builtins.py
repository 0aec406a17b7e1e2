"""What core offers: each component loads, keeps its contract, and is what the defaults name."""

import math

import attrs
import pytest

from dpgm_core.components.builtins import INFERENCE, LEARNER, MECHANISM, dpgm_components
from dpgm_core.components.registry import Registry, make
from dpgm_core.errors import DpgmError


@pytest.mark.parametrize("component", dpgm_components(), ids=lambda one: one.name)
def test_what_core_offers_keeps_its_contract(component):
    """Through a registry that sees nothing else, as a plugin's would be loaded."""
    registry = Registry()
    registry.add(component, distribution="dpgm-core")
    module, _, name = component.target.partition(":")
    loaded = registry.load(component.kind, component.name)
    assert (loaded.__module__, loaded.__qualname__) == (module, name)


def test_the_defaults_can_be_made_and_no_name_is_offered_twice():
    """The inference by core itself, noise and learner by the first-party plugins."""
    names = [(one.kind, one.name) for one in dpgm_components()]
    assert len(names) == len(set(names))
    assert ("inference", INFERENCE) in [(one.kind, one.name) for one in dpgm_components()]
    for kind, name in (("inference", INFERENCE), ("mechanism", MECHANISM), ("learner", LEARNER)):
        make(kind, name)


NUMBERS = [
    pytest.param(offer.component.kind, offer.component.name, option.name, id=f"{offer.component.name}-{option.name}")
    for offer in Registry.discover()
    if offer.component.kind in ("mechanism", "inference", "collective", "learner")
    for option in attrs.fields(Registry.discover().load(offer.component.kind, offer.component.name))
    if isinstance(option.default, (int, float)) and not isinstance(option.default, bool)
]


@pytest.mark.parametrize(("kind", "name", "option"), NUMBERS)
def test_no_number_is_taken_that_is_none(kind, name, option):
    """NaN, infinities, negatives and bools, built directly and through the registry."""
    implementation = Registry.discover().load(kind, name)
    fields = attrs.fields(implementation)
    needed = {one.name: one.metadata["sample"] for one in fields if one.default is attrs.NOTHING}
    for wrong in (math.nan, math.inf, -math.inf, -1, True):
        with pytest.raises((DpgmError, ValueError, TypeError), match=option):
            implementation(**needed | {option: wrong})
        with pytest.raises(DpgmError, match=option):
            make(kind, {"name": name, **needed, option: wrong})

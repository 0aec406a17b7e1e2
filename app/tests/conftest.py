"""Fixtures that tests of core, the application and the kit share, and learners of one test."""

import pytest
from attrs import frozen

from dpgm_core.components.registry import default_registry
from dpgm_core.plugin import Component
from tests.fixtures import *  # noqa: F403


@pytest.fixture
def registered(monkeypatch):
    """Registers a class, or a function of curator and engine, as a learner, for one test; returns its name."""
    registry = default_registry()
    monkeypatch.setattr(registry, "_offers", list(registry._offers))

    def register(name: str, learner) -> str:
        @frozen(kw_only=True)
        class OfATest:
            def check(self, structure, inference):
                pass

            def learn(self, curator, inference, *, randomness, progress):
                return learner(curator, inference)

        made = learner if isinstance(learner, type) else OfATest
        registry.add(Component(kind="learner", name=name, target=f"a_test:{name}", summary="of a test"), made)
        return name

    return register

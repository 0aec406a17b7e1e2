"""Fixtures that tests of core, the application and the kit share."""

from tests.fixtures import *  # noqa: F403

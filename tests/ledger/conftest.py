"""What tests of the ledger share: ledgers as dpgm wrote them under schema 1."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ledger.schema1 import write_old


@pytest.fixture
def old_ledger() -> Callable[..., Path]:
    """Makes a ledger of 1 of schema 1 with charges of 0.1; killed: a process died with its charges in the log."""
    return write_old

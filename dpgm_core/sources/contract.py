"""What a source of records must offer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from dpgm_core.arrays import Codes

if TYPE_CHECKING:
    from dpgm_core.domain import Domain


__all__ = ["Source"]


class Source(Protocol):
    """Where records are read; it yields codes in batches, counting is core's alone."""

    def batches(self, domain: Domain, columns: Sequence[str]) -> Iterator[Codes]:
        """Batches of codes for the named columns; raises DataError before the first batch if it cannot."""
        ...

"""The place of a release among many subsampled ones, and its sentence in the guarantee."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import attrs

from dpgm_core.privacy.amounts import decimal_text
from dpgm_core.privacy.contributions import ClippedScore

__all__ = ["Round"]


@attrs.frozen(kw_only=True)
class Round:
    """Which of many subsampled releases, charged together, a release is.

    number: 1, ..., of. of: how many were paid for. sampling_rate: the probability with which a person takes part.
    clip: the tables hold sums of clipped scores in units of 1/grid, no counts.

    >>> Round(number=2, of=8, sampling_rate=Fraction(1, 10)).to_dict()
    {'number': 2, 'of': 8, 'sampling_rate': '1/10', 'clip_norm': None, 'grid': None}
    """

    number: int
    of: int
    sampling_rate: Fraction
    clip: ClippedScore | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, amounts as exact texts."""
        return {
            "number": self.number,
            "of": self.of,
            "sampling_rate": str(self.sampling_rate),
            "clip_norm": None if self.clip is None else str(self.clip.norm),
            "grid": None if self.clip is None else self.clip.grid,
        }

    def sentence(self) -> str:
        """What a guarantee says of it."""
        text = (
            f"This is round {self.number} of {self.of}; each draws a secret Poisson subsample at rate "
            f"{decimal_text(self.sampling_rate)}, and the guarantee holds for all of them together. "
        )
        if self.clip is not None:
            text += f"The tables hold sums of clipped scores in units of 1/{self.clip.grid}, no counts. "
        return text

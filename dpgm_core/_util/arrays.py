"""The arrays that everything is made of, by type: plain numpy, and codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

__all__ = ["Array", "Codes", "FloatArray", "IntArray"]

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
FloatArray: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
IntArray: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
#: One batch of records: one unsigned-integer array of codes per column that is read, all of one length.
Codes: TypeAlias = Sequence[np.ndarray[Any, np.dtype[Any]]]

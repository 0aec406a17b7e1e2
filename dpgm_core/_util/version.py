"""The version of all our distributions, which the build reads from this file."""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.2.0"

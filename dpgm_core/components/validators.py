"""Validators of options, whose refusals name the option."""

from __future__ import annotations

import math
import typing
from typing import Any

import attrs

from dpgm_core.errors import OptionError

__all__ = ["at_least_zero", "flag", "positive", "share", "whole"]


def positive(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """Refuse, with OptionError, anything but a finite number above 0; a validator of attrs."""
    if not (_is_number(value) and value > 0):
        raise OptionError(f"{attribute.name} must be a finite number above 0, got {value!r}")


def at_least_zero(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """Refuse, with OptionError, anything but a finite number of at least 0; a validator of attrs."""
    if not (_is_number(value) and value >= 0):
        raise OptionError(f"{attribute.name} must be a finite number of at least 0, got {value!r}")


def share(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """Refuse, with OptionError, anything but a number from 0 to below 1; a validator of attrs."""
    if not (_is_number(value) and 0 <= value < 1):
        raise OptionError(f"{attribute.name} must be a number from 0 to below 1, got {value!r}")


def whole(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """Refuse, with OptionError, anything but a whole number of at least 1; a validator of attrs.

    Examples
    --------
    >>> @attrs.frozen(kw_only=True)
    ... class Mine:
    ...     steps: int = attrs.field(default=3, validator=whole)
    >>> Mine(steps=True)
    Traceback (most recent call last):
    dpgm_core.errors.OptionError: steps must be a whole number of at least 1, got True
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise OptionError(f"{attribute.name} must be a whole number of at least 1, got {value!r}")


def flag(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """Refuse, with OptionError, anything but true and false; a validator of attrs."""
    if not isinstance(value, bool):
        raise OptionError(f"{attribute.name} must be true or false, got {value!r}")


def _is_number(value: object) -> typing.TypeGuard[float]:
    try:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # a whole number that no float holds
        return False

"""Options and checks that mechanisms on whole numbers share."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from attrs import frozen

from dpgm_core.arrays import FloatArray
from dpgm_core.components.options import option
from dpgm_core.errors import InferenceError, OptionError

__all__ = ["Exactness", "residuals"]


@frozen(kw_only=True)
class Exactness:
    """Base class with the options of a mechanism that draws exact noise, and textbook floats only if that is allowed.

    Parameters
    ----------
    exact : bool
        Draw whole-numbered noise by integer arithmetic.
    allow_unsafe : bool
        Allow `exact=False`, whose guarantee does not hold to the letter.

    Raises
    ------
    OptionError
        For `exact=False` without `allow_unsafe=True`; names the mechanism by its class.

    Examples
    --------
    >>> @frozen(kw_only=True)
    ... class Mine(Exactness):
    ...     pass
    >>> Mine().exact
    True
    >>> Mine(exact=False)
    Traceback (most recent call last):
    dpgm_core.errors.OptionError: mechanism 'mine' was asked for the unsafe exact = false: ...
    """

    own_randomness: ClassVar[None] = None

    exact: bool = option(
        True,
        help="draw whole-numbered noise by integer arithmetic; false: textbook floats, to reproduce papers only",
    )
    allow_unsafe: bool = option(False, help="allow noise whose guarantee does not hold to the letter (exact = false)")

    def __attrs_post_init__(self) -> None:
        name = type(self).__name__.lower()
        for field in ("exact", "allow_unsafe"):
            if not isinstance(getattr(self, field), bool):
                raise OptionError(f"option {field!r} of mechanism {name!r} must be true or false")
        if not self.exact and not self.allow_unsafe:
            raise OptionError(
                f"mechanism {name!r} was asked for the unsafe exact = false: floating-point noise leaks the counts; "
                "leave exact = true, or say allow_unsafe = true to reproduce a paper"
            )

    @staticmethod
    def caveat(noise: str) -> str:
        """Return why the guarantee of textbook noise does not hold to the letter, for `Noise.unsafe`."""
        return (
            f"textbook floating-point {noise} noise: the low bits of the sums can reveal the counts (Mironov 2012), "
            "so the stated budget does not hold to the letter"
        )


def residuals(values: FloatArray) -> FloatArray:
    """Return observed less expected counts as float64, for `logpdf` and `score`.

    Parameters
    ----------
    values : ndarray
        Of any shape, in records.

    Raises
    ------
    InferenceError
        For NaN.

    Examples
    --------
    >>> residuals(np.array([1, -2])).tolist()
    [1.0, -2.0]
    """
    values = np.asarray(values, dtype=np.float64)
    if np.isnan(values).any():
        raise InferenceError(
            "a residual is NaN; releases and expected tables hold numbers only, so check the potentials"
        )
    return values

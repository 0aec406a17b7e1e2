"""Codes of PostgreSQL's numeric: decimals of any length, which core reads as the text of their digits.

Unless it is whole a decimal becomes the float next to it, and bins cut that. So which bin it is in changes half-way
between an edge and the floats around it, where rounding to even says which side the middle itself is on: core is asked.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias

import pyarrow as pa

from dpgm_core import Attribute
from dpgm_core.domain import Matching
from dpgm_sql.trees import tree

__all__ = ["numeric_tree"]

#: A function from Arrow values to codes.
CodesOf: TypeAlias = Callable[[Any], list[int]]

_NUMERAL = re.compile(rb"-?[0-9]{1,60}(\.[0-9]{1,60})?")
#: From here on whole numbers and floats part.
_EXACT_WHOLE = 2**53
#: Beyond every float.
_FAR = Fraction(10**400)


def numeric_tree(attribute: Attribute, own: str, codes_of: CodesOf, most: int) -> str | None:
    """The code of a numeric that is not NULL. own: the column; asked: what core says; most: how many ranges at most."""
    if not _is_ordered(attribute):
        return None
    points = sorted(set(_points(attribute)))
    # Each point alone, and what lies between two of them; of that a value next to each end.
    gaps = list(pairwise([-_FAR, *points, _FAR]))
    single = codes_of(pa.array(list(map(_text, points)), pa.string()))
    lower = codes_of(pa.array([_text(low + (high - low) / 2**20) for low, high in gaps], pa.string()))
    upper = codes_of(pa.array([_text(high - (high - low) / 2**20) for low, high in gaps], pa.string()))
    ends = codes_of(pa.array([-math.inf, math.inf, math.nan]))
    if lower != upper or ends != [lower[0], lower[-1], attribute.null] or len(points) > most:
        return None
    # (where a range begins, whether that value itself is left out, its code)
    ranges: list[tuple[Fraction, bool, int]] = [(-_FAR, False, lower[0])]
    for point, alone, above in zip(points, single, lower[1:], strict=True):
        for left_out, code in ((False, alone), (True, above)):
            if ranges[-1][2] != code:
                ranges.append((point, left_out, code))
    cases = tree(ranges, _leaf, lambda one: f"{own} {'<=' if one[1] else '<'} CAST('{_text(one[0])}' AS NUMERIC)", 1)
    return f"CASE WHEN {own} = CAST('NaN' AS NUMERIC) THEN {attribute.null} ELSE {cases} END"


def _leaf(ranges: Sequence[tuple[Fraction, bool, int]]) -> str:
    return str(ranges[0][2])


def _is_ordered(attribute: Attribute) -> bool:
    """Whether ranges tell codes. They do not tell whole numbers from decimals that round to them."""
    if attribute.matching != Matching():
        return False
    if attribute.edges is None:
        return True
    narrow = all(abs(edge) < _EXACT_WHOLE for edge in attribute.edges if math.isfinite(edge))
    return narrow and attribute.values.kind in ("text", "number")


def _points(attribute: Attribute) -> Iterator[Fraction]:
    for edge in attribute.edges or ():
        for near in (math.nextafter(edge, -math.inf), math.nextafter(edge, math.inf)):
            if math.isfinite(edge) and math.isfinite(near):
                yield (Fraction(edge) + Fraction(near)) / 2
    yield from (Fraction(form.decode()) for form in attribute.forms if _NUMERAL.fullmatch(form))


def _text(number: Fraction) -> str:
    """All digits of a fraction whose denominator is a product of twos and fives."""
    places = max((number.denominator & -number.denominator).bit_length() - 1, _fives(number.denominator))
    digits = str(abs(number.numerator) * 10**places // number.denominator).rjust(places + 1, "0")
    whole, fraction = digits[: len(digits) - places], digits[len(digits) - places :].rstrip("0")
    return f"{'-' if number < 0 else ''}{whole}{'.' + fraction if fraction else ''}"


def _fives(number: int) -> int:
    times = 0
    while number % 5 == 0:
        number //= 5
        times += 1
    return times

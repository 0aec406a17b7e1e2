"""Rules, declared with the domain, by which raw texts match labels."""

from __future__ import annotations

import re
from typing import Literal

from attrs import evolve, field, frozen

from dpgm_core.errors import DomainError

__all__ = ["EXACT", "Matching"]

_NUMERAL = re.compile(rb"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]{1,9}))?")
_PLAIN_DIGITS = 40  # numbers of more digits are compared as a mantissa and an exponent


@frozen(kw_only=True)
class Matching:
    """Rules by which a raw text is a label: both are brought into one form and compared byte for byte.

    case: whether upper and lower case differ. blanks: "keep", or "strip" those at both ends. numbers: numbers match by
    value, so that `1.0`, `01` and `1` are one. thousands: the sign that groups digits, such as ",", dropped from
    numbers whose groups are whole. decimal: the sign before their fraction, "." or ",". Raises DomainError.

    >>> Matching(case=False, blanks="strip").form(b" Yes ")
    b'yes'
    >>> german = Matching(numbers=True, thousands=".", decimal=",")
    >>> german.form(b"1.250,50"), german.form(b"1,250.5")
    (b'1250.5', b'1,250.5')
    """

    case: bool = True
    blanks: Literal["keep", "strip"] = "keep"
    numbers: bool = False
    thousands: str | None = None
    decimal: str = "."
    _local: re.Pattern[str] | None = field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        for key, value in (("case", self.case), ("numbers", self.numbers)):
            if not isinstance(value, bool):
                raise DomainError(f"{key} must be true or false, got {value!r}")
        if self.blanks not in ("keep", "strip"):
            raise DomainError(f"blanks must be 'keep' or 'strip', got {self.blanks!r}")
        if self.decimal not in (".", ","):
            raise DomainError(f"decimal must be '.' or ',', got {self.decimal!r}")
        sign = self.thousands
        if sign is not None and not (isinstance(sign, str) and len(sign) == 1 and (sign in ".,'_" or _is_gap(sign))):
            raise DomainError(f"thousands must be one sign such as ',' or '.' or a blank, got {sign!r}")
        if sign == self.decimal:
            raise DomainError(f"thousands and decimal are both {sign!r}; give each a sign of its own")
        local = None
        if sign is not None or self.decimal != ".":
            group, point = re.escape(sign or ""), re.escape(self.decimal)
            # Groups of two are those of lakh and crore.
            grouped = rf"[0-9]{{1,3}}(?:{group}[0-9]{{2,3}})*{group}[0-9]{{3}}|" if sign else ""
            local = re.compile(rf"([+-]?)({grouped}[0-9]*)(?:{point}([0-9]*))?([eE][+-]?[0-9]{{1,9}})?")
        object.__setattr__(self, "_local", local)

    @property
    def typed(self) -> Matching:
        """The rules for values that are no texts, such as numbers of Parquet: they have no signs of a country.

        >>> Matching(numbers=True, decimal=",").typed.form(b"1.50")
        b'1.5'
        """
        return self if self._local is None else evolve(self, thousands=None, decimal=".")

    def form(self, raw: bytes) -> bytes:
        """The form in which a raw text is compared. Never raises.

        >>> [Matching(numbers=True).form(text) for text in (b"01", b"1.0", b"1e0", b"-0", b"one")]
        [b'1', b'1', b'1', b'0', b'one']
        """
        if self.blanks == "strip":
            raw = _text(raw).strip().encode("utf-8", "surrogateescape")
        if self.numbers:
            spelled = self.numeral(raw)
            number = None if spelled is None else _canonical(spelled)
            if number is not None:
                return number
            if spelled is None and _canonical(raw) is not None:
                return b"\0" + raw  # a number under other signs, which must not be taken for one under these
        return raw if self.case else _text(raw).casefold().encode("utf-8", "surrogateescape")

    def numeral(self, raw: bytes) -> bytes | None:
        """A number's text with "." and without groups; None for a text that these signs make no number.

        >>> us = Matching(thousands=",")
        >>> us.numeral(b"1,250.5"), us.numeral(b"12,50"), us.numeral(b"nan")
        (b'1250.5', None, b'nan')
        """
        if self._local is None:
            return raw
        text = _text(raw).strip()
        match = self._local.fullmatch(text)
        if match is None:
            return None if any(sign in text for sign in (".", ",", self.thousands or ".")) else raw
        sign, digits, fraction, exponent = (part or "" for part in match.groups())
        whole = digits if self.thousands is None else digits.replace(self.thousands, "")
        return f"{sign}{whole}{'.' + fraction if fraction else ''}{exponent}".encode()


#: Byte for byte.
EXACT = Matching()


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _is_gap(sign: str) -> bool:
    return (sign.isspace() and sign not in "\n\r") or sign == "\u2019"


def _canonical(raw: bytes) -> bytes | None:
    """One spelling for each decimal number, whatever its length; None for what is none."""
    match = _NUMERAL.fullmatch(raw)
    if match is None:
        return None
    sign, whole, fraction, power = (part or b"" for part in match.groups())
    if not whole and not fraction:
        return None
    digits = (whole + fraction).lstrip(b"0")
    shift = int(power or b"0") - len(fraction)
    stripped = digits.rstrip(b"0")
    if not stripped:
        return b"0"
    shift += len(digits) - len(stripped)
    minus = b"-" if sign == b"-" else b""
    if 0 <= shift <= _PLAIN_DIGITS - len(stripped):
        return minus + stripped + b"0" * shift
    if -_PLAIN_DIGITS <= shift < 0:
        padded = stripped.rjust(1 - shift, b"0")
        return minus + padded[:shift] + b"." + padded[shift:]
    return minus + stripped + b"e%d" % shift

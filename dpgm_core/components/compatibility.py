"""Which versions of core a plugin's metadata ask for, and which they should."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable

__all__ = ["version_bounds", "unmet_requirement"]

_REQUIREMENT = re.compile(r"\s*([\w.-]+)\s*(?:\[[^]]*\])?\s*\(?([^;()]*)\)?\s*(;.*)?")
_CLAUSE = re.compile(r"\s*(~=|==|!=|<=|>=|<|>)\s*v?(\d+(?:\.\d+)*)(\.\*)?\s*")
_COMPARE: dict[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}


def version_bounds(version: str) -> str:
    """Return a requirement on this core: up to the next release that may break contracts.

    That is the next MINOR version before 1.0, the next MAJOR version then.

    >>> version_bounds("0.2.0"), version_bounds("1.4.2")
    ('>=0.2.0,<0.3', '>=1.4.2,<2')
    """
    major, minor = _numbers(version)[:2]
    return f">={version},<{major + 1 if major else f'0.{minor + 1}'}"


def unmet_requirement(requirements: Iterable[str], name: str, version: str) -> str | None:
    """Return the first unconditional requirement on `name` that `version` does not meet, as written, or None.

    Versions compare by their release numbers (PEP 440 without pre-releases and epochs). What cannot be read so, or
    depends on a condition, is taken as met: pip checked it at installation, this only explains what came after.

    >>> unmet_requirement(["numpy>=1.26", "dpgm_core>=0.9,<2"], "dpgm-core", "0.1.0")
    'dpgm_core>=0.9,<2'
    >>> unmet_requirement(["dpgm-core~=0.1.0"], "dpgm-core", "0.1.7") is None
    True
    """
    for text in requirements:
        match = _REQUIREMENT.fullmatch(text)
        if match is None or re.sub(r"[-_.]+", "-", match[1]).lower() != name or match[3]:
            continue
        if not all(_holds(clause, version) for clause in match[2].split(",") if clause.strip()):
            return text.strip()
    return None


def _holds(clause: str, version: str) -> bool:
    match, own = _CLAUSE.fullmatch(clause), re.match(r"\d+(\.\d+)*", version)
    if match is None or own is None:
        return True
    sign, required, here = match[1], _numbers(match[2]), _numbers(own[0])
    if sign == "~=":  # ~= 1.4.2 is >= 1.4.2, == 1.4.*
        return _compared(">=", here, required) and here[: len(required) - 1] == required[:-1]
    return _compared(sign, here[: len(required)] if match[3] else here, required)


def _compared(sign: str, here: tuple[int, ...], required: tuple[int, ...]) -> bool:
    width = max(len(here), len(required))
    padded = [numbers + (0,) * (width - len(numbers)) for numbers in (here, required)]
    return _COMPARE[sign](padded[0], padded[1])


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))

"""Values of a spec file, checked one by one: tables, texts, names of files. Messages say where they stand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dpgm_core.errors import OptionError, did_you_mean

__all__ = ["check_known", "file_stem", "table_of", "text_of"]


def check_known(where: str, plain: Mapping[str, Any], known: Iterable[str]) -> None:
    """Refuse, with OptionError, a key that nobody reads."""
    for key in plain:
        if key not in known:
            raise OptionError(f"{where} has no setting {key!r}{did_you_mean(key, known)}")


def table_of(where: str, key: str, plain: object, known: Iterable[str]) -> Mapping[str, Any]:
    """A table with no other keys than those known. Raises OptionError."""
    if not isinstance(plain, Mapping):
        raise OptionError(f"{where}: {key} must be a table, got {plain!r}")
    check_known(f"{where}: [{key}]", plain, known)
    return plain


def text_of(where: str, key: str, value: object) -> str:
    """A text that is not empty. Raises OptionError."""
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise OptionError(f"{where}: {key} must be a text in quotes, got {value!r}")
    return value


def file_stem(where: str, value: object) -> str:
    """A name that files can have. Raises OptionError."""
    name = text_of(where, "name", value)
    if any(letter in name for letter in "/\\") or name.startswith(".") or not name.isprintable() or len(name) > 80:
        raise OptionError(
            f"{where}: name {name!r} names files: at most 80 letters, no slashes or line breaks, no dot at the start"
        )
    return name

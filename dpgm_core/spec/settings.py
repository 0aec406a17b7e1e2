"""`KEY.KEY=VALUE` settings, as `--set` takes them, over a table of plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpgm_core.errors import OptionError
from dpgm_core.toml import parse_toml

__all__ = ["apply_setting", "parse_setting"]


def parse_setting(setting: str) -> tuple[list[str], Any]:
    """`a.b=VALUE` as keys and value; VALUE is TOML, or a plain text if it is not.

    >>> parse_setting("learner.l2=0.5"), parse_setting("learner=naive-mle")
    ((['learner', 'l2'], 0.5), (['learner'], 'naive-mle'))
    """
    key, equals, text = setting.partition("=")
    keys = [part.strip() for part in key.split(".")]
    if not equals or not all(keys):
        raise OptionError(f"a setting must look like KEY=VALUE or KEY.KEY=VALUE, got {setting!r}")
    try:
        plain = parse_toml(f"value = {text.strip()}")
    except ValueError:
        plain = {}
    return keys, plain["value"] if set(plain) == {"value"} else text.strip()


def apply_setting(plain: dict[str, Any], setting: str, named: Mapping[tuple[str, ...], str | None]) -> None:
    """Set a key in a table of tables, making tables on the way.

    named: where a text is short for a table with nothing but a name, and the name to take where nothing stands. Raises
    OptionError where something else than a table stands on the way.

    >>> run = {"learner": "cgm-em"}
    >>> apply_setting(run, "learner.tau=2", {("learner",): None})
    >>> run
    {'learner': {'name': 'cgm-em', 'tau': 2}}
    """
    keys, value = parse_setting(setting)
    table = plain
    for depth, key in enumerate(keys[:-1], start=1):
        place = tuple(keys[:depth])
        inside = table.get(key, named.get(place) or {})
        if place in named and isinstance(inside, str):
            inside = {"name": inside}
        if not isinstance(inside, dict):
            raise OptionError(f"setting {setting!r}: {key!r} is not a table, so nothing can be set inside it")
        table[key] = inside
        table = inside
    table[keys[-1]] = value

"""Columns that are made up: names, postcodes and the like from public generators, which no record has told anything.

They give synthetic records the look of the data for demonstrations and tests of programs. The stamp names them.
"""

from __future__ import annotations

import datetime
import json
from typing import TYPE_CHECKING, Any

from attrs import frozen

from dpgm_core.errors import OptionError, PluginError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

__all__ = ["MadeUp"]

_KINDS = (str, int, datetime.date)
_SHAPE = "COLUMN=GENERATOR, such as name=name, or of a country town=city:de_DE"


@frozen
class MadeUp:
    """Columns with the generators of Faker that fill them. Each value is drawn by itself, whatever else a record has.

    generators: column -> its generator, and its locale or nothing.
    """

    generators: dict[str, tuple[str, str | None]]

    @classmethod
    def of(cls, options: Iterable[str], others: Sequence[str]) -> MadeUp:
        """Return what `--made-up` says; others: columns that there are. Raises OptionError and PluginError."""
        generators: dict[str, tuple[str, str | None]] = {}
        for text in options:
            column, _, how = text.partition("=")
            generator, _, place = how.partition(":")
            if not column or not generator:
                raise OptionError(f"--made-up {text!r:.80}: say {_SHAPE}")
            if column in others or column in generators:
                raise OptionError(f"--made-up: the records have a column {column!r:.80} already")
            generators[column] = generator, place or None
        made = cls(generators)
        for column, (generator, locale) in generators.items():
            made._check(column, generator, locale)
        return made

    def _check(self, column: str, generator: str, locale: str | None) -> None:
        try:
            fake = _faker(locale)
        except AttributeError:  # as Faker refuses a locale
            raise OptionError(f"--made-up: Faker knows no locale {locale!r:.40}; say one such as de_DE") from None
        known = [name for name in dir(fake) if not name.startswith(("_", "seed", "add_", "set_", "get_", "del_"))]
        if generator not in known:
            raise OptionError(f"--made-up: Faker makes no {generator!r:.40}{did_you_mean(generator, known)}")
        try:
            value = fake.format(generator)
        except (TypeError, ValueError, AttributeError):
            value = None
        if isinstance(value, bool) or not isinstance(value, _KINDS):
            raise OptionError(f"--made-up {column}={generator}: that makes no text, whole number or date")

    def appended(self, tables: Iterable[pa.Table], seed: int | None) -> Iterator[pa.Table]:
        """Yield the tables with the columns at their end, named in their stamp as made up."""
        import pyarrow as pa

        fakes = {column: _faker(locale) for column, (_, locale) in self.generators.items()}
        for number, fake in enumerate(fakes.values()):
            if seed is not None:
                fake.seed_instance(f"{seed} {number}")
        for table in tables:
            stamp = json.loads((table.schema.metadata or {})[b"dpgm"])
            stamp["made_up"] = {column: generator for column, (generator, _) in self.generators.items()}
            for column, fake in fakes.items():
                make = getattr(fake, self.generators[column][0])
                values = [str(make()).replace("\n", ", ") for _ in range(table.num_rows)]
                table = table.append_column(column, pa.array(values, pa.string()))
            yield table.replace_schema_metadata({"dpgm": json.dumps(stamp)})


def _faker(locale: str | None) -> Any:
    try:
        from faker import Faker
    except ImportError:
        raise PluginError("columns that are made up need Faker: pip install 'dpgm[made-up]'") from None
    return Faker(locale)

"""The dialect in which sampled records are written as CSV: separators, encoding, quotes, line ends, compression."""

from __future__ import annotations

import codecs
import gzip
import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, cast

from attrs import evolve, frozen

from dpgm_core.errors import OptionError, did_you_mean

__all__ = ["PLAIN", "Written", "delimiter_said", "is_csv", "sink", "transcoded", "written"]

_ENDS = {"lf": b"\n", "crlf": b"\r\n"}
_KEYS = ("delimiter", "encoding", "quoting", "line_ends")


@frozen(kw_only=True)
class Written:
    """How a CSV file is written, in the words of the csv source that reads it, and what ends its lines.

    quoting: whether all texts stand in quotes; if not, those do that need them.
    """

    delimiter: str = ","
    encoding: str = "utf-8"
    quoting: bool = False
    line_ends: str = "lf"

    def check(self, texts: Iterable[str]) -> None:
        """Refuse, before anything is drawn, names and labels that cannot be written so. Raises OptionError."""
        for text in texts:
            try:
                text.encode(self.encoding)
            except UnicodeEncodeError:
                raise OptionError(f"{text!r:.80} cannot be written in {self.encoding}; say encoding=utf-8") from None
            if self.line_ends == "crlf" and "\n" in text:
                raise OptionError(f"{text!r:.80} holds a line end, so lines must end in lf; leave line_ends")


#: As `dpgm fit` reads it without options.
PLAIN = Written()


def is_csv(path: Path) -> bool:
    """Whether a file is CSV by its name, compressed or not."""
    return path.name.endswith((".csv", ".csv.gz"))


def written(options: Iterable[str]) -> Written:
    """What `--dialect` says: specs, whose csv source is taken, and KEY=VALUE; the last one wins. Raises OptionError.

    >>> written(["delimiter=;", "line_ends=crlf"]).delimiter
    ';'
    """
    from dpgm_core.components.registry import make
    from dpgm_core.sources.csv import CsvSource

    said = PLAIN
    for one in options:
        key, equals, value = one.partition("=")
        if not equals:
            said = _of_spec(Path(one), said)
        elif key == "line_ends":
            if value not in _ENDS:
                raise OptionError(f"--dialect line_ends must be lf or crlf, got {value!r}")
            said = evolve(said, line_ends=value)
        elif key == "quoting" and value in ("true", "false"):
            said = evolve(said, quoting=value == "true")
        elif key == "delimiter":
            said = evolve(said, delimiter=CsvSource(path=Path("x.csv"), delimiter=value).delimiter)  # which checks it
        elif key == "encoding":
            said = evolve(said, encoding=make("source", "csv", path="x.csv", encoding=value).encoding)
        else:
            near = did_you_mean(key, _KEYS) if key not in _KEYS else ""
            raise OptionError(
                f"--dialect takes a spec or one of delimiter=, encoding=, quoting=true|false and line_ends=, got "
                f"{one!r}{near}"
            )
    return said


def delimiter_said(options: Iterable[str]) -> bool:
    """Whether `--dialect` names what separates fields, as specs do.

    >>> delimiter_said(["encoding=utf-16"]), delimiter_said(["spec.toml"])
    (False, True)
    """
    return any("=" not in one or one.startswith("delimiter=") for one in options)


def _of_spec(path: Path, said: Written) -> Written:
    from dpgm_core.sources import as_source
    from dpgm_core.sources.csv import CsvSource
    from dpgm_core.spec import read_spec

    data = read_spec(path).data
    source = as_source(data)
    if not isinstance(source, CsvSource):
        raise OptionError(
            f"the data of {path} are no CSV file, so they have no dialect; say delimiter=, encoding=, ..."
        )
    quoting = isinstance(data, Mapping) and data.get("quoting") is True  # which `init` says where names are quoted
    return evolve(said, delimiter=source.delimiter, encoding=source.encoding, quoting=quoting)


@contextmanager
def sink(file: IO[bytes], path: Path, how: Written) -> Iterator[IO[bytes]]:
    """Where UTF-8 lines ending in LF are written to, so that the file has them as it is to have them."""
    # No clock and no name in a compressed file: equal records give equal bytes.
    packed = gzip.GzipFile("", "wb", fileobj=file, mtime=0) if path.name.endswith(".gz") else nullcontext(file)
    with packed as open_file:
        as_it_is = how.encoding == "utf-8" and how.line_ends == "lf"
        yield cast(IO[bytes], open_file if as_it_is else _Encoded(cast(IO[bytes], open_file), how))


def transcoded(lines: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Lines that `as_utf8` read, as they stood: letters that their file did not have in its encoding as well.

    Raises OptionError for a letter that was put in and is none of the encoding's.
    """
    spoiled = "surrogatepass" if encoding.startswith("utf-16") else "surrogateescape"
    for line in lines:
        try:
            yield line if encoding == "utf-8" else line.decode("utf-8", "surrogatepass").encode(encoding, spoiled)
        except UnicodeEncodeError:
            raise OptionError(f"a label of the model cannot be written in {encoding}; save the file as UTF-8") from None


class _Encoded(io.RawIOBase):
    """Takes UTF-8 and writes the encoding and line ends asked for, a letter cut in two as well."""

    def __init__(self, file: IO[bytes], how: Written) -> None:
        self._file = file
        self._ends = _ENDS[how.line_ends]
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._encoder = codecs.getincrementalencoder(how.encoding)()

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        """All of it."""
        text = self._decoder.decode(bytes(data).replace(b"\n", self._ends))
        self._file.write(self._encoder.encode(text))
        return len(data)

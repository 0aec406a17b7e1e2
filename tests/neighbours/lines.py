"""Pairs of CSV files that differ in one line, which may hold any bytes but a line end."""

import gzip
import random
import string
from collections.abc import Iterator, Sequence

from attrs import evolve, frozen

from dpgm_core.sources.csv import MAX_LINE
from tests.neighbours.runs import TERMS, Pair, file_run

#: Lines that have broken readers before; a comma stands for the delimiter.
LINES = (
    b"", b"F,3,p", b"M,,p", b",,", b",", b"F", b"F,3,p,q,r,s", b"F\0,3,p", b"\0", b'"', b'"F,3,p', b'"F","3","p"',
    b'F,"3\r', b'""', b'"F""",3,p', b"\xef\xbb\xbfF,3,p", b"\xff\xfeF\0,\x003\0", b"\xff\xff", b"\xc3",
    b"F,\xed\xa0\x80,p",
    b"\r", b"F,3,p\r", b"F\r,3,p", b"\r\r", b"F,nan,p", b"F,inf,p", b"F,-0.0,p", b"F,1e999,p",
    b"F," + b"9" * 400 + b",p",
    b"F,0x1p3,", b"sex", b"sex,id", b"age,,id", b"SECRET,sex,SECRET", b"\x1a", b"#F,3,p", b"\\,\\,\\", b"F,3",
    "\x85,\u2028,\x0b".encode(), "\N{FULLWIDTH DIGIT THREE},\N{ARABIC-INDIC DIGIT THREE},p".encode(), b"NULL,NA,NULL",
    b" , , ", b"F,3," + b"k" * 70_000,
)  # fmt: skip
#: About as long as a line may be, and beyond any buffer.
LONG = (b"x" * (MAX_LINE - 1), b"x" * MAX_LINE, b"x" * (MAX_LINE + 1), b"F,3," + b"," * MAX_LINE, b'"' * (2 * MAX_LINE))
_BYTES = b',,,""\r\0\xff\xfe\xef\xbb\xbf\xc3\xa9FM1' + bytes(set(string.printable.encode()) - {ord("\n")})


@frozen
class Style:
    """How a CSV file is written and read. header: "line", "given" in the spec, or "forgotten". A line in UTF-16 has a
    unit for each byte."""

    header: str = "line"
    delimiter: str = ","
    quoting: bool = False
    suffix: str = ".csv"
    keyed: bool = False
    change: str = "add"
    encoding: str = "utf-8"
    skip_blanks: bool = False


STYLES = (
    Style(),
    Style(header="given", change="replace"),
    Style(header="forgotten"),
    Style(header="forgotten", change="replace", quoting=True),
    Style(quoting=True, keyed=True),
    Style(header="given", delimiter=";", quoting=True, keyed=True, change="replace", suffix=".csv.gz"),
    Style(quoting=True, encoding="utf-16-le", skip_blanks=True),
)


def named_lines() -> Iterator[Pair]:
    """Each odd line in each style as the first, middle or last one, and alone; then the long ones."""
    draw = random.Random(0)
    for style in STYLES:
        for line in LINES:
            yield line_pair(f"line {line[:20]!r} {style}", style, [b"M,50,p"] * draw.choice([0, 1, 2]), line, draw)
    for line in LONG:
        yield line_pair(f"line of {len(line)}", draw.choice(STYLES), [b"M,50,p"], line, draw)


def random_lines(name: str, draw: random.Random) -> Pair:
    """A few random lines, and a random one more or in place of one."""
    style = Style(
        header=draw.choice(["line", "given", "forgotten"]),
        delimiter=draw.choice([",", ";", "\t", "|", " "]),
        quoting=draw.random() < 0.5,
        suffix=draw.choice([".csv", ".csv", ".csv.gz"]),
        keyed=draw.random() < 0.4,
        change=draw.choice(list(TERMS)),
        encoding=draw.choice(["utf-8", "utf-8", "cp1252", "utf-16-be"]),
        skip_blanks=draw.random() < 0.3,
    )
    lines = [_line(draw) for _ in range(draw.randrange(5))]
    return line_pair(f"{name} {style}", style, lines, _line(draw), draw)


def line_pair(name: str, style: Style, lines: Sequence[bytes], odd: bytes, draw: random.Random) -> Pair:
    """Files with and without one line, or with another one in its place.

    None without any record: a file that ends with its first line is refused by its size, which is not hidden. Nor a
    forgotten header where a line names columns itself, as that is a header.
    """
    if style.header == "forgotten" and sum(name in odd for name in (b"sex", b"age", b"id")) > 1:
        style = evolve(style, header="line")
    lines = lines or [b"M,50,p"]
    change = style.change
    place = draw.choice([0, draw.randrange(len(lines) + 1), len(lines)])
    if change == "replace":
        place = min(place, len(lines) - 1)
    sides = [list(lines), [*lines[:place], odd, *lines[place + (change == "replace") :]]]
    finished = draw.random() < 0.6
    spec = f'{{ source = "csv", path = "data{style.suffix}", quoting = {str(style.quoting).lower()}, '
    spec += f"delimiter = {style.delimiter!r}".replace("'\\t'", '"\\t"')
    spec += f', encoding = "{style.encoding}", skip_blanks = {str(style.skip_blanks).lower()}'
    spec += ', columns = ["sex", "age", "id"] }' if style.header == "given" else " }"
    runs = []
    for side in sides:
        content = b"\n".join([b"sex,age,id", *side] if style.header == "line" else side)
        # An unfinished empty line is no line, so it takes its end to be a record.
        content += b"\n" if side and (finished or not side[-1]) else b""
        content = content.replace(b",", style.delimiter.encode())
        if style.encoding.startswith("utf-16"):
            content = content.decode("latin-1").encode(style.encoding)
        content = gzip.compress(content, mtime=0) if style.suffix == ".csv.gz" else content
        runs.append(file_run(f"data{style.suffix}", content, spec, change, style.keyed))
    return Pair(name, *runs)


def _line(draw: random.Random) -> bytes:
    line = bytearray(draw.choice([b"F,3,p", b"M,50,q", *LINES[:-1], bytes(draw.choices(_BYTES, k=draw.randrange(30)))]))
    for _ in range(draw.choice([0, 0, 1, 1, 3])):
        place = draw.randrange(len(line) + 1)
        line[place : place + draw.randrange(2)] = bytes(
            draw.choices([*_BYTES, draw.randrange(256)], k=draw.randrange(3))
        )
    return bytes(line).replace(b"\n", b"")

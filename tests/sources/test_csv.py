"""CSV: what a line is, what it means, and that nothing it holds reaches another line or a message."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgm_core.components.registry import make
from dpgm_core.counting.table_counts import count
from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DataError, OptionError
from dpgm_core.sources import as_source
from dpgm_core.sources import csv as module
from dpgm_core.sources.csv import CsvSource
from dpgm_core.structure.structure import Structure

DOMAIN = Domain(
    [
        Attribute.of_labels("sex", ["F", "M"], unknown="?", null="none"),
        Attribute.of_labels("town", ["A", "B", "Zürich"], unknown="?", null="none"),
    ]
)
F, M, UNKNOWN, NONE = range(4)


def rows(path: Path, content: bytes, domain: Domain = DOMAIN, **options: object) -> list[tuple[int, ...]]:
    """The records read from a file of this content, sorted."""
    path.write_bytes(content)
    found: list[tuple[int, ...]] = []
    for codes in CsvSource(path=path, **options).batches(domain, domain.names):
        assert [part.dtype for part in codes] == [np.uint8] * len(domain)
        found += zip(*(part.tolist() for part in codes), strict=True)
    return sorted(found)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "x.csv"


def test_values_match_labels_byte_for_byte(file: Path) -> None:
    """No trimming, no case folding; an empty field is null; columns nobody asked for are ignored."""
    content = "town,id,sex\nA,1,F\nZürich,2,M\n A,3,f\n,4,\n".encode()
    assert rows(file, content) == sorted([(F, 0), (M, 2), (UNKNOWN, 3), (NONE, 4)])


@pytest.mark.parametrize(
    "line",
    [b"", b"F", b"F,A,B", b"F,A,", b"F,A\0", b"F,\xff", b"F\r,A", b"F,A\r\r", b"\r", b",,", b"F,A" + b"x" * 2**22],
    ids=lambda line: repr(line[:9]),
)
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_malformed_line_is_one_unknown_record(file: Path, line: bytes, end: bytes) -> None:
    """Whatever is wrong with a line, it counts once, all unknown, and its neighbours are untouched."""
    content = end.join([b"sex,town", b"F,A", line, b"M,B", b""])
    assert rows(file, content) == sorted([(F, 0), (UNKNOWN, 3), (M, 1)])


@pytest.mark.parametrize(
    "content", [b"sex,town\nF,A\nM,B", b"sex,town\r\nF,A\r\nM,B\r\n", b"\xef\xbb\xbfsex,town\nF,A\nM,B\n"]
)
def test_line_ends_and_byte_order_mark(file: Path, content: bytes) -> None:
    """LF or CRLF; the last line end is optional; a mark before the header is not part of a name."""
    assert rows(file, content) == [(F, 0), (M, 1)]


@pytest.mark.parametrize("content", [b"sex,town", b"sex,town\n", b"id,town,sex\r\n"])
def test_a_header_alone_has_no_records(file: Path, content: bytes) -> None:
    """With and without its line end; it is read as any file. A blank line behind it is a record as every line is."""
    source = CsvSource(path=file)
    assert rows(file, content) == [] and source.has_header_alone(["town", "sex"])
    assert not source.has_header_alone(["sex", "age"])  # it may be a record
    assert rows(file, content.rstrip() + b"\n\n") == [(UNKNOWN, 3)] and not source.has_header_alone(["sex"])


@pytest.mark.parametrize("options", [{}, {"encoding": "utf-16"}])
def test_a_file_without_a_byte_is_called_empty(file: Path, options: dict[str, object]) -> None:
    """Where its first line was to name the columns; with `columns` it has no records."""
    with pytest.raises(DataError, match=r"x\.csv is empty"):
        rows(file, b"", **options)
    assert rows(file, b"", columns=["sex", "town"]) == []


WIDE = Domain.from_sizes(dict.fromkeys(("age", "sex", "town", "job"), 2))


@pytest.mark.parametrize(
    ("first", "said"),
    [
        ("age,sex,towm,job", "has no column 'town'; for the owner"),
        ("age,sex,town,SECRET", "has no column 'job'; for the owner"),
        ("age,sex,town,job,sex", "has column 'sex' more than once"),
        ("age,sex,SECRET,SECRET", "does not name each of"),
        ("SECRET,,3,4", "does not name each of"),
    ],
)
def test_a_line_that_names_most_columns_is_a_header(file: Path, first: str, said: str) -> None:
    """What is wrong with it is said, as headers are public; of other lines, which may be records, nothing is."""
    with pytest.raises(DataError) as caught:
        rows(file, f"{first}\n1,1,1,1\n".encode(), WIDE)
    assert said in str(caught.value) and "SECRET" not in str(caught.value)


def test_an_empty_line_is_a_null_in_a_file_of_one_column(file: Path) -> None:
    """There it is an empty field, as any other reader has it."""
    one = DOMAIN.subset(["sex"])
    assert rows(file, b"sex\nF\n\nM\na,b\n", one) == [(F,), (M,), (UNKNOWN,), (NONE,)]


def test_a_byte_order_mark_means_the_same_wherever_a_block_starts(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pyarrow strips the mark at the start of every buffer: one line's length would decide what another one means."""
    lines = b"F,A\n\xef\xbb\xbfF,B\n"
    expected = sorted([(F, 0), (UNKNOWN, 1)])
    assert rows(file, b"sex,town\n" + lines) == expected
    monkeypatch.setattr(module, "MAX_LINE", 8)
    assert rows(file, lines[4:] + lines[:4], columns=["sex", "town"]) == expected


def test_quotes_are_read_unless_they_are_said_to_be_letters(file: Path) -> None:
    """On, as nobody has to say: RFC 4180 within one line. Off: a quoted value is not the label, an open quote ends with
    its field."""
    content = b'sex,town\n"F","A"\n"M,B\nM,"B"\n'
    assert rows(file, content) == sorted([(F, 0), (UNKNOWN, 3), (M, 1)])
    assert rows(file, content, quoting=False) == sorted([(UNKNOWN, 3), (UNKNOWN, 1), (M, 3)])


@pytest.mark.parametrize("line", [b'"F,A', b'"F"x,A', b'F","A', b'"F","A', b'"F,\nA"', b'""F,A', b'F,"A""'])
def test_a_misquoted_line_swallows_no_other(file: Path, line: bytes) -> None:
    """With quoting on too, quotes out of order cost their own line (both halves, if it holds a line end) only."""
    lines = line.count(b"\n") + 1
    content = b"sex,town\nF,A\n" + line + b"\nM,B\n"
    assert rows(file, content, quoting=True) == sorted([(F, 0), *[(UNKNOWN, 3)] * lines, (M, 1)])


@pytest.mark.parametrize("text", ['5" pipe', 'F"', 'F""', 'x"F"', 'the "F"'])
def test_quotes_inside_of_a_field_without_quotes_are_letters(file: Path, text: str) -> None:
    """As Python, pandas and Arrow read them: `5" pipe` costs nobody a record. Beside a field in quotes as well."""
    domain = Domain([Attribute.of_labels(name, [text, "a,b"], unknown="?") for name in ("p", "q")])
    assert next(csv.reader([f'"a,b",{text}'])) == ["a,b", text]
    assert rows(file, f'p,q\n"a,b",{text}\n{text},{text}\n'.encode(), domain) == [(0, 0), (1, 0)]


FIELD = st.text(alphabet="ab,\"' é", max_size=4)


@settings(deadline=None)
@given(st.lists(st.lists(FIELD, min_size=2, max_size=2), min_size=1, max_size=6))
def test_quoted_files_read_as_python_reads_them(
    tmp_path_factory: pytest.TempPathFactory, records: list[list[str]]
) -> None:
    """What csv.writer writes, quotes, delimiters and all, is read back exactly."""
    texts = sorted({text for record in records for text in record} - {""}) or ["a"]
    domain = Domain(Attribute.of_labels(name, texts, unknown="UNKNOWN", null="NONE") for name in ("p", "q"))
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([["p", "q"], *records])
    expected = sorted(
        tuple(domain[name].code(text) for name, text in zip("pq", record, strict=True)) for record in records
    )
    path = tmp_path_factory.mktemp("csv") / "x.csv"
    assert rows(path, buffer.getvalue().encode(), domain, quoting=True) == expected


def test_a_quoted_header_asks_for_quoting(file: Path) -> None:
    """Values in quotes would all be unknown, and paid for."""
    with pytest.raises(DataError, match=r"read with quotes, the first line names .* path = \"[^,]*\" }$"):
        rows(file, b'"sex","town"\n"F","A"\n', quoting=False)
    assert rows(file, b'"sex",town\n"F","A"\nF,A\n') == [(F, 0), (F, 0)]


def test_delimiter_and_named_columns(file: Path) -> None:
    """Another delimiter; a file without header, whose first line is then a record."""
    assert rows(file, b"F\tA\nM\tB\n", delimiter="\t", columns=["sex", "town"]) == [(F, 0), (M, 1)]


def test_gzip_reads_the_same(tmp_path: Path) -> None:
    """Also when it was written in several members."""
    path = tmp_path / "x.csv.gz"
    assert rows(path, gzip.compress(b"sex,town\nF,") + gzip.compress(b"A\nM,B\n")) == [(F, 0), (M, 1)]


def planted(error: pytest.ExceptionInfo[BaseException]) -> bool:
    chain = [error.value, error.value.__cause__, error.value.__context__]
    return any("SECRET" in str(link) for link in chain if link is not None)


FIRST_LINES = {
    b"\nSECRET": "is empty",
    b"SECRET1,SECRET2\n": "no column",
    b"sex,town\rF,SECRET\r": "lines ending in LF",
    b"sex\0SECRET,town\n": "CSV",
    b"sex,\xffSECRET\n": "UTF-8",
    b"sex,towm\nSECRET,SECRET\n": "no column 'town'",
    b"town,SECRET,F": "no column 'sex'",
    b"sex,town,sex\nSECRET,a,b\n": "more than once",
    b'"sex","town"\n"SECRET","a"\n': "quoting = false takes for letters",
    b"S" * 2**22 + b"SECRET,F\n": "does not name columns",
    b'"' + b"SECRET" * 30_000 + b"\n": "no column",  # more than the csv module takes for a field
}


@pytest.mark.parametrize("quoting", [False, True])
def test_one_sentence_refuses_every_first_line(file: Path, quoting: bool) -> None:
    """It may be a record: neither its cells nor what is wrong with it show, not even which wanted name it holds."""
    said = set()
    for content in FIRST_LINES:
        if content.startswith((b'"sex","town"', b"sex,town,")):  # it names both columns, so it is no record
            continue
        with pytest.raises(DataError, match="'sex', 'town'") as caught:
            rows(file, content, quoting=quoting)
        assert not planted(caught)
        said.add(str(caught.value))
    assert len(said) == 1 and str(file) in said.pop()


@pytest.mark.parametrize("content", FIRST_LINES, ids=lambda content: repr(content[:12]))
def test_its_owner_may_see_what_is_wrong_with_a_first_line(file: Path, content: bytes) -> None:
    """`names` and `raw_batches`, which only validate asks for, say why; no record is quoted even so."""
    file.write_bytes(content)
    with pytest.raises(DataError, match=FIRST_LINES[content]) as caught:
        CsvSource(path=file, quoting=False).raw_batches(DOMAIN.names)
    assert not planted(caught)


def test_a_long_list_of_columns_is_cut_short(tmp_path: Path) -> None:
    """A census has hundreds."""
    path = tmp_path / "x.csv"
    path.write_text("x\n")
    sizes = Domain.from_sizes({f"c{number}": 2 for number in range(300)})
    with pytest.raises(DataError, match=r"'c0', .*'c19', \.\.\. \(300 in all\)"):
        CsvSource(path=path).batches(sizes, sizes.names)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """Missing, a folder, or not gzip: DataError with the public reason."""
    with pytest.raises(DataError, match="No such file"):
        next(CsvSource(path=tmp_path / "no.csv").batches(DOMAIN, ["sex"]))
    with pytest.raises(DataError, match=r"Is a directory|denied"):
        next(CsvSource(path=tmp_path).batches(DOMAIN, ["sex"]))
    broken = tmp_path / "x.csv.gz"
    broken.write_bytes(b"sex,town\nF,A\n")
    with pytest.raises(DataError, match="gzipped CSV"):
        CsvSource(path=broken).batches(DOMAIN, ["sex"])
    broken.write_bytes(gzip.compress(b"sex,town\nF,A\n" * 10000)[:-30])
    with pytest.raises(DataError, match="gzipped CSV"):
        list(CsvSource(path=broken).batches(DOMAIN, ["sex"]))


@pytest.mark.parametrize("delimiter", ["", ",,", '"', "\n", "é", "1", "a", 7])
def test_a_delimiter_is_one_character(delimiter: object) -> None:
    """Anything else is refused where it is written."""
    with pytest.raises(OptionError, match="delimiter"):
        CsvSource(path="x.csv", delimiter=delimiter)


@pytest.mark.parametrize(
    ("name", "value"), [("quoting", "yes"), ("columns", "sex,town"), ("columns", [1]), ("columns", [])]
)
def test_options_are_checked(name: str, value: object) -> None:
    """A text is no flag, and one text is no list of names."""
    with pytest.raises(OptionError, match=name):
        CsvSource(path="x.csv", **{name: value})


def test_the_component_is_made_from_plain_options(file: Path) -> None:
    """As a specification file gives them."""
    file.write_bytes(b"F;A\n")
    source = make("source", "csv", path=str(file), delimiter=";", columns=["sex", "town"])
    assert next(source.batches(DOMAIN, ["town"]))[0].tolist() == [0]


def test_a_long_file_is_read_in_many_blocks(file: Path) -> None:
    """Nothing is lost between blocks of the real size."""
    file.write_bytes(b"sex,town\n" + b"F,A\nM,B\nM,A\n" * 600_000)
    table = count(as_source(file), Structure(DOMAIN, [("sex", "town")])).tables["sex", "town"]
    assert table[F, 0] == table[M, 1] == table[M, 0] == 600_000 and table.sum() == 1_800_000

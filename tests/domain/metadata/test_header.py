"""The first line of a CSV file: names and dialect, and never a word of what may be a record."""

import gzip

import pytest

from dpgm_core.domain.domain_files import MAX_LINE, Header, read_header
from dpgm_core.errors import DataError


def header(path, content):
    path.write_bytes(content)
    return read_header(path)


def wide(*names):
    return Header(names=names, delimiter=";", encoding="utf-16")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"a,b c\n1,2\n", Header(names=("a", "b c"))),
        (b"a;b,c;d\r\n1;2;3\n", Header(names=("a", "b,c", "d"), delimiter=";")),
        (b"a\tb", Header(names=("a", "b"), delimiter="\t")),
        (b"a|b\n", Header(names=("a", "b"), delimiter="|")),
        (b"alone\n", Header(names=("alone",))),
        (b"\xef\xbb\xbfa,b\n", Header(names=("a", "b"))),
        (b'"a;1";"b"\n', Header(names=("a;1", "b"), delimiter=";", quoting=True)),
        (b"a, b,c\n", Header(names=("a", "b", "c"), skip_blanks=True)),
        ("größe;b\n".encode("latin-1"), Header(names=("größe", "b"), delimiter=";", encoding="cp1252")),
        ("größe,Übung\n".encode(), Header(names=("größe", "Übung"))),
        ("\ufeffa;\u0a0ab;c\r\n\u0a0a".encode("utf-16-le"), wide("a", "\u0a0ab", "c")),
        ("\ufeffa;\u0a0ab;\u0a00c\n".encode("utf-16-be"), wide("a", "\u0a0ab", "\u0a00c")),
    ],
)
def test_names_and_dialect(tmp_path, line, expected):
    assert header(tmp_path / "x.csv", line) == expected


def test_gzipped_files_are_read(tmp_path):
    assert header(tmp_path / "x.csv.gz", gzip.compress(b"a,b\n1,2\n")).names == ("a", "b")


@pytest.mark.parametrize("line", [
    b"planted,39,State-gov\n", b"planted,-1.5e3\n", b"planted,2024-01-31\n", b"planted,12:30\n", b"planted,planted\n",
    b"planted,,x\n", b"\n", b"", b"planted\0,x\n", b"planted\rx,y\n", b"planted\x81\n",
    "\ufeffplanted".encode("utf-16-le") + b"\xd8\n\0", b"planted," + b"x" * (MAX_LINE + 1),
    b'planted,"' + b"x" * 200_000 + b'"\n',
])  # fmt: skip
def test_a_line_that_looks_like_a_record_is_refused_unquoted(tmp_path, line):
    with pytest.raises(DataError) as refused:
        header(tmp_path / "x.csv", line)
    error = refused.value
    while error is not None:
        assert "planted" not in repr(error) and "\n" not in str(error)
        error = error.__context__


def test_which_field_looks_like_a_value_is_not_told(tmp_path):
    told = set()
    for line in (b"a,1,b\n", b"a,,b\n", b"a,b,b\n"):
        with pytest.raises(DataError) as refused:
            header(tmp_path / "x.csv", line)
        told.add(str(refused.value))
    assert len(told) == 1


def test_years_are_names_if_somebody_says_so(tmp_path):
    """Wide tables have a column for each year; empty and equal names stay refused, as no run could tell them apart."""
    (tmp_path / "x.csv").write_bytes(b"id;2018;2019-01-01\n1;a;b\n")
    with pytest.raises(DataError, match="say --first-line-is-names"):
        read_header(tmp_path / "x.csv")
    assert read_header(tmp_path / "x.csv", is_names=True).names == ("id", "2018", "2019-01-01")
    for line in (b"2018;2018\n", b"2018;;id\n"):
        (tmp_path / "x.csv").write_bytes(line)
        with pytest.raises(DataError, match="does not name columns"):
            read_header(tmp_path / "x.csv", is_names=True)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"2018;;id\n", "fields without a name: number 2; write a name"),
        (b"a,b,a,b,a,b,c\n", "fields that repeat a name: number 3, 4, 5, ...; write a name"),
    ],
)
def test_names_that_are_missing_or_repeated_are_counted_once_the_line_is_said_to_be_names(tmp_path, line, says):
    """Else the line may be a record, and nothing of it is said; the advice then covers all reasons."""
    (tmp_path / "x.csv").write_bytes(line)
    with pytest.raises(DataError, match=says):
        read_header(tmp_path / "x.csv", is_names=True)
    with pytest.raises(DataError, match="write those that are missing or repeated into the file, and if"):
        read_header(tmp_path / "x.csv")


def test_what_stands_behind_the_first_line_changes_nothing(tmp_path):
    expected = header(tmp_path / "x.csv", b"a,b\n1,2\n")
    for records in (b"", b"\xff\xfe\0\r\r", b'"""\n;;;;;;;\n', b"1;2;3\n" * 1000):
        assert header(tmp_path / "x.csv", b"a,b\n" + records) == expected


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "x.csv.gz").write_bytes(b"planted,b\n")
    (tmp_path / "y.csv.gz").write_bytes(gzip.compress(b"planted,b\n" * 100)[:10] + b"\xff" * 50)
    for path in (tmp_path / "none.csv", tmp_path, tmp_path / "x.csv.gz", tmp_path / "y.csv.gz"):
        with pytest.raises(DataError, match="cannot read") as refused:
            read_header(path)
        assert "planted" not in str(refused.value)


@pytest.mark.parametrize(
    ("line", "encoding", "names"),
    [
        (b"a,b\n", "cp1252", ("a", "b")),
        ("größe,b\n".encode("latin-1"), "latin-1", ("größe", "b")),
        ("größe,b\n".encode("utf-16-be"), "utf-16-be", ("größe", "b")),
        ("a,\u0a0ab\n".encode("utf-16-be"), "utf-16", ("a", "\u0a0ab")),
        (b"\xef\xbb\xbfa,b\n", "utf-8", ("a", "b")),
    ],
)
def test_an_encoding_can_be_stated(tmp_path, line, encoding, names):
    """It is that of the lines behind the first one, whose letters may fit several."""
    (tmp_path / "x.csv").write_bytes(line)
    header = read_header(tmp_path / "x.csv", encoding=encoding)
    assert (header.names, header.encoding) == (names, encoding)


@pytest.mark.parametrize(
    ("line", "encoding", "says"),
    [
        (b"\xef\xbb\xbfplanted,b\n", "cp1252", "begins with the mark of UTF-8 and is not in cp1252"),
        ("gr\xf6\xdfe,planted\n".encode("latin-1"), "utf-8", "is not in utf-8"),
        (b"planted,b\n", "klingon", "is not in klingon"),
    ],
)
def test_an_encoding_that_does_not_fit_is_refused(tmp_path, line, encoding, says):
    (tmp_path / "x.csv").write_bytes(line)
    with pytest.raises(DataError, match=says) as refused:
        read_header(tmp_path / "x.csv", encoding=encoding)
    assert "planted" not in str(refused.value)

"""CSV: what a line is, what it means in each dialect and encoding, and that nothing of it reaches a message."""

import csv
import gzip
import io
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpgm_core import Attribute, DataError, Domain, OptionError, make
from dpgm_core.sources import csv as module
from dpgm_core.sources.csv import (
    ENCODINGS,
    CsvSource,
    Dialect,
    as_utf8,
    malformed_lines,
    unpadded,
    whole_lines,
    without,
)

DOMAIN = Domain(
    [
        Attribute.of_labels("sex", ["F", "M"], unknown="?", null="none"),
        Attribute.of_labels("town", ["A", "B", "Zürich"], unknown="?", null="none"),
    ]
)
F, M, UNKNOWN, NONE = range(4)


def rows(path, content, domain=DOMAIN, **options):
    path.write_bytes(content)
    found = []
    for codes in CsvSource(path=path, **options).batches(domain, domain.names):
        assert [part.dtype for part in codes] == [np.uint8] * len(domain)
        found += zip(*(part.tolist() for part in codes), strict=True)
    return sorted(found)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "x.csv"


@pytest.mark.parametrize(
    "line",
    [b"", b"F", b"F,A,B", b"F,A,", b"F,A\0", b"F,\xff", b"F\r,A", b"F,A\r\r", b"\r", b",,", b"F,A" + b"x" * 2**22],
    ids=lambda line: repr(line[:9]),
)
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_malformed_line_is_one_unknown_record(file, line, end):
    """Whatever is wrong with a line, it counts once, all unknown, and its neighbours are untouched."""
    content = end.join([b"sex,town", b"F,A", line, b"M,B", b""])
    assert rows(file, content) == sorted([(F, 0), (UNKNOWN, 3), (M, 1)])


@pytest.mark.parametrize(
    "content", [b"sex,town\nF,A\nM,B", b"sex,town\r\nF,A\r\nM,B\r\n", b"\xef\xbb\xbfsex,town\nF,A\nM,B\n"]
)
def test_line_ends_and_byte_order_mark(file, content):
    """LF or CRLF; the last line end is optional; a mark before the header is not part of a name."""
    assert rows(file, content) == [(F, 0), (M, 1)]


@pytest.mark.parametrize("content", [b"sex,town", b"sex,town\n", b"id,town,sex\r\n"])
def test_a_header_alone_has_no_records(file, content):
    """With and without its line end; it is read as any file. A blank line behind it is a record as every line is."""
    source = CsvSource(path=file)
    assert rows(file, content) == [] and source.has_header_alone(["town", "sex"])
    assert not source.has_header_alone(["sex", "age"])  # it may be a record
    assert rows(file, content.rstrip() + b"\n\n") == [(UNKNOWN, 3)] and not source.has_header_alone(["sex"])


@pytest.mark.parametrize("options", [{}, {"encoding": "utf-16"}])
def test_a_file_without_a_byte_is_called_empty(file, options):
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
def test_a_line_that_names_most_columns_is_a_header(file, first, said):
    """What is wrong with it is said, as headers are public; of other lines, which may be records, nothing is."""
    with pytest.raises(DataError) as caught:
        rows(file, f"{first}\n1,1,1,1\n".encode(), WIDE)
    assert said in str(caught.value) and "SECRET" not in str(caught.value)


def test_an_empty_line_is_a_null_in_a_file_of_one_column(file):
    """There it is an empty field, as any other reader has it."""
    one = DOMAIN.subset(["sex"])
    assert rows(file, b"sex\nF\n\nM\na,b\n", one) == [(F,), (M,), (UNKNOWN,), (NONE,)]


def test_a_byte_order_mark_means_the_same_wherever_a_block_starts(file, monkeypatch):
    """pyarrow strips the mark at the start of every buffer: one line's length would decide what another one means."""
    lines = b"F,A\n\xef\xbb\xbfF,B\n"
    expected = sorted([(F, 0), (UNKNOWN, 1)])
    assert rows(file, b"sex,town\n" + lines) == expected
    monkeypatch.setattr(module, "MAX_LINE", 8)
    assert rows(file, lines[4:] + lines[:4], columns=["sex", "town"]) == expected


def test_quotes_are_read_unless_they_are_said_to_be_letters(file):
    """As RFC 4180 within a line; else a quoted value is not the label, and an open quote ends with its field."""
    content = b'sex,town\n"F","A"\n"M,B\nM,"B"\n'
    assert rows(file, content) == sorted([(F, 0), (UNKNOWN, 3), (M, 1)])
    assert rows(file, content, quoting=False) == sorted([(UNKNOWN, 3), (UNKNOWN, 1), (M, 3)])


@pytest.mark.parametrize("line", [b'"F,A', b'"F"x,A', b'F","A', b'"F","A', b'"F,\nA"', b'""F,A', b'F,"A""'])
def test_a_misquoted_line_swallows_no_other(file, line):
    """With quoting on too, quotes out of order cost their own line (both halves, if it holds a line end) only."""
    lines = line.count(b"\n") + 1
    content = b"sex,town\nF,A\n" + line + b"\nM,B\n"
    assert rows(file, content, quoting=True) == sorted([(F, 0), *[(UNKNOWN, 3)] * lines, (M, 1)])


@pytest.mark.parametrize("text", ['5" pipe', 'F"', 'F""', 'x"F"', 'the "F"'])
def test_quotes_inside_of_a_field_without_quotes_are_letters(file, text):
    """As Python, pandas and Arrow read them: `5" pipe` costs nobody a record. Beside a field in quotes as well."""
    domain = Domain([Attribute.of_labels(name, [text, "a,b"], unknown="?") for name in ("p", "q")])
    assert next(csv.reader([f'"a,b",{text}'])) == ["a,b", text]
    assert rows(file, f'p,q\n"a,b",{text}\n{text},{text}\n'.encode(), domain) == [(0, 0), (1, 0)]


FIELD = st.text(alphabet="ab,\"' é", max_size=4)


@settings(max_examples=50)
@given(st.lists(st.lists(FIELD, min_size=2, max_size=2), min_size=1, max_size=6))
def test_quoted_files_read_as_python_reads_them(tmp_path_factory, records):
    texts = sorted({text for record in records for text in record} - {""}) or ["a"]
    domain = Domain(Attribute.of_labels(name, texts, unknown="UNKNOWN", null="NONE") for name in ("p", "q"))
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([["p", "q"], *records])
    expected = sorted(
        tuple(domain[name].code(text) for name, text in zip("pq", record, strict=True)) for record in records
    )
    path = tmp_path_factory.mktemp("csv") / "x.csv"
    assert rows(path, buffer.getvalue().encode(), domain, quoting=True) == expected


def test_a_quoted_header_asks_for_quoting(file):
    """Values in quotes would all be unknown, and paid for."""
    with pytest.raises(DataError, match=r"read with quotes, the first line names .* path = \"[^,]*\" }$"):
        rows(file, b'"sex","town"\n"F","A"\n', quoting=False)
    assert rows(file, b'"sex",town\n"F","A"\nF,A\n') == [(F, 0), (F, 0)]


def test_delimiter_and_named_columns(file):
    """Also as plain options of the component."""
    assert rows(file, b"F\tA\nM\tB\n", delimiter="\t", columns=["sex", "town"]) == [(F, 0), (M, 1)]
    source = make("source", "csv", path=str(file), delimiter="\t", columns=["sex", "town"])
    assert next(source.batches(DOMAIN, ["town"]))[0].tolist() == [0, 1]


def test_gzip_reads_the_same(tmp_path):
    """Also when it was written in several members."""
    path = tmp_path / "x.csv.gz"
    assert rows(path, gzip.compress(b"sex,town\nF,") + gzip.compress(b"A\nM,B\n")) == [(F, 0), (M, 1)]


def planted(error):
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
def test_one_sentence_refuses_every_first_line(file, quoting):
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
def test_its_owner_may_see_what_is_wrong_with_a_first_line(file, content):
    """`names` and `raw_batches`, which only validate asks for, say why; no record is quoted even so."""
    file.write_bytes(content)
    with pytest.raises(DataError, match=FIRST_LINES[content]) as caught:
        CsvSource(path=file, quoting=False).raw_batches(DOMAIN.names)
    assert not planted(caught)


def test_a_long_list_of_columns_is_cut_short(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("x\n")
    sizes = Domain.from_sizes({f"c{number}": 2 for number in range(300)})
    with pytest.raises(DataError, match=r"'c0', .*'c19', \.\.\. \(300 in all\)"):
        CsvSource(path=path).batches(sizes, sizes.names)


def test_files_that_cannot_be_read(tmp_path):
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
def test_a_delimiter_is_one_character(delimiter):
    """Anything else is refused where it is written."""
    with pytest.raises(OptionError, match="delimiter"):
        CsvSource(path="x.csv", delimiter=delimiter)


@pytest.mark.parametrize(
    ("name", "value"),
    [("quoting", "yes"), ("columns", "sex,town"), ("columns", [1]), ("columns", []), ("encoding", "utf8"),
     ("encoding", None), ("encoding", "UTF-16"), ("skip_blanks", "yes")],
)  # fmt: skip
def test_options_are_checked(name, value):
    """A text is no flag, one text is no list of names, and encodings are those that are listed, in their spelling."""
    with pytest.raises(OptionError, match=name):
        CsvSource(path="x.csv", **{name: value})


SIZES = Domain(
    [
        Attribute.of_labels("sex", ["F", "M"], unknown="?", null="none"),
        Attribute.of_labels("größe", ["A", "B", "Zürich"], unknown="?", null="none"),
    ]
)


read = partial(rows, domain=SIZES)
TEXT = "sex;größe\nF;Zürich\r\nM;B\n;\n"
CODES = sorted([(F, 2), (M, 1), (NONE, 4)])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "latin-1", "cp1252"])
def test_every_encoding_gives_the_same_codes(file, encoding):
    content = TEXT.encode(encoding)
    said = {"utf-8-sig": "utf-8"}.get(encoding, encoding)
    assert read(file, content, delimiter=";", encoding=said) == CODES
    assert read(file.with_suffix(".csv.gz"), gzip.compress(content), delimiter=";", encoding=said) == CODES


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "cp1252"])
def test_the_codes_do_not_depend_on_where_blocks_are_cut(file, encoding, monkeypatch):
    """Blocks and reads of a few bytes, in the middle of letters and pairs; a spoiled line stays one unknown record."""
    text = "sex,größe\n" + "F,Zürich\nM,\U0001f600\n" * 3
    content = text.encode(encoding, "replace")
    spoiled = {"utf-16": b"\x00\xd8\n\0", "utf-16-be": b"\xdc\x00\0\n", "cp1252": b"F,\x81\n"}[encoding]
    whole = read(file, content + spoiled + content[-2:], encoding=encoding)
    for block in (9, 10, 11, 13):
        monkeypatch.setattr(module, "MAX_LINE", 60 + block)
        monkeypatch.setattr(module, "_READ", block)
        assert read(file, content + spoiled + content[-2:], encoding=encoding) == whole
    assert whole.count((F, 2)) == 3 and whole.count((M, 3)) == 3 and whole.count((UNKNOWN, 3)) == 2


def test_blanks_at_the_start_of_fields_are_skipped_if_said(file):
    """In names, values and before quotes; inside quotes and behind values they stay."""
    content = ' sex,  größe\n F, A\nM,  "B"\nM ," B"\n , \n'.encode()
    expected = sorted([(F, 0), (M, 1), (UNKNOWN, 3), (NONE, 4)])
    assert read(file, content.replace(b'," B"', b",x"), skip_blanks=True, quoting=True) == expected
    kept = read(file, b" sex, gr\xc3\xb6\xc3\x9fe\nF, A\n", columns=["sex", "größe"])
    assert kept == [(F, 3), (UNKNOWN, 3)]
    keys = [
        key.to_pylist()
        for _, key in CsvSource(path=file, skip_blanks=True, columns=["sex", "id"]).keyed_batches(SIZES, ["sex"], "id")
    ]
    assert keys == [[b"gr\xc3\xb6\xc3\x9fe", b"A"]]


@given(st.lists(st.text(alphabet='a," ', max_size=6), max_size=6), st.booleans())
def test_blanks_of_a_line_are_its_own(texts, quoting):
    """The same alone and among others."""
    dialect = Dialect(quoting=quoting, skip_blanks=True)
    each = [text.encode() + b"\n" for text in texts]
    assert unpadded(b"".join(each), dialect) == b"".join(unpadded(line, dialect) for line in each)


SAID = {
    "delimiter ;": ("sex;größe\n".encode(), 'delimiter = ";" }', "with ';' between fields"),
    "tab": ("sex\tgröße\n".encode(), r'delimiter = "\t" }', r"with '\t' between fields"),
    "utf-16": ("sex,größe\n".encode("utf-16"), 'encoding = "utf-16" }', "in UTF-16"),
    "utf-16 without mark": ("sex,größe\n".encode("utf-16-be"), 'encoding = "utf-16" }', "in UTF-16"),
    "cp1252": ("id;sex;größe\n".encode("cp1252"), 'delimiter = ";", encoding = "cp1252" }', "in CP1252, with ';'"),
    "a tab within quotes": ('"größe"\tsex\n'.encode(), r'delimiter = "\t" }', r"with '\t' between fields"),
    "blanks": ("sex, größe\n".encode(), "skip_blanks = true }", "without blanks before names"),
    "all": (
        '"sex"; "größe"\n'.encode("utf-16"),
        'delimiter = ";", encoding = "utf-16", skip_blanks = true }',
        "in UTF-16, with ';' between fields, without blanks before names",
    ),
}


@pytest.mark.parametrize("case", SAID)
def test_a_header_in_another_dialect_is_answered_with_the_line_to_write(file, case, monkeypatch):
    """The exact line, from the first line alone: the same whatever records follow; and what it says reads the file."""
    content, ending, how = SAID[case]
    monkeypatch.chdir(file.parent)
    said = set()
    for records in (b"", b"SECRET;1\nSECRET\t2\n", b"F,A\n" * 9):
        with pytest.raises(DataError) as caught:
            read(Path("x.csv"), content + records)
        said.add(str(caught.value))
    (message,) = said
    assert message.startswith(f"x.csv: read {how}") and "SECRET" not in message
    assert message.endswith(f'the first line names the columns; say data = {{ source = "csv", path = "x.csv", {ending}')
    assert CsvSource(path=file).fitting(SIZES.names) is not None


def test_a_path_in_a_folder_is_spelled_out():
    """A spec's paths are relative to the spec, which a source knows nothing of."""
    assert Dialect(quoting=False).stated(Path("x.csv")).endswith("quoting = false }")  # what is not the default
    said = Dialect(delimiter="\t").stated(Path("deep") / 'a"b.csv')
    assert said == f'data = {{ source = "csv", path = "{Path("deep").absolute()}/a\\"b.csv", delimiter = "\\t" }}'


def test_a_tab_may_be_written_as_backslash_and_t():
    """As on a command line."""
    assert CsvSource(path="x.csv", delimiter="\\t").delimiter == "\t"


def test_without_a_header_the_byte_order_is_stated(file):
    """Else the first record would decide what all others mean."""
    with pytest.raises(OptionError, match="utf-16-le or utf-16-be"):
        CsvSource(path="x.csv", encoding="utf-16", columns=["sex"])
    content = "F,A\nM,B\n".encode("utf-16-le")
    assert read(file, content, encoding="utf-16-le", columns=["sex", "größe"]) == [(F, 0), (M, 1)]
    assert read(file, b"\xff\xfe" + content, encoding="utf-16-le", columns=["sex", "größe"]) == [(M, 1), (UNKNOWN, 0)]


def decoded(raw, encoding):
    """The text; None where there is none."""
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError:
        return None


UNIT = st.sampled_from(
    [b"a\0", b"\n\0", b"\x00\xd8", b"\x00\xdc", b"\r\0", b"\0\0", b"\xff\xfe", b"\x0a\x0a", b"\xe9\0"]
)


@given(st.lists(UNIT, max_size=12), st.sampled_from([b"", b"a"]), st.integers(1, 5))
@example([b"\x00\xd8", b"\n\0"], b"", 1)  # half a pair, then a line end: the line ends there
def test_each_line_of_utf_16_is_decoded_by_itself(units, half, read):
    """As many lines as there are units 0x000A, each with its own text or, by Python's own decoder, with none."""
    lines = [b""]
    for unit in [*units, *([half] if half else [])]:
        if unit == b"\n\0":
            lines.append(b"")
        else:
            lines[-1] += unit
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_READ", read)
        found = as_utf8(io.BytesIO(b"".join(units) + half), "utf-16-le").read()
    assert [decoded(line, "utf-8") for line in found.split(b"\n")] == [decoded(line, "utf-16-le") for line in lines]


@given(st.binary(max_size=40), st.sampled_from(["latin-1", "cp1252"]), st.integers(1, 9))
def test_each_line_of_single_bytes_is_decoded_by_itself(raw, encoding, read):
    """Five bytes are no letters of cp1252, and spoil the line that they are in."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_READ", read)
        found = as_utf8(io.BytesIO(raw), encoding).read()
    expected = [decoded(line, encoding) for line in raw.split(b"\n")]
    assert [decoded(line, "utf-8") for line in found.split(b"\n")] == expected


@pytest.mark.parametrize("mark", [b"\xff\xfe", b"\xfe\xff", b"", b"big"])
def test_the_byte_order_is_that_of_the_mark_or_of_the_first_letter(mark):
    """A mark stays, as that of UTF-8."""
    big = mark in (b"\xfe\xff", b"big")
    text = "sex;town\nF;Zürich\n".encode("utf-16-be" if big else "utf-16-le")
    found = as_utf8(io.BytesIO((b"" if mark == b"big" else mark) + text), "utf-16").read()
    assert found.removeprefix(b"\xef\xbb\xbf").decode() == "sex;town\nF;Zürich\n"


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_an_empty_file_is_empty(encoding):
    inner = io.BytesIO(b"")
    with as_utf8(inner, encoding) as stream:
        assert stream.read() == b""
    assert inner.closed


@given(st.lists(st.integers(0, 40), max_size=12), st.integers(1, 30), st.booleans())
def test_blocks_hold_whole_lines(lengths, longest, finished):
    """For every block size: all lines that fit, in order, and the right number of those that do not."""
    lines = [bytes([65 + number % 26]) * length for number, length in enumerate(lengths)]
    content = b"\n".join(lines) + (b"\n" if finished and lines else b"")
    expected = content.split(b"\n")
    if not expected[-1]:
        expected.pop()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_LINE", longest)
        blocks = list(whole_lines(io.BytesIO(content)))
    assert all(not block or block.endswith(b"\n") for block, _ in blocks)
    assert b"".join(block for block, _ in blocks) == b"".join(line + b"\n" for line in expected if len(line) <= longest)
    assert sum(number for _, number in blocks) == sum(len(line) > longest for line in expected)


@given(st.lists(st.text(alphabet='a,"\r\0\x85\u2028é', max_size=5), max_size=8), st.booleans())
def test_a_line_is_malformed_by_itself(texts, quoting):
    """The verdict on a line is the same alone and among others, and dropping the bad lines leaves the others."""
    lines = [text.encode() for text in texts]
    block = b"".join(line + b"\n" for line in lines)
    bad = malformed_lines(block, b",", quoting)
    assert bad == [number for number, line in enumerate(lines) if malformed_lines(line + b"\n", b",", quoting)]
    assert without(block, bad) == b"".join(line + b"\n" for number, line in enumerate(lines) if number not in bad)

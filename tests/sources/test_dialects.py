"""Dialects of CSV files: what is read, what is refused in which words, and what blanks are."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DataError, OptionError
from dpgm_core.sources import csv as lines
from dpgm_core.sources import csv as transcoding
from dpgm_core.sources.csv import CsvSource, Dialect, unpadded

DOMAIN = Domain(
    [
        Attribute.of_labels("sex", ["F", "M"], unknown="?", null="none"),
        Attribute.of_labels("größe", ["A", "B", "Zürich"], unknown="?", null="none"),
    ]
)
F, M, UNKNOWN, NONE = range(4)


def rows(path: Path, content: bytes, **options: object) -> list[tuple[int, ...]]:
    path.write_bytes(content)
    found: list[tuple[int, ...]] = []
    for codes in CsvSource(path=path, **options).batches(DOMAIN, DOMAIN.names):
        found += zip(*(part.tolist() for part in codes), strict=True)
    return sorted(found)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "x.csv"


TEXT = "sex;größe\nF;Zürich\r\nM;B\n;\n"
CODES = sorted([(F, 2), (M, 1), (NONE, 4)])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "latin-1", "cp1252"])
def test_every_encoding_gives_the_same_codes(file: Path, encoding: str) -> None:
    """With and without a byte order mark, gzipped or not."""
    content = TEXT.encode(encoding)
    said = {"utf-8-sig": "utf-8"}.get(encoding, encoding)
    assert rows(file, content, delimiter=";", encoding=said) == CODES
    assert rows(file.with_suffix(".csv.gz"), gzip.compress(content), delimiter=";", encoding=said) == CODES


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "cp1252"])
def test_the_codes_do_not_depend_on_where_blocks_are_cut(
    file: Path, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks and reads of a few bytes, in the middle of letters and pairs; a spoiled line stays one unknown record."""
    text = "sex,größe\n" + "F,Zürich\nM,\U0001f600\n" * 3
    content = text.encode(encoding, "replace")
    spoiled = {"utf-16": b"\x00\xd8\n\0", "utf-16-be": b"\xdc\x00\0\n", "cp1252": b"F,\x81\n"}[encoding]
    whole = rows(file, content + spoiled + content[-2:], encoding=encoding)
    for block in (9, 10, 11, 13):
        monkeypatch.setattr(lines, "MAX_LINE", 60 + block)
        monkeypatch.setattr(transcoding, "_READ", block)
        assert rows(file, content + spoiled + content[-2:], encoding=encoding) == whole
    assert whole.count((F, 2)) == 3 and whole.count((M, 3)) == 3 and whole.count((UNKNOWN, 3)) == 2


def test_blanks_at_the_start_of_fields_are_skipped_if_said(file: Path) -> None:
    """In names, values and before quotes; inside quotes and behind values they stay."""
    content = ' sex,  größe\n F, A\nM,  "B"\nM ," B"\n , \n'.encode()
    expected = sorted([(F, 0), (M, 1), (UNKNOWN, 3), (NONE, 4)])
    assert rows(file, content.replace(b'," B"', b",x"), skip_blanks=True, quoting=True) == expected
    kept = rows(file, b" sex, gr\xc3\xb6\xc3\x9fe\nF, A\n", columns=["sex", "größe"])
    assert kept == [(F, 3), (UNKNOWN, 3)]
    keys = [
        key.to_pylist()
        for _, key in CsvSource(path=file, skip_blanks=True, columns=["sex", "id"]).keyed_batches(DOMAIN, ["sex"], "id")
    ]
    assert keys == [[b"gr\xc3\xb6\xc3\x9fe", b"A"]]


@settings(deadline=None)
@given(st.lists(st.text(alphabet='a," ', max_size=6), max_size=6), st.booleans())
def test_blanks_of_a_line_are_its_own(texts: list[str], quoting: bool) -> None:
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
def test_a_header_in_another_dialect_is_answered_with_the_line_to_write(
    file: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exact line, from the first line alone: the same whatever records follow; and what it says reads the file."""
    content, ending, how = SAID[case]
    monkeypatch.chdir(file.parent)
    said = set()
    for records in (b"", b"SECRET;1\nSECRET\t2\n", b"F,A\n" * 9):
        with pytest.raises(DataError) as caught:
            rows(Path("x.csv"), content + records)
        said.add(str(caught.value))
    (message,) = said
    assert message.startswith(f"x.csv: read {how}") and "SECRET" not in message
    assert message.endswith(f'the first line names the columns; say data = {{ source = "csv", path = "x.csv", {ending}')
    assert CsvSource(path=file).fitting(DOMAIN.names) is not None


def test_a_path_in_a_folder_is_spelled_out() -> None:
    """A spec's paths are relative to the spec, which a source knows nothing of."""
    assert Dialect(quoting=False).stated(Path("x.csv")).endswith("quoting = false }")  # what is not the default
    said = Dialect(delimiter="\t").stated(Path("deep") / 'a"b.csv')
    assert said == f'data = {{ source = "csv", path = "{Path("deep").absolute()}/a\\"b.csv", delimiter = "\\t" }}'


@pytest.mark.parametrize(
    ("option", "value"), [("encoding", "utf8"), ("encoding", None), ("encoding", "UTF-16"), ("skip_blanks", "yes")]
)
def test_options_are_checked(option: str, value: object) -> None:
    """Encodings are those that are listed, in their spelling."""
    with pytest.raises(OptionError, match=option):
        CsvSource(path="x.csv", **{option: value})


def test_a_tab_may_be_written_as_backslash_and_t() -> None:
    """As on a command line."""
    assert CsvSource(path="x.csv", delimiter="\\t").delimiter == "\t"


def test_without_a_header_the_byte_order_is_stated(file: Path) -> None:
    """Else the first record would decide what all others mean."""
    with pytest.raises(OptionError, match="utf-16-le or utf-16-be"):
        CsvSource(path="x.csv", encoding="utf-16", columns=["sex"])
    content = "F,A\nM,B\n".encode("utf-16-le")
    assert rows(file, content, encoding="utf-16-le", columns=["sex", "größe"]) == [(F, 0), (M, 1)]
    assert rows(file, b"\xff\xfe" + content, encoding="utf-16-le", columns=["sex", "größe"]) == [(M, 1), (UNKNOWN, 0)]

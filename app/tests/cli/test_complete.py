"""`dpgm complete`: files in and out, byte for byte where nothing was missing."""

import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest

import dpgm_core as dpgm

DOMAIN = dpgm.Domain.from_dict(
    {"age": {"type": "integer", "min": 0, "max": 99, "bins": 5}, "sex": ["F", "M"], "job": ['a "b"', "c;d"]}
)


@pytest.fixture
def typed(tmp_path):
    structure = dpgm.Structure.chain(DOMAIN)
    theta = np.random.default_rng(0).normal(size=structure.cells)
    dpgm.Model(structure, dpgm.Tables(structure, theta)).save(tmp_path / "t.dpgm")
    return tmp_path / "t.dpgm"


def test_what_stands_comes_out_byte_for_byte(typed, dpgm_command):
    """Quotes, blanks, line ends, a mark at the start, other columns; what is filled in has quotes if it must."""
    rows, full = typed.with_name("rows.csv"), typed.with_name("full.csv")
    lines = [b'id;age;"sex"\r\n', b'"x;""1";37; \r\n', b'2;"41";"F"\r\n', b" 3 ;;M\n", b"4;  ;"]
    rows.write_bytes(b"\xef\xbb\xbf" + b"".join(lines))
    code, out, err = dpgm_command("complete", typed, rows, "-o", full, "--seed", 1)
    assert code == 0 and "4 rows, 8 cells filled" in out
    assert "carried through, as the model does not know them: id" in err and "added, as ROWS lack them: job" in err
    assert "NOT COVERED by any guarantee" in err
    made = full.read_bytes().removeprefix(b"\xef\xbb\xbf").splitlines(keepends=True)
    assert made[0] == b'id;age;"sex";job\r\n'
    assert made[1].startswith(b'"x;""1";37;') and made[1][11:12] in b"FM" and made[1].endswith(b"\r\n")
    assert made[2].startswith(b'2;"41";"F";') and made[3].startswith(b" 3 ;") and made[3].endswith(b"\n")
    assert {line.rstrip().split(b";", 3)[3] for line in (made[2], made[3])} <= {b'"a ""b"""', b'"c;d"'}
    again = typed.with_name("again.csv")
    assert dpgm_command("complete", typed, full, "-o", again)[0] == 0
    assert again.read_bytes() == full.read_bytes()  # nothing is missing any more
    stamp = json.loads(typed.with_name("full.csv.dpgm.json").read_text())
    assert stamp["private"] is False and stamp["guarantee"].startswith("NOT COVERED")


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-16-le"])
def test_rows_in_another_encoding_keep_it(typed, dpgm_command, encoding):
    """What stands in them comes out byte for byte, with one mark of the order of bytes and each line's own end."""
    rows, full = typed.with_name("rows.csv"), typed.with_name("full.csv")
    given = 'id;age;sex;job\r\n"é;1";37;F;"c;d"\r\n€;;M;\n'
    rows.write_bytes(given.encode(encoding))
    words = ("--dialect", f"encoding={encoding}")
    if encoding == "cp1252":
        spec = typed.with_name("s.toml")
        data = f'{{ source = "csv", path = "{rows.name}", delimiter = ";", encoding = "cp1252", quoting = true }}'
        spec.write_text(
            f'data = {data}\nneighbours = "add-remove"\nbudget = {{ epsilon = 1 }}\n'
            "structure = { singletons = true }\n[domain.attributes.sex]\nlabels = ['F']\n"
        )
        words = ("--dialect", spec)
    assert dpgm_command("complete", typed, rows, "-o", full, "--seed", 1, *words)[0] == 0
    made = full.read_bytes()
    start = given[: given.index(";;M")].encode(encoding)
    assert made.startswith(start) and "\ufeff" not in made.decode(encoding).removeprefix("\ufeff")
    last = made.decode(encoding).splitlines()[-1].split(";", 3)
    assert last[0] == "€" and last[1].isdigit() and last[3] in ('"a ""b"""', '"c;d"')


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_typed_files_keep_their_types(typed, facts, suffix):
    """And given cells; JSON tells how many were filled in."""
    rows, full = typed.with_name(f"rows{suffix}"), typed.with_name(f"full{suffix}")
    table = pa.table({"age": pa.array([37, None, 5], pa.int16()), "sex": ["F", "M", None], "note": [1.5, None, 2]})
    if suffix == ".parquet":
        pyarrow.parquet.write_table(table, rows)
    else:
        with pyarrow.ipc.new_file(rows, table.schema) as writer:
            writer.write_table(table)
    said = facts("complete", typed, rows, "-o", full)
    assert (said["rows"], said["filled"]) == (3, {"age": 1, "sex": 1, "job": 3})
    assert (said["carried"], said["added"], said["private"]) == (["note"], ["job"], False)
    made = pyarrow.parquet.read_table(full) if suffix == ".parquet" else pyarrow.ipc.open_file(full).read_all()
    assert made.schema.types[:3] == table.schema.types and made["note"].equals(table["note"])
    assert made["age"].to_pylist()[::2] == [37, 5] and made["sex"].to_pylist()[:2] == ["F", "M"]
    assert json.loads(made.schema.metadata[b"dpgm"])["completed"] is True


def test_gzipped_and_empty_files(typed, dpgm_command):
    """A packed file becomes a plain one; a header without rows stays one."""
    rows, full = typed.with_name("rows.csv.gz"), typed.with_name("full.csv")
    rows.write_bytes(gzip.compress(b"sex\tage\nF\t\n"))
    assert dpgm_command("complete", typed, rows, "-o", full)[0] == 0
    assert full.read_bytes().startswith(b"sex\tage\tjob\nF\t")
    empty = typed.with_name("empty.csv")
    empty.write_text("sex,age,job\n")
    assert dpgm_command("complete", typed, empty, "-o", full)[0] == 0
    assert full.read_text() == "sex,age,job\n"


@pytest.mark.parametrize(
    ("encoding", "said", "start"),
    [
        ("utf-16-le", [], "\ufeff"), ("utf-16-be", [], "\ufeff"), ("utf-16-be", ["encoding=utf-16"], ""),
        ("cp1252", ["encoding=cp1252"], ""), ("latin-1", ["encoding=latin-1", "delimiter=;"], ""),
    ],
)  # fmt: skip
def test_files_in_other_encodings_stay_in_them(typed, encoding, said, start, ran):
    """Byte for byte, mark and letters that the encoding does not have; UTF-16 with a mark needs no word."""
    rows, full = typed.with_name("rows.csv"), typed.with_name("full.csv")
    spoiled = {"utf-16-le": b"\x00\xd8", "utf-16-be": b"\xd8\x00"}.get(encoding, b"\x81")
    parts = f'{start}größe;sex;job;age\r\n"ä', '";F;', ";7\r\n"
    head, middle, tail = (part.encode(encoding) for part in parts)
    rows.write_bytes(head + spoiled + middle + tail)
    words = [word for one in said for word in ("--dialect", one)]
    ran("complete", typed, rows, "-o", full, *words)
    made = full.read_bytes()
    assert made.startswith(head + spoiled + middle) and made.endswith(tail)
    job = made.removeprefix(head + spoiled + middle).removesuffix(tail).decode(encoding)
    assert job in ('"a ""b"""', '"c;d"')


@pytest.mark.parametrize(
    ("name", "content", "output", "message"),
    [
        ("r.csv", "sex,age\nF\n", "o.csv", "row 1 has 1 fields, and the first line 2"),
        ("r.csv", "sex,age\nF,3\nX,4\n", "o.csv", "row 2: its value of 'sex' is none that the model knows"),
        ("r.csv", "a,b\n1,2\n", "o.csv", "names no attribute of the model, which has age, sex, job"),
        ("r.csv", "", "o.csv", "names no attribute"),
        ("r.csv", "sex,sex\nF,F\n", "o.csv", "two columns 'sex'"),
        ("r.csv", "sex\nF\n", "o.parquet", "completed rows keep their format; end it in .csv"),
        ("r.xlsx", "sex\nF\n", "o.csv", "must end in .csv, .csv.gz"),
        ("r.parquet", "sex\nF\n", "o.parquet", "cannot be read as parquet"),
        ("r.csv.gz", "sex\nF\n", "o.csv", "cannot be read as CSV"),
    ],
)
def test_what_cannot_be_filled_is_refused(typed, refused, name, content, output, message):
    typed.with_name(name).write_text(content)
    assert message in refused("complete", typed, typed.with_name(name), "-o", typed.with_name(output))
    assert sorted(path.name for path in typed.parent.iterdir()) == sorted([name, "t.dpgm"])


def test_a_file_that_is_missing_or_taken(typed, refused):
    output = typed.with_name("o.csv")
    assert "cannot be read as CSV" in refused("complete", typed, typed.with_name("no.csv"), "-o", output)
    rows = typed.with_name("r.csv")
    rows.write_bytes("sex,größe\nF,ä\n".encode("cp1252"))
    assert "not UTF-8; use --dialect encoding=cp1252" in refused("complete", typed, rows, "-o", output)
    assert "nothing is replaced there" in refused("complete", typed, rows, "-o", rows)


def test_a_dialect_is_checked(typed, refused, dpgm_command):
    """What is no CSV has none; lines keep their ends; a delimiter that is said is taken, a spec's as well."""
    rows, output = typed.with_name("r.csv"), typed.with_name("o.csv")
    rows.write_text("sex;age;x,y\nF;;\n")
    pack = typed.with_name("r.parquet"), "-o", typed.with_name("o.parquet")
    assert "--dialect is for CSV" in refused("complete", typed, *pack, "--dialect", "delimiter=;")
    assert "keep their line ends" in refused("complete", typed, rows, "-o", output, "--dialect", "line_ends=crlf")
    assert "names no attribute" in refused("complete", typed, rows, "-o", output, "--dialect", "delimiter=,")
    spec = typed.with_name("spec.toml")
    spec.write_text(
        'neighbours = "add-remove"\nbudget = { epsilon = 1 }\ndomain = { a = 2 }\nstructure = { graph = "complete" }\n'
        'data = { source = "csv", path = "d.csv", delimiter = ";", encoding = "cp1252" }\n'
    )
    assert dpgm_command("complete", typed, rows, "-o", output, "--dialect", spec)[0] == 0
    assert output.read_text().startswith("sex;age;x,y;job\nF;")

"""Files: whole or not at all when written; when read, whatever is wrong is one ModelFileError; and hints by names."""

import contextlib
import io
import json
import os
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpgm.comparison.subjects import read_subject
from dpgm.interop import read_bif, read_uai
from dpgm.interop.uai_tasks import read_evidence, read_mar, read_pr
from dpgm.spec import read_spec
from dpgm.study.spec import load_study
from dpgm_core import (
    Budget,
    Domain,
    DpgmError,
    Ledger,
    Model,
    ModelFileError,
    PluginError,
    Structure,
    Tables,
    load_model,
    load_release,
)
from dpgm_core._util.files import (
    ANNEX_FILE,
    atomic_write,
    check_writable,
    hint_not_a_model,
    hint_not_a_spec,
    read_archive,
    write_archive,
)
from dpgm_core.domain import read_metadata
from dpgm_core.domain.formats.codebook import read_codebook
from dpgm_core.models.model_file import read_stamp
from dpgm_core.releases.labels import load_discovery
from dpgm_core.releases.release import member_names
from dpgm_core.sources import as_source

HOSTILE_ARRAYS = {
    "short": {"values": np.zeros(5)},
    "two-dimensional": {"values": np.zeros((2, 3))},
    "objects": {"values": np.array([{}] * 6, dtype=object)},
    "float32": {"values": np.zeros(6, np.float32)},
    "complex": {"values": np.zeros(6, complex)},
    "NaN": {"values": np.full(6, np.nan)},
    "infinite": {"values": np.full(6, np.inf)},
    "other name": {"other": np.zeros(6)},
    "two arrays": {"values": np.zeros(6), "more": np.zeros(6)},
    "no zip": b"\x93NUMPY",
    "empty": b"",
}


def test_the_sound_file_is_read_and_no_other_thing(tmp_path, sound, written, refused_file):
    """So each change below is what makes it hostile; what is not there, a folder or something else does not load."""
    path = written(tmp_path / "x.dpgm", sound)
    assert load_model(path).release.cost == load_release(path).cost == Budget.pure(1)
    (tmp_path / "folder.dpgm").mkdir()
    (tmp_path / "text.dpgm").write_text("hello")
    (tmp_path / "empty.dpgm").write_bytes(b"")
    for name in ("none.dpgm", "folder.dpgm", "text.dpgm", "empty.dpgm"):
        refused_file(tmp_path / name)


@pytest.mark.parametrize("key", HOSTILE_ARRAYS)
@pytest.mark.parametrize("name", ["tables.npz", "potentials.npz"])
def test_wrong_arrays_are_refused(tmp_path, sound, written, refused_file, npz, key, name):
    content = HOSTILE_ARRAYS[key]
    path = written(tmp_path / "x.dpgm", sound | {name: content if isinstance(content, bytes) else npz(**content)})
    with pytest.raises(ModelFileError):
        load_model(path)
    if name == "tables.npz":
        refused_file(path)


def test_a_header_that_promises_too_much_is_refused(tmp_path, sound, written, refused_file):
    """An .npy header of 10^12 numbers over no data: refused, whatever memory there is."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("values.npy", header.getvalue())
    refused_file(written(tmp_path / "x.dpgm", sound | {"tables.npz": inner.getvalue()}))


@pytest.mark.parametrize("content", [b"[]", b"null", b"{", b"[" * 10**5, b"\xff", b'{"a": NaN}', b""])
def test_documents_that_are_none_are_refused(tmp_path, sound, written, refused_file, content):
    refused_file(written(tmp_path / "x.dpgm", sound | {"model.json": content, "release.json": content}))


@pytest.mark.landing
def test_bombs_are_recognised(tmp_path, sound, written, refused_file, npz):
    """A document packed a thousandfold, by declared size; one whose header lies; and arrays no structure needs."""
    bomb = b'{"x": "' + b" " * (40 * 2**20) + b'"}'
    path = written(tmp_path / "x.dpgm", sound | {"model.json": bomb, "release.json": bomb})
    assert path.stat().st_size < 10**6
    refused_file(path)
    lying = path.read_bytes().replace(len(bomb).to_bytes(4, "little"), (100).to_bytes(4, "little"))
    (tmp_path / "y.dpgm").write_bytes(lying)
    refused_file(tmp_path / "y.dpgm")
    big = npz(values=np.zeros(10**7))
    refused_file(written(tmp_path / "z.dpgm", sound | {"tables.npz": big, "potentials.npz": big}))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_given_twice_is_refused(tmp_path, sound, written, refused_file):
    """Two readers could see two files."""
    path = written(tmp_path / "x.dpgm", sound)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("release.json", sound["release.json"])
        archive.writestr("model.json", sound["model.json"])
    refused_file(path)


def test_missing_members_and_strange_names(tmp_path, sound, written, refused_file):
    """A member short is refused; a stranger's member is neither read nor written anywhere."""
    for name in ("release.json", "tables.npz"):
        refused_file(written(tmp_path / f"{name}.dpgm", {key: sound[key] for key in sound if key != name}))
    path = written(tmp_path / "x.dpgm", sound | {"../outside": b"x", "/abs": b"x"})
    load_model(path)
    assert not (tmp_path.parent / "outside").exists()


@pytest.mark.parametrize("deep", [95, 101, 900])
def test_what_is_nested_too_deeply_to_be_walked_over_is_refused(tmp_path, sound, written, changed, deep):
    """Python reads it, and fails where it is written again or printed."""
    nested: object = 0
    for _ in range(deep):
        nested = [nested]
    document = changed(sound["model.json"], {("provenance", "x"): nested})
    path = written(tmp_path / "x.dpgm", sound | {"model.json": document})
    if deep < 100:
        load_model(path).save(tmp_path / "y.dpgm")
        return
    with pytest.raises(ModelFileError):
        load_model(path)
    with pytest.raises(ModelFileError, match="no form in a file"):
        write_archive(tmp_path / "y", {"d.json": {"x": nested}}, {})


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damaged_bytes_never_raise_anything_else(tmp_path, sound, written, data):
    path = written(tmp_path / "x.dpgm", sound, zipfile.ZIP_STORED)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.sampled_from([len(content), len(content) - 1, 9, 1000]))])
    for read in (load_model, load_release):
        try:
            read(path)
        except (ModelFileError, PluginError) as error:
            assert "\n" not in str(error)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_json_value_anywhere_is_refused_or_read(tmp_path, sound, written, data):
    """Any value of either document replaced by any JSON."""
    plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.just([]) | st.just({})
    name = data.draw(st.sampled_from(["model.json", "release.json"]))
    document = json.loads(sound[name])
    table = document
    while True:
        keys = list(table) if isinstance(table, dict) else list(range(len(table)))
        key = data.draw(st.sampled_from(keys))
        if isinstance(table[key], (dict, list)) and table[key] and data.draw(st.booleans()):
            table = table[key]
            continue
        table[key] = data.draw(plain)
        break
    path = written(tmp_path / "x.dpgm", sound | {name: json.dumps(document).encode()}, zipfile.ZIP_STORED)
    for read in (load_model, load_release):
        try:
            made = read(path)
            made.guarantee()
            repr(made)
        except (ModelFileError, PluginError) as error:
            assert "\n" not in str(error)


# --- memory ---------------------------------------------------------------------------------------------------------


def peak_of(read, path) -> int:
    """Bytes that reading takes at most, whatever comes of it."""
    tracemalloc.start()
    try:
        with contextlib.suppress(DpgmError):
            read(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def padded(document: bytes, size: int) -> bytes:
    """A JSON object with so many random letters more, so that it packs less."""
    noise = np.random.default_rng(0).choice(list(b"abcdefghijklmnopqrstuvwxyz0123456789"), size).astype(np.uint8)
    return document.rstrip()[:-1] + b', "pad": "' + noise.tobytes() + b'"}'


OBJECTS = {"objects": b'{"":0}', "lists": b"[[]]", "numbers": b"0.5", "texts": '"é"'.encode(), "commas": b'",,"'}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("key", OBJECTS)
@pytest.mark.parametrize("pad", [0, 250_000])
def test_memory_is_bounded_by_the_size_of_the_file(tmp_path, sound, written, key, pad):
    """A fifth of a megabyte made half a gigabyte of objects; 256 bytes for each byte and 64 MB is the most."""
    document = json.loads(sound["model.json"])
    document["provenance"]["x"] = "@"
    many = b"[" + b",".join([OBJECTS[key]] * (12 * 2**20 // (len(OBJECTS[key]) + 1))) + b"]"
    hostile = padded(json.dumps(document).encode().replace(b'"@"', many), pad)
    path = written(tmp_path / "x.dpgm", sound | {"model.json": hostile})
    size = path.stat().st_size
    assert size < 400_000
    assert peak_of(load_model, path) < 256 * size + 64 * 10**6


@pytest.mark.landing
def test_many_members_take_no_more_than_one(tmp_path, several_of, written):
    """A bound for each member would let a thousand releases take a thousand times as much."""
    path = written(tmp_path / "x.dpgm", several_of(200))
    assert peak_of(load_model, path) < 256 * path.stat().st_size + 64 * 10**6


@pytest.fixture
def several_of(sound, npz):
    """The members of a model of so many releases, each of which claims a domain and tables that pack well."""

    def make(count: int) -> dict[str, bytes]:
        document = json.loads(sound["release.json"])
        labels = [str(number) for number in range(350)]
        document["domain"]["attributes"] = {name: {"labels": labels, "unknown": "0", "null": "0"} for name in "ab"}
        release, tables = json.dumps(document).encode(), npz(values=np.zeros(350**2, np.int64))
        model = json.loads(sound["model.json"]) | {"releases": count}
        members = {"model.json": json.dumps(model).encode(), "potentials.npz": sound["potentials.npz"]}
        for number in range(1, count + 1):
            facts, values = member_names(number)
            members |= {facts: release, values: tables}
        return members

    return make


def test_members_that_share_their_bytes_are_refused(tmp_path, sound, written, refused_file):
    """Two names in the directory for one packed member: together they are larger than the file allows."""
    path = written(tmp_path / "x.dpgm", sound)
    content = path.read_bytes()
    end = content.rindex(b"PK\5\6")
    start = int.from_bytes(content[end + 16 : end + 20], "little")
    entry = content[start : content.index(b"PK\1\2", start + 4)]
    again = entry.replace(b"model.json", b"modem.json")
    assert again != entry
    head = content[:start] + content[start:end] + again
    tail = bytearray(content[end:])
    count = len(sound) + 1
    tail[8:12] = count.to_bytes(2, "little") * 2
    tail[12:16] = (end - start + len(again)).to_bytes(4, "little")
    path.write_bytes(head + bytes(tail))
    assert len(zipfile.ZipFile(path).namelist()) == count
    refused_file(path)
    with pytest.raises(ModelFileError, match="overlap"):
        load_model(path)


@pytest.mark.parametrize("how", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_other_ways_of_packing_are_refused(tmp_path, sound, written, refused_file, how):
    """An LZMA header says how much memory its reader takes, up to 4 GB."""
    refused_file(written(tmp_path / "x.dpgm", sound, how))


def test_what_would_grow_in_reading_is_refused(tmp_path, sound, written, refused_file, changed):
    """A zip inside of a zip packs twice; a few letters name millions of cliques."""
    inner = io.BytesIO()
    np.savez_compressed(inner, values=np.zeros(6))
    refused_file(written(tmp_path / "x.dpgm", sound | {"tables.npz": inner.getvalue()}))
    changes = {("structure",): {"graph": "complete", "order": 2}}
    members = {name: changed(sound[name], changes) for name in ("model.json", "release.json")}
    refused_file(written(tmp_path / "y.dpgm", sound | members))


def test_large_files_that_pack_well_are_read(tmp_path):
    """What `write_archive` writes is read, also labels that repeat so often that they would be taken for a bomb."""
    domain = Domain.from_sizes({f"attribute_{number}": 1000 for number in range(100)})
    structure = Structure(domain, [("attribute_0", "attribute_1"), ("attribute_2", "attribute_3")])
    model = Model(structure, Tables.zeros(structure), provenance={"note": ',"[{' * 10**6})
    model.save(tmp_path / "m.dpgm")
    assert load_model(tmp_path / "m.dpgm").structure == structure
    entry = {"labels": [str(number) for number in range(2000)], "unknown": "0", "null": "0"}
    document = {"attributes": {str(number): entry for number in range(100)}}
    write_archive(tmp_path / "x.zip", {"d.json": document}, {})
    assert (tmp_path / "x.zip").stat().st_size > 10**6  # it is stored as it is
    assert read_archive(tmp_path / "x.zip", "file", lambda archive: archive.document("d.json")) == document
    small = {"attributes": {"a": entry}}
    write_archive(tmp_path / "y.zip", {"d.json": small}, {})
    assert (tmp_path / "y.zip").stat().st_size < 20_000


# --- writing --------------------------------------------------------------------------------------------------------


def test_writing_is_atomic(tmp_path, monkeypatch):
    """A write that breaks in the middle leaves the old file, and no part of the new one."""
    path, kind = tmp_path / "x.uai", "a UAI model"
    old, new = b"MARKOV 1", b"MARKOV 2"
    atomic_write(path, old)

    def broken(*_: object) -> None:
        raise OSError(28, "No space left on device")

    for step in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, step, broken)
            with pytest.raises(ModelFileError, match="No space left"):
                atomic_write(path, new, kind)
        assert path.read_bytes() == old
        assert [one.name for one in tmp_path.iterdir()] == ["x.uai"]
    atomic_write(path, new, kind)
    assert path.read_bytes() == new


@pytest.mark.parametrize("name", ["file/x", "a\0b", "n" * 300])
def test_impossible_paths_are_refused(tmp_path, name):
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelFileError):
        atomic_write(tmp_path / name, b"")


def test_facts_without_a_form_are_refused_before_a_file_appears(tmp_path):
    for wrong in ({"x": object()}, {"x": float("nan")}, {"x": "\ud800"}):
        with pytest.raises(ModelFileError, match="no form"):
            write_archive(tmp_path / "x", {"d.json": wrong}, {})
    assert not list(tmp_path.iterdir())


# --- replacing ------------------------------------------------------------------------------------------------------

ONE = Structure(Domain.from_sizes({"a": 2}), [("a",)])


@pytest.fixture
def kinds(tmp_path, sound, written):
    """A file of each kind that must survive, by name."""
    found = {name: tmp_path / name for name in ("ledger", "release", "model", "text", "empty")}
    Ledger.create(found["ledger"], name="x", budget=Budget.pure(1), neighbours="add-remove")
    written(found["model"], sound)
    load_model(found["model"]).release.save(found["release"])
    found["text"].write_text("sex,age\nF,30\n")
    found["empty"].write_bytes(b"")
    return found


def test_only_a_model_gives_way_to_a_model(kinds):
    """Saved over a ledger, a release, records or nothing at all: refused in one line, and all is as it was."""
    model = Model(ONE, Tables.zeros(ONE))
    for kind, path in kinds.items():
        before = path.read_bytes()
        if kind == "model":
            model.save(path)
            assert load_model(path).structure == ONE
            continue
        words = f"{kind} exists and is .*; only a dpgm model is replaced there"
        with pytest.raises(ModelFileError, match=words) as caught:
            model.save(path)
        assert path.read_bytes() == before and "\n" not in str(caught.value)


def test_nothing_gives_way_to_a_release(kinds, sound, written, tmp_path):
    """Another release was paid for too. The very same one may be saved again."""
    release = load_release(kinds["release"])
    release.save(kinds["release"])
    other = load_model(written(tmp_path / "other", sound)).release
    for path in kinds.values():
        before = path.read_bytes()
        if path == kinds["release"]:
            path.write_bytes(before := before + b"\0")  # not the same file any more
        with pytest.raises(ModelFileError, match="nothing is replaced there"):
            other.save(path)
        assert path.read_bytes() == before


@pytest.mark.parametrize("dangling", [False, True])
def test_a_symbolic_link_is_neither_replaced_nor_followed(tmp_path, kinds, dangling):
    """A model would appear where nobody named it, or the link would be gone."""
    target = tmp_path / "nowhere" if dangling else kinds["model"]
    link = tmp_path / "link"
    link.symlink_to(target)
    with pytest.raises(ModelFileError, match="is a symbolic link"):
        Model(ONE, Tables.zeros(ONE)).save(link)
    assert link.is_symlink() and target.exists() is not dangling


def test_what_is_no_file_is_not_replaced(tmp_path):
    """A folder, a pipe: /dev/null was one rename away from being a model."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder", "pipe"):
        with pytest.raises(ModelFileError, match="is no regular file"):
            Model(ONE, Tables.zeros(ONE)).save(tmp_path / name)
        with pytest.raises(ModelFileError, match="is no regular file"):
            check_writable(tmp_path / name)


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path, monkeypatch):
    """Between the look at the name and the writing another process made a ledger."""
    path, link = tmp_path / "x", os.link

    def late(*names: object) -> None:
        path.write_text("another's")
        link(*names)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(ModelFileError, match="exists and is another file"):
        atomic_write(path, b"mine")
    assert path.read_text() == "another's" and [one.name for one in tmp_path.iterdir()] == ["x"]


def test_without_hard_links_nothing_is_replaced_either(tmp_path, monkeypatch):
    """As on FAT: the name is taken first, and given back when the content cannot be brought there."""

    def none(*_: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", none)
    atomic_write(tmp_path / "x", b"first")
    with pytest.raises(ModelFileError, match="nothing is replaced there"):
        atomic_write(tmp_path / "x", b"second")
    assert (tmp_path / "x").read_bytes() == b"first"
    monkeypatch.setattr(os, "replace", none)
    with pytest.raises(ModelFileError, match="Operation not permitted"):
        atomic_write(tmp_path / "y", b"third")
    assert [one.name for one in tmp_path.iterdir()] == ["x"]


def test_permissions_that_are_asked_for_hold_whatever_stood_there(tmp_path):
    """Of a new file, and of one of this very content that others could read until then."""
    path = tmp_path / "page.html"
    content = b"<!doctype html>\n<!-- dpgm annex -->\n"
    for _ in range(2):
        atomic_write(path, content, ANNEX_FILE, mode=0o600)
        assert path.stat().st_mode & 0o777 == 0o600
        path.chmod(0o644)
    assert [one.name for one in tmp_path.iterdir()] == ["page.html"]


#: Each reader of a file that a user names, by the name's ending.
READERS = {
    "model.dpgm": load_model, "release.dpgm": load_release, "compared.dpgm": read_subject, "spec.toml": read_spec,
    "study.toml": load_study, "domain.toml": Domain.load, "codebook.csv": read_codebook, "x.ledger": Ledger.open,
    "found.labels.json": load_discovery, "network.bif": read_bif, "network.uai": read_uai, "stamp.json": read_stamp,
    "network.uai.evid": read_evidence, "network.PR": read_pr, "network.MAR": read_mar,
    **dict.fromkeys(
        ["domain.json", "header.csv", "header.csv.gz", "schema.parquet", "schema.arrow"], read_metadata
    ),
    **{
        f"records.{suffix}": lambda path: list(as_source(path).batches(ONE.domain, ONE.domain.names))
        for suffix in ("csv", "csv.gz", "parquet", "arrow")
    },
}  # fmt: skip


@pytest.mark.parametrize("kind", ["pipe", "device"])
@pytest.mark.parametrize("name", READERS)
def test_nothing_but_a_regular_file_is_opened(tmp_path, name, kind):
    """A pipe or /dev/zero never ends, so each is refused at once with the reason, records as well."""
    path = tmp_path / name
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    try:
        assert READERS[name](path) is None and name == "stamp.json"
    except DpgmError as error:
        assert "no regular file" in str(error) or "there is no" in str(error)


def test_a_link_to_a_regular_file_is_opened(tmp_path):
    """It is the file that counts, and not its name."""
    Model(ONE, Tables.zeros(ONE)).save(tmp_path / "model.dpgm")
    (tmp_path / "link.dpgm").symlink_to("model.dpgm")
    assert load_model(tmp_path / "link.dpgm").structure == ONE


def test_names_tell_what_a_file_is():
    """It need not be there; what is to be typed is quoted for a shell, and the line is one."""
    for name in ("x.CSV", "x.csv.gz", "x.parquet", "a b.arrow", "x.toml", "x.ledger", "x.bif", "x.uai"):
        said = hint_not_a_model(f"new\nline/{name}", "model file")
        assert said is not None and "by its name" in said and "\n" not in said
    assert "'a b.arrow'" in str(hint_not_a_spec("a b.arrow"))
    for name in ("x.xlsx", "x.ods", "x.SAS7BDAT"):  # neither init nor fit reads them
        for said in (hint_not_a_spec(name), hint_not_a_model(name, "model file")):
            assert said is not None and "as CSV" in said and "dpgm init" not in said
    for name in ("x", "x.dpgm", "x.zip", ".csv2"):
        assert hint_not_a_model(name, "model file") is None
    assert hint_not_a_spec("x.toml") is None and hint_not_a_spec("x.spec") is None

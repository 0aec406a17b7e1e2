"""Files: whole or not at all when written; when read, whatever is wrong is one ModelFileError."""

from __future__ import annotations

import io
import json
import os
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpgm_core import Budget, ModelFileError, PluginError, load_model, load_release
from dpgm_core.files import atomic_write, write_archive

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


def test_the_sound_file_is_read(tmp_path, sound, written):
    """What the changes below start from does load, so each of them is what makes a file hostile."""
    path = written(tmp_path / "x.dpgm", sound)
    assert load_model(path).release.cost == load_release(path).cost == Budget.pure(1)


@pytest.mark.parametrize("key", HOSTILE_ARRAYS)
@pytest.mark.parametrize("name", ["tables.npz", "potentials.npz"])
def test_wrong_arrays_are_refused(tmp_path, sound, written, refused_file, npz, key, name):
    """Pickles, wrong shapes, lengths and types, NaN and +inf."""
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
    """Lists, deep nesting, bad UTF-8, truncated JSON."""
    refused_file(written(tmp_path / "x.dpgm", sound | {"model.json": content, "release.json": content}))


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


def test_no_file_no_zip_no_folder(tmp_path, refused_file):
    """What is not there, is a folder or is something else."""
    (tmp_path / "folder.dpgm").mkdir()
    (tmp_path / "text.dpgm").write_text("hello")
    (tmp_path / "empty.dpgm").write_bytes(b"")
    for name in ("none.dpgm", "folder.dpgm", "text.dpgm", "empty.dpgm"):
        refused_file(tmp_path / name)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_damaged_bytes_never_raise_anything_else(tmp_path, sound, written, data):
    """Truncated and overwritten files: a model, or a ModelFileError or PluginError."""
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


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
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


# --- writing --------------------------------------------------------------------------------------------------------


def test_writing_is_atomic(tmp_path, monkeypatch):
    """A write that breaks in the middle leaves the old file, and no part of the new one."""
    path = tmp_path / "x.bin"
    atomic_write(path, b"old")

    def broken(*_: object) -> None:
        raise OSError(28, "No space left on device")

    for step in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, step, broken)
            with pytest.raises(ModelFileError, match="No space left"):
                atomic_write(path, b"new")
        assert path.read_bytes() == b"old"
        assert [one.name for one in tmp_path.iterdir()] == ["x.bin"]
    atomic_write(path, b"new")
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("name", ["file/x", "a\0b", "n" * 300])
def test_impossible_paths_are_refused(tmp_path, name):
    """A file for a folder, a NUL, a name too long: ModelFileError."""
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelFileError):
        atomic_write(tmp_path / name, b"")


def test_facts_without_a_form_are_refused_before_a_file_appears(tmp_path):
    """A document that JSON cannot hold."""
    for wrong in ({"x": object()}, {"x": float("nan")}, {"x": "\ud800"}):
        with pytest.raises(ModelFileError, match="no form"):
            write_archive(tmp_path / "x", {"d.json": wrong}, {})
    assert not list(tmp_path.iterdir())

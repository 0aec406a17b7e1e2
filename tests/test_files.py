"""Files: whole or not at all when written; when read, whatever is wrong is one ModelFileError."""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dpgm_core as dpgm
from dpgm_core import Budget, Domain, ModelFileError, PluginError, Structure, Tables
from dpgm_core.files import atomic_write, write_archive
from dpgm_core.model import Model, load_model
from dpgm_core.releases import load_release

DOMAIN = Domain.from_sizes({"a": 2, "b": 3})
STRUCTURE = Structure(DOMAIN, [("a", "b")])
NAMES = ("model.json", "release.json", "potentials.npz", "tables.npz")


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> dict[str, bytes]:
    """The members of a sound model file."""
    path = tmp_path_factory.mktemp("sound") / "m.dpgm"
    codes = np.array([[0, 1], [1, 2]] * 20)
    dpgm.fit(codes, STRUCTURE, Budget.pure(1), neighbours="add-remove").model.save(path)
    with zipfile.ZipFile(path) as archive:
        assert sorted(archive.namelist()) == sorted(NAMES)
        return {name: archive.read(name) for name in NAMES}


def written(path: Path, members: dict[str, bytes], how: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", how) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def changed(content: bytes, *keys: object, value: object) -> bytes:
    """A JSON document with one value replaced."""
    document = json.loads(content)
    table = document
    for key in keys[:-1]:
        table = table[key]
    table[keys[-1]] = value
    return json.dumps(document).encode()


def npz(**arrays: object) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def refused(path: Path) -> None:
    """Both readers say one line that names the file, or what its release needs."""
    for read in (load_model, load_release):
        with pytest.raises(ModelFileError) as caught:
            read(path)
        assert path.name in str(caught.value)
        assert caught.value.__cause__ is None


def test_the_sound_file_is_read(tmp_path, sound):
    """What the changes below start from does load, so each of them is what makes a file hostile."""
    path = written(tmp_path / "x.dpgm", sound)
    assert load_model(path).release.cost == load_release(path).cost == Budget.pure(1)


RELEASE_CHANGES = {
    "format": ("format", "dpgm-model"),
    "newer schema": ("schema", 2),
    "no neighbours": ("neighbours", "adjacent"),
    "total 0": ("total", 0),
    "total NaN": ("total", float("nan")),
    "total text": ("total", "many"),
    "variance": ("total_variance", -1),
    "policy": ("total_policy", "guessed"),
    "rows": ("rows_per_person", 0),
    "rows true": ("rows_per_person", True),
    "cheaper than the noise": ("cost", {"epsilon": "1/2"}),
    "free": ("cost", {"epsilon": "0"}),
    "private text": ("private", "yes"),
    "no calibrations": ("calibrations", []),
    "calibration out of range": ("calibration_of", [1]),
    "too many calibrations": ("calibration_of", [0, 0]),
    "calibration no list": ("calibration_of", 0),
    "sizes not spelled out": ("domain", {"attributes": {"a": {"size": 2}, "b": {"size": 3}}}),
    "domain text": ("domain", "a"),
    "structure": ("structure", {"cliques": [["a", "z"]]}),
    "huge structure": ("structure", {"cliques": [["a", "b"], ["a"]]}),
    "provenance": ("provenance", 3),
}


@pytest.mark.parametrize("key", RELEASE_CHANGES)
def test_wrong_facts_of_a_release_are_refused(tmp_path, sound, key):
    """Each fact, replaced by nonsense or by a lie about the budget."""
    name, value = RELEASE_CHANGES[key]
    content = changed(sound["release.json"], name, value=value)
    refused(written(tmp_path / "x.dpgm", sound | {"release.json": content}))


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("noise", "scale"), "nan"),
        (("noise", "scale"), -1),
        (("noise", "l1"), 10**9),
        (("noise", "__class__"), "os.system"),
        (("options", "exact"), "yes"),
        (("options", "x"), 1),
        (("sensitivity", "l1"), -1),
        (("budget", "epsilon"), "1e99999"),
        (("component",), None),
        (("component",), 3),
    ],
)
def test_wrong_noise_is_refused(tmp_path, sound, keys, value):
    """No field makes the loader do anything but read numbers."""
    content = changed(sound["release.json"], "calibrations", 0, *keys, value=value)
    refused(written(tmp_path / "x.dpgm", sound | {"release.json": content}))


def test_a_missing_mechanism_is_a_plugin_error(tmp_path, sound):
    """The file is sound; what it needs is not installed, and the error says its name."""
    content = changed(sound["release.json"], "calibrations", 0, "component", value="not-installed")
    path = written(tmp_path / "x.dpgm", sound | {"release.json": content})
    for read in (load_model, load_release):
        with pytest.raises(PluginError, match="not-installed"):
            read(path)


HOSTILE_ARRAYS = {
    "short": npz(values=np.zeros(5)),
    "two-dimensional": npz(values=np.zeros((2, 3))),
    "objects": npz(values=np.array([{}] * 6, dtype=object)),
    "float32": npz(values=np.zeros(6, np.float32)),
    "complex": npz(values=np.zeros(6, complex)),
    "NaN": npz(values=np.full(6, np.nan)),
    "infinite": npz(values=np.full(6, np.inf)),
    "other name": npz(other=np.zeros(6)),
    "two arrays": npz(values=np.zeros(6), more=np.zeros(6)),
    "no zip": b"\x93NUMPY",
    "empty": b"",
}


@pytest.mark.parametrize("key", HOSTILE_ARRAYS)
@pytest.mark.parametrize("name", ["tables.npz", "potentials.npz"])
def test_wrong_arrays_are_refused(tmp_path, sound, key, name):
    """Pickles, wrong shapes, lengths and types, NaN and +inf."""
    path = written(tmp_path / "x.dpgm", sound | {name: HOSTILE_ARRAYS[key]})
    with pytest.raises(ModelFileError):
        load_model(path)
    if name == "tables.npz":
        refused(path)


def test_a_header_that_promises_too_much_is_refused(tmp_path, sound):
    """An .npy header of 10^12 numbers over no data: refused, whatever memory there is."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("values.npy", header.getvalue())
    refused(written(tmp_path / "x.dpgm", sound | {"tables.npz": inner.getvalue()}))


@pytest.mark.parametrize("content", [b"[]", b"null", b"{", b"[" * 10**5, b"\xff", b'{"a": NaN}', b""])
def test_documents_that_are_none_are_refused(tmp_path, sound, content):
    """Lists, deep nesting, bad UTF-8, truncated JSON."""
    refused(written(tmp_path / "x.dpgm", sound | {"model.json": content, "release.json": content}))


def test_bombs_are_recognised(tmp_path, sound):
    """A document packed a thousandfold, by declared size; one whose header lies; and arrays no structure needs."""
    bomb = b'{"x": "' + b" " * (40 * 2**20) + b'"}'
    path = written(tmp_path / "x.dpgm", sound | {"model.json": bomb, "release.json": bomb})
    assert path.stat().st_size < 10**6
    refused(path)
    lying = path.read_bytes().replace(len(bomb).to_bytes(4, "little"), (100).to_bytes(4, "little"))
    (tmp_path / "y.dpgm").write_bytes(lying)
    refused(tmp_path / "y.dpgm")
    big = npz(values=np.zeros(10**7))
    refused(written(tmp_path / "z.dpgm", sound | {"tables.npz": big, "potentials.npz": big}))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_given_twice_is_refused(tmp_path, sound):
    """Two readers could see two files."""
    path = written(tmp_path / "x.dpgm", sound)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("release.json", sound["release.json"])
        archive.writestr("model.json", sound["model.json"])
    refused(path)


def test_missing_members_and_strange_names(tmp_path, sound):
    """A member short is refused; a stranger's member is neither read nor written anywhere."""
    for name in ("release.json", "tables.npz"):
        refused(written(tmp_path / f"{name}.dpgm", {key: sound[key] for key in NAMES if key != name}))
    path = written(tmp_path / "x.dpgm", sound | {"../outside": b"x", "/abs": b"x"})
    load_model(path)
    assert not (tmp_path.parent / "outside").exists()


def test_no_file_no_zip_no_folder(tmp_path):
    """What is not there, is a folder or is something else."""
    (tmp_path / "folder.dpgm").mkdir()
    (tmp_path / "text.dpgm").write_text("hello")
    (tmp_path / "empty.dpgm").write_bytes(b"")
    for name in ("none.dpgm", "folder.dpgm", "text.dpgm", "empty.dpgm"):
        refused(tmp_path / name)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_damaged_bytes_never_raise_anything_else(tmp_path, sound, data):
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
def test_any_json_value_anywhere_is_refused_or_read(tmp_path, sound, data):
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


def test_equal_content_makes_equal_bytes(tmp_path):
    """No clock and no name of the machine in a file."""
    structure = Structure(DOMAIN, [("a",)])
    for name in ("1", "2"):
        Model(structure, Tables.zeros(structure), provenance={"x": 1}).save(tmp_path / name)
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


def test_round_trips_are_exact(tmp_path):
    """Integers, floats, -inf potentials, tied groups, odd labels and odd remarks come back."""
    domain = Domain.from_dict({"é\n": ["", "x,y", "\x00"], "b": ["0", "1", "2"]})
    structure = Structure(domain, [("é\n",)], tied=[[("é\n", "b"), ("b", "é\n")][:1]])
    rng = np.random.default_rng(0)
    values = np.where(rng.random(structure.cells) < 0.3, -np.inf, rng.normal(size=structure.cells) * 1e-300)
    model = Model(structure, Tables(structure, values), provenance={"gap": np.inf, "notes": ["ü"], "x": (1, b"y")})
    model.save(tmp_path / "m.dpgm")
    again = load_model(tmp_path / "m.dpgm")
    assert again.structure == structure
    assert np.array_equal(again.potentials.values, values)
    assert again.provenance["gap"] == "inf"
    tied = Structure(DOMAIN, [("b",)], tied=[[("a",), ("a", "b")][:1]])
    release = dpgm.release(np.zeros((50, 2), int), tied, Budget.zcdp("1/3"), neighbours="replace-one", total=70)
    release.save(tmp_path / "r.dpgm")
    back = load_release(tmp_path / "r.dpgm")
    assert np.array_equal(back.tables.values, release.tables.values)
    assert back.tables.values.dtype == np.int64
    for name in ("structure", "calibrations", "calibration_of", "neighbours", "unit", "total", "total_policy",
                 "total_variance", "cost", "private", "unsafe", "provenance"):  # fmt: skip
        assert getattr(back, name) == getattr(release, name), name
    assert back.guarantee() == release.guarantee()


def test_a_large_uniform_model_is_no_bomb(tmp_path):
    """Zeros pack a thousandfold; they are stored as they are, so that reading may refuse what is packed so."""
    domain = Domain.from_sizes({"a": 600, "b": 600})
    structure = Structure(domain, [("a", "b")])
    Model(structure, Tables.zeros(structure)).save(tmp_path / "m.dpgm")
    assert load_model(tmp_path / "m.dpgm").potentials.values.size == 360_000


def test_facts_without_a_form_are_refused_before_a_file_appears(tmp_path):
    """A document that JSON cannot hold."""
    for wrong in ({"x": object()}, {"x": float("nan")}, {"x": "\ud800"}):
        with pytest.raises(ModelFileError, match="no form"):
            write_archive(tmp_path / "x", {"d.json": wrong}, {})
    assert not list(tmp_path.iterdir())

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
from dpgm_core import Beliefs, Budget, ClippedScore, Domain, ModelFileError, PluginError, Structure, Tables, Terms
from dpgm_core.components.registry import make
from dpgm_core.curator.live import LiveCurator
from dpgm_core.files import atomic_write, write_archive
from dpgm_core.models.model import Model
from dpgm_core.models.reading import load_model
from dpgm_core.releases.reading import load_release
from dpgm_core.sources import as_source

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


def textbook(name: str) -> dict[str, object]:
    return {"name": name, "exact": False, "allow_unsafe": True}


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """The members of a release file of each kind that core writes, by name."""
    structure = Structure(DOMAIN, [("a", "b"), ("b",)])
    tied = Structure(DOMAIN, [("b",)], tied=[[("a",), ("a", "b")][:1]])
    codes = np.array([[0, 1], [1, 2]] * 20)
    folder = tmp_path_factory.mktemp("released")
    simulated = {"randomness": dpgm.SeededRandomness(1)}
    asked = {
        "laplace": ("laplace", Budget.pure(8), {}),
        "laplace zcdp": ("laplace", Budget.zcdp("1/3"), {}),
        "gaussian": ("gaussian", Budget.zcdp("1/3"), {}),
        "gaussian approx": ("gaussian", Budget.approx(1, "1e-6"), {}),
        "replace-one": ("laplace", Budget.pure(1), {"neighbours": "replace-one"}),
        "gaussian replace-one": ("gaussian", Budget.zcdp("1/3"), {"neighbours": "replace-one"}),
        "optimal": ("laplace", Budget.pure(1), {"split": "optimal"}),
        "optimal gaussian": ("gaussian", Budget.zcdp(1), {"split": "optimal"}),
        "textbook": (textbook("laplace"), Budget.pure(8), simulated),
        "textbook gaussian": (textbook("gaussian"), Budget.zcdp(1), simulated),
    }
    made = {}
    for name, (mechanism, budget, more) in asked.items():
        made[name] = dpgm.release(codes, structure, budget, mechanism, **{"neighbours": "add-remove"} | more)
    made["tied"] = dpgm.release(codes, tied, Budget.zcdp("1/3"), terms=dpgm.Terms(neighbours="add-remove", total=70))
    one_cell = Structure(Domain.from_sizes({"a": 1, "b": 3}), [("a",)])
    for name in ("laplace", "gaussian"):
        made[f"one cell {name}"] = dpgm.release(
            codes * [0, 1], one_cell, Budget.zcdp(1), name, neighbours="replace-one"
        )

    def curator(mechanism, budget, **more):
        return LiveCurator(
            as_source(codes),
            structure,
            make("mechanism", mechanism),
            terms=Terms(neighbours="add-remove"),
            budget=budget,
            **more,
        )

    budgets = {("a", "b"): Budget.pure(1), ("b",): Budget.pure(2)}
    made["per clique"] = curator("laplace", Budget.pure(3)).release(budget=budgets)
    clip = {"clip": ClippedScore(norm="1/2", grid=64)}
    mu = Beliefs(marginals=Tables(structure, np.full(structure.cells, 1 / 6)), log_partition=0.0)
    for kind, mechanism, budget in (
        ("pure", "laplace", Budget.pure(2)),
        ("zcdp", "gaussian", Budget.zcdp(1)),
        ("laplace approx", "laplace", Budget.approx(1, "1e-6")),
        ("approx", "gaussian", Budget.approx(1, "1e-6")),
    ):
        for rate in (1, 0.25):
            for scored in ({}, clip):
                with curator(mechanism, budget, total=50.0).rounds(5, sampling_rate=rate, **scored) as rounds:
                    noisy = rounds.next(mu if scored else None)
                made[f"rounds {kind} {rate}" + " clipped" * bool(scored)] = noisy
    found = {}
    for number, (name, noisy) in enumerate(made.items()):
        noisy.save(folder / str(number))
        with zipfile.ZipFile(folder / str(number)) as archive:
            found[name] = {member: archive.read(member) for member in archive.namelist()}, noisy
    return found


def test_every_kind_of_release_comes_back(tmp_path, released):
    """What core writes it reads, with the same guarantee; only a cost of rounds that needs more may be stated."""
    for name, (members, noisy) in released.items():
        again = load_release(written(tmp_path / "x.dpgm", members))
        assert (again.cost, again.unsafe, again.noise) == (noisy.cost, noisy.unsafe, noisy.noise), name
        assert not again.cost_stated or "approx" in name
        assert ("as the author" in again.guarantee()) == again.cost_stated
        if not again.cost_stated:
            assert again.guarantee() == noisy.guarantee()


ONE_ROUND = {"round": 1, "rounds": 1, "sampling_rate": "1"}
ROUNDS = ("provenance", "rounds")
CALIBRATION = ("calibrations", 0)
LIES = {
    "made-up rounds": ("laplace", {("cost",): {"epsilon": "1/1000"}, ROUNDS: ONE_ROUND}),
    "made-up subsample": (
        "laplace", {("cost",): {"epsilon": "1"}, ROUNDS: ONE_ROUND | {"sampling_rate": "1/2"}}
    ),
    "unsafe": ("textbook", {("unsafe",): None, ("private",): True}),
    "unsafe, no reason": ("textbook", {("unsafe",): ""}),
    "unsafe gaussian": ("textbook gaussian", {("unsafe",): None}),
    "said to be exact": ("textbook", {(*CALIBRATION, "noise", "exact"): True, ("unsafe",): None}),
    "all said to be exact": (
        "textbook",
        {(*CALIBRATION, "noise", "exact"): True, (*CALIBRATION, "options", "exact"): True, ("unsafe",): None},
    ),
    "neighbours": ("laplace", {("neighbours",): "replace-one"}),
    "neighbours of gaussian": ("gaussian", {("neighbours",): "replace-one"}),
    "neighbours per clique": ("per clique", {("neighbours",): "replace-one"}),
    "neighbours of rounds": ("rounds zcdp 1", {("neighbours",): "replace-one"}),
    "neighbours of clipped rounds": ("rounds zcdp 1 clipped", {("neighbours",): "replace-one"}),
    "rows": ("laplace", {("rows_per_person",): 50}),
    "rows of rounds": ("rounds pure 1", {("rows_per_person",): 50}),
    "l1 and cost": (
        "laplace",
        {
            (*CALIBRATION, "noise", "l1"): 1, (*CALIBRATION, "noise", "cost"): {"epsilon": "4"},
            ("cost",): {"epsilon": "4"},
        },
    ),
    "all sensitivities": (
        "laplace",
        {
            (*CALIBRATION, "noise", "l1"): 1, (*CALIBRATION, "noise", "cost"): {"epsilon": "4"},
            ("cost",): {"epsilon": "4"},
            (*CALIBRATION, "sensitivity"): {"l0": 1, "l1": 1, "l2_squared": 1, "linf": 1},
        },
    ),
    "noise sensitivity": (
        "gaussian", {(*CALIBRATION, "noise", "sensitivity"): {"l0": 3, "l1": 2, "l2_squared": 2, "linf": 1}}
    ),
    "order of noises": ("per clique", {("calibration_of",): [1, 0]}),
    "one noise for two": ("per clique", {("calibration_of",): [0, 0]}),
    "fewer rounds": ("rounds zcdp 1", {("cost",): {"rho": "1/2"}}),
    "cheaper rounds": ("rounds pure 0.25", {("cost",): {"epsilon": "1.9"}}),
    "lower rate": ("rounds pure 0.25", {("cost",): {"epsilon": "1"}}),
    "more rounds": ("rounds zcdp 1", {(*ROUNDS, "rounds"): 6}),
    "other kind": ("rounds zcdp 1", {("cost",): {"epsilon": "1"}}),
    "clip norm": ("rounds zcdp 1 clipped", {(*ROUNDS, "clip_norm"): "1/4"}),
    "grid": ("rounds zcdp 1 clipped", {(*ROUNDS, "grid"): 32}),
}  # fmt: skip


@pytest.mark.parametrize("key", LIES)
def test_a_stronger_guarantee_than_the_noise_gives_is_refused(tmp_path, released, key):
    """Edits that would have a reader believe in more privacy: one line each, that names the file."""
    name, changes = LIES[key]
    members = released[name][0]
    content = members["release.json"]
    for keys, value in changes.items():
        content = changed(content, *keys, value=value)
    path = written(tmp_path / "x.dpgm", members | {"release.json": content})
    with pytest.raises(ModelFileError) as caught:
        load_release(path)
    assert path.name in str(caught.value) and "\n" not in str(caught.value)
    assert "damaged" not in str(caught.value)


@pytest.mark.parametrize(
    "terms",
    [
        {}, {"x": 1}, [], 0, "x", ONE_ROUND | {"x": 1}, {"round": 1, "rounds": 1}, ONE_ROUND | {"grid": 1024},
        ONE_ROUND | {"round": 0}, ONE_ROUND | {"round": 2}, ONE_ROUND | {"round": True}, ONE_ROUND | {"rounds": "1"},
        ONE_ROUND | {"rounds": 10**8}, ONE_ROUND | {"sampling_rate": 1}, ONE_ROUND | {"sampling_rate": "0"},
        ONE_ROUND | {"sampling_rate": "2"}, ONE_ROUND | {"sampling_rate": "nan"}, ONE_ROUND | {"sampling_rate": None},
        ONE_ROUND | {"clip_norm": 1, "grid": 8}, ONE_ROUND | {"clip_norm": "-1", "grid": 8},
        ONE_ROUND | {"clip_norm": "1", "grid": 0}, ONE_ROUND | {"clip_norm": "1", "grid": "8"},
    ],
)  # fmt: skip
def test_rounds_that_make_no_sense_are_refused(tmp_path, released, terms):
    """Keys, types and ranges, on reading and not when the guarantee is asked for."""
    members = released["laplace"][0]
    content = changed(members["release.json"], "provenance", "rounds", value=terms)
    with pytest.raises(ModelFileError) as caught:
        load_release(written(tmp_path / "x.dpgm", members | {"release.json": content}))
    assert "damaged" not in str(caught.value)


def test_a_cost_that_only_its_author_can_prove_is_marked(tmp_path, released):
    """(epsilon, delta) of rounds below the Renyi bound may be right; the guarantee says whose word it is."""
    members = released["rounds approx 0.25"][0]
    content = changed(members["release.json"], "cost", value={"epsilon": "1/2", "delta": "1e-6"})
    again = load_release(written(tmp_path / "x.dpgm", members | {"release.json": content}))
    assert again.cost_stated and "as the author of the file states it" in again.guarantee()
    content = changed(members["release.json"], "cost", value={"epsilon": "2", "delta": "1e-6"})
    again = load_release(written(tmp_path / "x.dpgm", members | {"release.json": content}))
    assert not again.cost_stated and "as the author" not in again.guarantee()


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
    release = dpgm.release(
        np.zeros((50, 2), int), tied, Budget.zcdp("1/3"), terms=dpgm.Terms(neighbours="replace-one", total=70)
    )
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

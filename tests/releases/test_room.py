"""Room on the disk before the charge, another place after it, and what is said of either."""

import gc
import os
import resource
import stat
import subprocess
import sys
import tempfile

import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm_core import Budget, Domain, LearningFailed, Ledger, ModelFileError, SeededRandomness, Structure, Workload
from dpgm_core.releases.labels import load_discovery
from dpgm_core.releases.saving import Room, release_size, save_elsewhere, session_size
from tests.fixtures import in_a_fork

DOMAIN = Domain.from_sizes({"a": 8, "b": 9, "c": 10})
CODES = np.random.default_rng(1).integers(0, 8, (300, 3))
ROWS = {"job": ["cook"] * 400 + ["pilot"] * 300, "sex": ["F", "M"] * 350}
JOB, SEX = {"labels": {"private": True, "keep": 5}}, {"labels": ["F", "M"]}
OPENED = Domain.from_dict({"attributes": {"job": JOB, "sex": SEX}})

needs_limits = pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="needs limits of file sizes")


@pytest.fixture
def ledger(tmp_path):
    """On another disk, so to say: in another folder than the output."""
    (tmp_path / "books").mkdir()
    return Ledger.create(
        tmp_path / "books" / "x.ledger", name="x", budget=Budget.approx(9, "1e-3"), neighbours="add-remove"
    )


def release(**more):
    """Tables of pairs."""
    structure = Structure(DOMAIN, [("a", "b"), ("b", "c")])
    return dpgm.release(CODES, structure, Budget.approx(1, "1e-6"), "gaussian", neighbours="add-remove", **more)


def session(**more):
    """A session that chooses pairs."""
    terms = dpgm.Terms(neighbours="add-remove")
    return dpgm.select(CODES, "mst", Budget.approx(1, "1e-6"), Workload.all(DOMAIN, 2), terms=terms, **more)[0]


def labels(**more):
    """A release after labels were found."""
    import pyarrow as pa

    structure, budget = Structure(OPENED, [("job", "sex")]), Budget.approx(5, "1e-5")
    return dpgm.release(pa.table(ROWS), structure, budget, "gaussian", neighbours="add-remove", **more)


WAYS = {"release": release, "session": session, "labels": labels}


def limited(work, size):
    """What `work` says in a fork that may write no file larger than so many bytes."""

    def under_the_limit():
        sys.dont_write_bytecode = True  # a module that is cut off would fail whoever imports it next
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        return work()

    return in_a_fork(under_the_limit)


@needs_limits
@pytest.mark.parametrize("way", WAYS)
def test_without_room_nothing_is_charged(tmp_path, ledger, way):
    """A limit below the size of the file: a refusal before the charge, and no file or folder is left."""
    said = limited(lambda: WAYS[way](ledger=ledger, save_release=tmp_path / "out" / "r.dpgm"), 9000)
    assert said.startswith("ModelFileError: there is no room for") and "nothing was charged" in said
    assert ledger.history() == () and not list(tmp_path.rglob("*.part")) and not (tmp_path / "out").exists()


@pytest.fixture
def loses(tmp_path, monkeypatch):
    """A folder for the output that becomes a file once the ledger is charged so many times."""

    def arm(times=1):
        charge, out = Ledger.charge, tmp_path / "out"

        def charged(self, *what, **how):
            entry = charge(self, *what, **how)
            if entry == times:
                if out.exists():
                    out.rename(tmp_path / "old")
                out.write_text("in the way")
            return entry

        monkeypatch.setattr(Ledger, "charge", charged)
        return out

    return arm


def check_kept(saved, ledger):
    """It is in a folder beside the ledger that its owner alone may enter."""
    assert saved.parents[1] == ledger.path.parent
    assert [stat.S_IMODE(one.stat().st_mode) for one in (saved.parent, saved)] == [0o700, 0o600]


@pytest.mark.parametrize("way", ["release", "session"])
def test_what_cannot_be_written_is_saved_beside_the_ledger(ledger, loses, way):
    """It knows where it is and why, and the ledger knows that it is saved."""
    done = WAYS[way](ledger=ledger, save_release=loses() / "r.release.dpgm")
    check_kept(done.saved_as, ledger)
    assert done.saved_as.name == "r.release.dpgm"
    assert "Not a directory" in done.save_error or "File exists" in done.save_error
    read = dpgm.load_release(done.saved_as)
    assert read.provenance == done.provenance and np.array_equal(read.tables.values, done.tables.values)
    assert len(read.steps) == len(done.steps)
    assert {entry.status for entry in ledger.history()} == {"released"}


def test_labels_that_cannot_be_written_are_saved_there_too(ledger, loses):
    """The tables cannot be written either, which is found before they are charged; the error says where labels are."""
    with pytest.raises(LearningFailed, match="is no folder; the labels of 'job' are found and paid for") as failed:
        labels(ledger=ledger, save_release=loses() / "r.release.dpgm")
    (entry,) = ledger.history()
    (found,) = ledger.path.parent.rglob("*.labels.json")
    check_kept(found, ledger)
    assert entry.status == "released" and f"labels_from = {str(found)!r}" in str(failed.value)
    assert load_discovery(found) == failed.value.discovery


def test_where_the_ledgers_folder_fails_too_the_temporary_one_serves(tmp_path, ledger, loses, monkeypatch):
    """Without a ledger it is the first to be tried."""
    make, scratch = tempfile.mkdtemp, tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))

    def full(prefix, dir):
        if dir is not None:
            raise OSError(28, "No space left on device")
        return make(prefix=prefix)

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    done = release(ledger=ledger, save_release=loses() / "r.release.dpgm")
    assert done.saved_as.parents[1] == scratch and dpgm.load_release(done.saved_as)


@pytest.mark.parametrize("way", ["release", "session", "labels", "fit"])
def test_where_no_place_serves_it_is_said_that_nothing_is_saved(ledger, loses, monkeypatch, way):
    """LearningFailed has what was paid for, and each reason; nothing says that it is kept in a file."""

    def full(**_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    ways = WAYS | {"fit": fit}
    with pytest.raises(LearningFailed) as failed:
        ways[way](ledger=ledger, save_release=loses() / "r.release.dpgm")
    said = str(failed.value)
    assert "No space left" in said and "in the way" not in said and "where it was saved" not in said
    if way == "labels":
        assert failed.value.discovery is not None and "kept in the error's discovery" in said
    else:
        assert ("could NOT be saved" in said) is (way != "release") and failed.value.releases[0].saved_as is None
        assert failed.value.releases[0].save_error in said
    assert {entry.status for entry in ledger.history()} == {"charged"}


def fit(**more):
    """A fit of named tables."""
    structure = Structure(DOMAIN, [("a", "b"), ("b", "c")])
    budget = Budget.approx(1, "1e-6")
    return dpgm.fit(CODES, structure, budget, "gaussian", "naive-mle", neighbours="add-remove", **more)


@pytest.mark.parametrize("split", ["even", {"tables": "even", "holdout": 0.2}])
def test_the_room_is_enough_and_is_given_back(tmp_path, split):
    """Files are no larger than what was reserved for them, and no hidden file stays, whatever became of the run."""
    rooms = []
    made = Room.__init__

    def noted(self, path, size):
        made(self, path, size)
        rooms.append((path, size))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Room, "__init__", noted)
        fit(save_release=tmp_path / "a.release.dpgm", split=split)
        release(save_release=tmp_path / "b.release.dpgm")
        session(save_release=tmp_path / "c.release.dpgm")
        labels(save_release=tmp_path / "d.release.dpgm")
        patch.setattr("dpgm_core.curator.live.LiveCurator._draw", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            release(save_release=tmp_path / "e.release.dpgm")
    assert len({path for path, _ in rooms}) == (7 if split != "even" else 6)
    for path, size in rooms:
        assert not path.exists() or path.stat().st_size <= size
    assert not list(tmp_path.glob(".*"))


def test_a_release_is_written_into_the_room_that_was_taken(tmp_path, ledger, monkeypatch):
    """The file that was reserved becomes the release, so that nobody can take its space meanwhile."""
    inodes = []
    charge = Ledger.charge

    def charged(self, *what, **how):
        inodes.extend(one.stat().st_ino for one in tmp_path.glob(".*.part"))
        return charge(self, *what, **how)

    monkeypatch.setattr(Ledger, "charge", charged)
    done = release(ledger=ledger, save_release=tmp_path / "r.dpgm")
    assert [done.saved_as.stat().st_ino] == inodes


def test_a_room_that_is_forgotten_is_removed_by_its_own_process(tmp_path):
    """As it is collected, or as Python ends; a forked process that ends first leaves it."""
    room = Room(tmp_path / "none" / "x.dpgm", 3 * 2**20 + 1)
    assert room.part.parent == tmp_path and room.part.stat().st_size == 3 * 2**20 + 1
    assert in_a_fork(room.close) == "None" and room.part.exists()
    part = room.part
    del room
    gc.collect()
    assert not part.exists()


def test_elsewhere_leaves_no_folder_where_it_fails(tmp_path):
    """And names the reason of each place."""

    def save(path):
        path.write_text("half")
        raise ModelFileError("cannot write it")

    with pytest.raises(ModelFileError, match="first; cannot write it; cannot write it"):
        save_elsewhere(tmp_path / "x.dpgm", ModelFileError("first"), tmp_path / "x.ledger", save)
    assert not list(tmp_path.iterdir())


def test_sizes_are_of_what_is_public(tmp_path):
    """They follow from domain, structure and budget alone."""
    one = release(randomness=SeededRandomness(1))
    assert release_size(one) >= 8 * (72 + 90)
    assert session_size(Workload.all(DOMAIN, 2)) >= 8 * (27 + 72 + 80 + 90)
    many = Domain.from_sizes({f"a{number}": 1000 for number in range(30)})
    assert session_size(Workload.all(many, 2)) < 2 * 10**6 + 10**6


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 KiB of its own, where this process may make one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("no file system can be made here")
    yield disk
    subprocess.run(["umount", disk], check=True)


def fill(disk, but):
    """Leave only so many bytes free."""
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    (disk / f"junk{free}").write_bytes(b"x" * (free - but))


@pytest.mark.parametrize("way", WAYS)
def test_a_full_disk_is_refused_before_the_charge_and_does_no_harm_after_it(small_disk, ledger, monkeypatch, way):
    """4 KiB free: refused. Filled to the last byte while the records are counted: the release has its room."""
    charge = Ledger.charge

    def charged(self, *what, **how):
        fill(small_disk, 0)
        return charge(self, *what, **how)

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "charge", charged)
        if way != "labels":  # two files: what the first does not need is free for the second
            done = WAYS[way](ledger=ledger, save_release=small_disk / "r.release.dpgm")
            assert done.saved_as.parent == small_disk
            assert dpgm.load_release(done.saved_as).provenance["entry"] == 1
    for junk in small_disk.iterdir():
        junk.unlink()
    fill(small_disk, 4096)
    before = len(ledger.history())
    with pytest.raises(ModelFileError, match=r"no room for .* \(No space left on device\); nothing was charged"):
        WAYS[way](ledger=ledger, save_release=small_disk / "q.release.dpgm")
    assert len(ledger.history()) == before

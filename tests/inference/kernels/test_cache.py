"""Compiled kernels on disk: found again, never stale, and never worse than compiling when a file is damaged.

Of these damages numba's own cache raises for every file that is cut short or replaced; of bits flipped in machine code
a third end the process.
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dpgm_core.inference.kernels import loading as caching
from dpgm_core.inference.kernels.loading import resolve_executor

pytestmark = pytest.mark.skipif(resolve_executor("auto") != "numba", reason="needs numba")


def is_new(kernel):
    """Whether it was compiled here, not loaded."""
    return not kernel.from_disk


def kept(cache):
    """The one file of the kernel's module."""
    (path,) = cache.glob("dpgm_test_kernels-*.kernel")
    return path


def test_a_kernel_is_compiled_once(cache, load):
    """Then it comes from disk, with what it calls in it."""
    first = load()
    assert is_new(first)
    again = load()
    assert not is_new(again)
    assert first(3.0) == again(3.0) == 8.0


def test_a_change_of_what_a_kernel_calls_is_seen(cache, load):
    """In another file of its folder; numba's own cache would give the old numbers."""
    assert load(1.0)(3.0) == 8.0
    changed = load(2.0)
    assert is_new(changed)
    assert changed(3.0) == 10.0
    assert not is_new(load(1.0))


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[: len(content) // 2],
        lambda content: content[:1000] + bytes([content[1000] ^ 16]) + content[1001:],
        lambda content: content + b"\0",
    ],
    ids=["empty", "half", "a bit of code", "longer"],
)
def test_a_damaged_file_is_compiled_again(cache, load, caplog, damage):
    """With a note, once: the next process finds it whole."""
    load()
    path = kept(cache)
    path.write_bytes(damage(path.read_bytes()))
    kernel = load()
    assert is_new(kernel)
    assert kernel(3.0) == 8.0
    assert f"dpgm: the compiled kernel {path} is damaged; it is compiled again" in caplog.text
    caplog.clear()
    assert not is_new(load())
    assert not caplog.text


def test_a_kernel_under_anothers_name_is_not_taken(cache, load, caplog):
    """The checksum holds the key: a file of another version, renamed, is damaged."""
    load(1.0)
    old = kept(cache)
    content = old.read_bytes()
    old.unlink()
    load(2.0)
    kept(cache).write_bytes(content)
    assert load(2.0)(3.0) == 10.0
    assert "is damaged" in caplog.text


@pytest.mark.parametrize(
    "payload",
    [
        lambda old: b'["dpgm_nowhere"]' + old[old.index(b"\n") :],
        lambda old: old.replace(b"dpgm_call_kernel", b"dpgm_call_nobody"),
        lambda old: b"object",
    ],
    ids=["a function that no library has", "another name", "text"],
)
def test_what_llvm_cannot_load_is_compiled_again(cache, load, caplog, payload):
    """The checksum fits, as of a file that another LLVM has written: neither an end of the process nor a wrong one."""
    load()
    path, kernel = kept(cache), load()
    content = path.read_bytes()[caching._DIGEST :]
    home = Path(kernel.function.__code__.co_filename)
    signatures = [("kernel", kernel.signature)]
    key = caching._hash(caching._environment(), home.stem, caching._sources(home.parent), signatures)
    changed = payload(content)
    path.write_bytes(caching._hash(key, changed) + changed)
    kernel = load()
    assert is_new(kernel)
    assert kernel(3.0) == 8.0
    assert "cannot be loaded" in caplog.text


def test_each_version_and_processor_has_its_own(cache, load, monkeypatch):
    """Versions of numba and numpy, numba's settings and the machine name the file."""
    from llvmlite import binding

    load()
    assert not is_new(load())
    monkeypatch.setenv("NUMBA_NUM_THREADS", "1")  # changes no machine code
    assert not is_new(load())
    for change in (
        lambda: monkeypatch.setattr(caching, "_versions", lambda: ("0.0",)),
        lambda: monkeypatch.setattr(binding, "get_host_cpu_name", lambda: "another"),
        lambda: monkeypatch.setenv("NUMBA_OPT", "2"),
    ):
        change()
        assert is_new(load())
        assert not is_new(load())


@pytest.mark.sampled(2)
@pytest.mark.skipif(sys.platform == "win32", reason="modes of POSIX")
@pytest.mark.parametrize("what", ["folder", "file"])
def test_what_others_may_write_to_is_not_trusted(cache, load, caplog, what):
    """A kernel is code. It is compiled, and kept elsewhere where the folder is at fault."""
    load()
    path = kept(cache)
    target = cache if what == "folder" else path
    target.chmod(0o777)
    kernel = load()
    assert is_new(kernel)
    assert kernel(3.0) == 8.0
    assert caplog.text.count(f"dpgm: compiled kernels in {cache} are not used (others may write there") == 1
    if what == "folder":
        assert not is_new(load())
        assert kept(Path(os.environ["XDG_CACHE_HOME"]) / "dpgm")
    else:
        assert path.stat().st_mode & 0o777 == 0o644


@pytest.mark.skipif(sys.platform == "win32", reason="users of POSIX")
def test_what_another_user_has_written_is_not_trusted(cache, load, monkeypatch, caplog):
    """Root's is, as is the installation itself."""
    load()
    owner = cache.stat().st_uid
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    assert is_new(load()) == (owner != 0)
    if owner == 0:
        os.chown(kept(cache), 12345, 12345)
        assert is_new(load())
        assert "(others may write there or above, or have written)" in caplog.text


@pytest.mark.sampled(2)
@pytest.mark.skipif(sys.platform == "win32", reason="modes of POSIX")
@pytest.mark.parametrize("through", ["folder", "link"])
def test_nor_is_what_lies_in_a_folder_that_others_may_write_to(cache, load, tmp_path, monkeypatch, caplog, through):
    """A writable folder on the way, or one that holds a link, is not trusted; with the sticky bit it is."""
    above = tmp_path / "shared"
    above.mkdir()
    if through == "link":
        (tmp_path / "own").mkdir()
        (above / "on").symlink_to(tmp_path / "own")
    else:
        (above / "on").mkdir()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(above / "on"))
    load()
    assert not is_new(load())
    above.chmod(0o1777)
    assert not is_new(load())
    above.chmod(0o777)
    kernel = load()
    assert is_new(kernel)
    assert kernel(3.0) == 8.0
    assert "(others may write there or above" in caplog.text


@pytest.mark.skipif(sys.platform == "win32", reason="modes of POSIX")
def test_folders_on_the_way_are_made_for_the_user_alone_to_write(cache, load, tmp_path, monkeypatch):
    """Whatever the umask is: else the cache would refuse what it has made."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "one" / "two"))
    before = os.umask(0)
    try:
        load()
    finally:
        os.umask(before)
    assert not is_new(load())


def test_where_nothing_can_be_kept_all_works(cache, load, monkeypatch, caplog):
    """A file in the place of each folder, as a home that may only be read: one note, not one for each kernel."""
    for folder in caching.folders():
        folder.parent.mkdir(parents=True)
        folder.touch()
    kernel = load()
    assert is_new(kernel)
    assert kernel(3.0) == 8.0
    assert caplog.text.count("NUMBA_CACHE_DIR may name a folder of your own") == 1
    assert "not used" not in caplog.text
    monkeypatch.setattr(caching, "folders", lambda: ())
    assert load()(3.0) == 8.0


def test_the_folder_stays_small(cache, load, monkeypatch):
    """The oldest go, and what a killed process left half written."""
    cache.mkdir(parents=True)
    for number in range(5):
        old = cache / f"old{number}.kernel{'.part' * (number % 2)}"
        old.touch()
        os.utime(old, (number, number))
    monkeypatch.setattr(caching, "_MAX_FILES", 3)
    load()
    assert sorted(path.name.partition("-")[0] for path in cache.iterdir()) == [
        "dpgm_test_kernels",
        "old3.kernel.part",
        "old4.kernel",
    ]


def test_folders_without_a_home(monkeypatch):
    """None is invented; numba's variable is one even then."""

    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    if sys.platform != "win32":
        assert caching.folders() == ()
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/there")
    assert caching.folders()[0] == Path("/there/dpgm")


def test_processes_that_write_at_once_leave_a_whole_file(tmp_path):
    """A reader sees all of one or all of the other, and no part of a file stays."""
    path = tmp_path / "folder" / "one.kernel"
    contents = [bytes([number]) * 300_000 for number in range(2)]
    for content in contents:
        caching._write(path, content)
    with ThreadPoolExecutor(2) as pool:
        writing = [
            pool.submit(lambda content=content: [caching._write(path, content) for _ in range(50)])
            for content in contents
        ]
        while not all(one.done() for one in writing):
            assert path.read_bytes() in contents
    assert [one.result() for one in writing] == [[None] * 50] * 2
    assert list(path.parent.iterdir()) == [path]

"""Files: atomic writes, private folders, and hints on files of another kind."""

from __future__ import annotations

import contextlib
import filecmp
import hashlib
import io
import itertools
import json
import math
import os
import re
import secrets
import shlex
import shutil
import stat
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np

from dpgm_core._util.arrays import Array
from dpgm_core._util.locations import open_regular
from dpgm_core.errors import DpgmError, ModelFileError, PluginError, printable

__all__ = [
    "ANNEX_FILE",
    "Archive",
    "BIF_FILE",
    "COMPARISON_FILE",
    "MODEL_FILE",
    "NAMES_FILE",
    "PICTURE_FILE",
    "RELEASE_FILE",
    "REPORT_FILE",
    "UAI_FILE",
    "VALIDATED_FILE",
    "atomic_file",
    "atomic_write",
    "bounded_bytes",
    "check_writable",
    "find_parts",
    "hint_not_a_model",
    "hint_not_a_spec",
    "make_folder",
    "numbered_path",
    "part_path",
    "plain",
    "read_archive",
    "sync_folder",
    "write_archive",
]

# The format of releases and models (`name.dpgm`). Nothing is unpickled, every size is checked before it is read, and
# whatever is wrong becomes a ModelFileError. A file of s bytes takes at most 256 s + 64 MB of memory to read. What
# exists is replaced only by a file of its own kind.

T = TypeVar("T")

#: Kinds of files, for `replaces`.
BIF_FILE = "a BIF network"
MODEL_FILE = "a dpgm model"
RELEASE_FILE = "a dpgm release"
UAI_FILE = "a UAI model"
PICTURE_FILE = "a picture"
NAMES_FILE = "a names file"
VALIDATED_FILE = "a note of dpgm validate"
REPORT_FILE = "a dpgm report"
ANNEX_FILE = "an annex of a dpgm report"
COMPARISON_FILE = "a dpgm comparison"
LABELS_FILE = "a file of found labels"
#: What can be made of what was paid for before, by its kind.
_FREE = {
    RELEASE_FILE: ", or learn from it at no cost with dpgm learn, in Python learn(load_release(path))",
    LABELS_FILE: ", or go on with what it has at no cost, with labels_from",
}
#: Bytes of memory that the members of an archive may need together: some, and so many per byte of the file. A domain of
#: many equal labels packs well, so a small file may be sound; `write_archive` packs none that goes beyond.
SOME = 48 * 10**6
PER_BYTE = 256
_TOKEN = 384  # for one value of a document as a Python object, a label with all that a domain makes of it
_NUMBER = 24  # for one number of an array, three times over
_LETTERS = 4  # times the length of an ASCII text, while it is read; other text takes twice as much
_VALUES = np.isin(np.arange(256), list(b",[{"))  # one of these signs goes before every value but the first
_NESTING_STEP = np.zeros(256, np.int8)
_NESTING_STEP[list(b"[{")], _NESTING_STEP[list(b"]}")] = 1, -1
_MAX_NESTING = 100
_BLOCK = 2**20
_HEADER = 4096  # bytes around the numbers of an array
_LOCAL_HEADER = 30  # of a zip file's member
_HEAD = 512  # bytes that tell the kind of a file
_MAX_NAME_BYTES = 255  # of one part of a path, on every file system in use
_BIF_START = re.compile(rb"network\s+[^\s{}()\[\],;|\"]+\s*\{")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # no clock in the file: equal content gives equal bytes


def plain(value: Any) -> Any:
    """Anybody's facts as JSON values: what has no JSON form becomes a text, so that no file fails for a remark.

    >>> plain({1: float("inf"), "a": (np.float64(0.5), None)})
    {'1': 'inf', 'a': [0.5, None]}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(inside) for key, inside in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(inside) for inside in value]
    return value if value is None or isinstance(value, (str, int)) else str(value)


def numbered_path(path: Path, number: int) -> Path:
    """The file of the `number`-th of several releases of one run, next to that of the first.

    >>> numbered_path(Path("health.release.dpgm"), 2).name
    'health.release-2.dpgm'
    """
    return path if number == 1 else path.with_stem(f"{path.stem}-{number}")


def bounded_bytes(path: Path, most: int) -> bytes:
    """The bytes of a regular file; OSError when it cannot be read, ValueError when there are more than `most`."""
    with open_regular(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"it is larger than {most:,} bytes, more than is read")
    return content


def _kind(path: Path) -> str:
    """What a file that exists is, by its first bytes."""
    if path.is_symlink():
        return "a symbolic link"
    if not stat.S_ISREG(path.stat().st_mode):
        return "no regular file"
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if head.startswith(b"SQLite format 3\0"):
        return "a dpgm ledger" if head[68:72] == b"dpgm" else "a database"
    if head.startswith(b"PK\3\4"):
        members = {b"model.json": MODEL_FILE, b"release.json": RELEASE_FILE}
        return members.get(head[30 : 30 + int.from_bytes(head[26:28], "little")], "another file")
    if _BIF_START.match(head):
        return BIF_FILE
    starts = {
        b"MARKOV": UAI_FILE,
        b"BAYES": UAI_FILE,
        b"PR\n": "a UAI result",
        b"MAR\n": "a UAI result",
        b"MPE\n": "a UAI result",
        b'{"domain"': NAMES_FILE,
        b'{\n "format": "dpgm-labels"': LABELS_FILE,
        b'{"dpgm-validated"': VALIDATED_FILE,
        b"<!doctype html>\n<!-- dpgm report -->": REPORT_FILE,
        b"<!doctype html>\n<!-- dpgm annex -->": ANNEX_FILE,
        b"<!doctype html>\n<!-- dpgm comparison -->": COMPARISON_FILE,
        b"<svg ": PICTURE_FILE,
        b'{\n "$schema": "https://vega.github.io/schema/vega-lite/': PICTURE_FILE,
        b"\x89PNG\r\n": PICTURE_FILE,
        b"%PDF-": PICTURE_FILE,
    }
    return next((kind for start, kind in starts.items() if head.startswith(start)), "another file")


def _is_taken(path: Path) -> bool:
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def check_writable(path: str | Path, replaces: str | None = None) -> None:
    """Refuse, with ModelFileError and touching nothing, a path where no file can be written.

    replaces: the kind of file that may give way to the new one, such as "a dpgm model"; None: no file may.
    """
    path = Path(path)
    if path.name in ("", ".."):
        raise ModelFileError(f"cannot write {str(path)!r}: it is the name of a folder; name a file")
    try:
        if _is_taken(path) and (kind := _kind(path)) != replaces:
            allowed = "nothing is" if replaces is None else f"only {replaces} is"
            free = "" if replaces is not None else _FREE.get(kind, "")
            raise ModelFileError(f"{path} exists and is {kind}; {allowed} replaced there: name another file{free}")
        if any(len(os.fsencode(part)) > _MAX_NAME_BYTES for part in path.parts):
            raise ModelFileError(f"cannot write {str(path)!r:.100}...: a name in it is too long")
        # A link that leads nowhere counts: no folder can be made under its name.
        folder = next((one for one in path.absolute().parents if os.path.lexists(one)), None)
        if folder is None or not folder.is_dir():
            raise ModelFileError(f"cannot write {path}: {folder} is no folder")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise ModelFileError(f"cannot write {path}: no permission to write to {folder}")
    except (OSError, ValueError) as error:  # a name too long, a NUL in it
        raise ModelFileError(f"cannot write {str(path)!r}: {getattr(error, 'strerror', None) or error}") from None


def atomic_write(
    path: str | Path, content: bytes, replaces: str | None = None, *, mode: int | None = None, part: Path | None = None
) -> None:
    """Write a whole file or nothing, as `atomic_file` does. Raises ModelFileError."""
    with atomic_file(path, replaces, mode=mode, part=part) as file:
        file.write(content)


def part_path(path: Path) -> Path:
    """Return a new hidden name next to a file, for what becomes that file; `find_parts` finds it."""
    return path.with_name(f".{_mark(path)}-{secrets.token_hex(8)}.part")


def find_parts(path: Path) -> list[Path]:
    """Return the hidden files that processes have begun, or left behind, for a file of this name."""
    return list(path.parent.glob(f".{_mark(path)}-{'[0-9a-f]' * 16}.part"))


def _mark(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path.name)).hexdigest()[:16]


@contextlib.contextmanager
def atomic_file(
    path: str | Path, replaces: str | None = None, *, mode: int | None = None, part: Path | None = None
) -> Iterator[IO[bytes]]:
    """A file to write to, there as a whole or not at all: a temporary one next to it, synced, then given its name.

    replaces: the kind of file that may give way, see `check_writable`; such a file hands on its permissions. A file of
    this very content may stand there as well. mode: its permissions, from before anything is written to it and
    whatever stood there. part: a file on the same disk that is written over and becomes this one, so that its space
    serves. Whatever is raised inside leaves nothing behind, nor the part. Raises ModelFileError for any other file, and
    when none can be written.
    """
    path = Path(path)
    taken = part is not None and part.is_file()
    temporary = part if part is not None and taken else part_path(path)
    if "\0" in str(path):
        raise ModelFileError(f"cannot write {str(path)!r}: no name holds a NUL")
    try:
        with make_folder(path.parent):
            try:
                with temporary.open("r+b" if taken else "xb") as file:
                    if mode is not None:
                        temporary.chmod(mode)
                    yield file
                    file.truncate()
                    file.flush()
                    os.fsync(file.fileno())
                unchanged = mode is None and path.is_file() and filecmp.cmp(path, temporary, shallow=False)
                if not (unchanged or _named(temporary, path)):
                    check_writable(path, replaces)
                    if mode is None:
                        shutil.copymode(path, temporary)
                    temporary.replace(path)
                sync_folder(path.parent)
            finally:
                with contextlib.suppress(OSError, ValueError):
                    temporary.unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ModelFileError(f"cannot write {str(path)!r}: {reason}") from None


@contextlib.contextmanager
def make_folder(folder: Path) -> Iterator[None]:
    """Make a folder, with those above it; of these new ones none stays that is empty in the end."""
    missing = list(itertools.takewhile(lambda one: not os.path.lexists(one), (folder, *folder.parents)))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    finally:
        for one in missing:
            with contextlib.suppress(OSError):  # it is not empty, was not made, or leads up by `..`
                one.rmdir()


def _named(temporary: Path, path: Path) -> bool:
    """Give a file its name if nobody has it. Unlike a rename, a link never replaces what another process has put there.

    Where there are no hard links the name is taken by an empty file first; killed in between, that is what stays.
    """
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError:
        try:
            path.touch(exist_ok=False)
        except FileExistsError:
            return False
        try:
            temporary.replace(path)
        except OSError:
            path.unlink()
            raise
    return True


def sync_folder(folder: Path) -> None:
    """Make a new name survive a power cut, where the system can."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_archive(
    path: str | Path,
    documents: Mapping[str, Any],
    arrays: Mapping[str, Array],
    replaces: str | None = None,
    *,
    part: Path | None = None,
) -> None:
    """Write JSON documents and one-dimensional arrays (each a member `NAME.npz` with one array) to a zip file.

    replaces, part: as in `atomic_file`.
    """
    members: dict[str, bytes] = {}
    need = 0
    try:
        for name, document in documents.items():
            members[name] = json.dumps(document, ensure_ascii=False, allow_nan=False).encode()
            need += _document_need(members[name])
    except (TypeError, ValueError, RecursionError) as error:
        raise ModelFileError(f"cannot write {path}: a fact about it has no form in a file ({error})") from None
    for name, array in arrays.items():
        inner = io.BytesIO()
        np.savez(inner, values=array)
        members[name] = inner.getvalue()
        need += _array_need(array.size)
    content = _zipped(members, zipfile.ZIP_DEFLATED)
    if need > SOME + PER_BYTE * len(content):  # zeros, or labels that repeat: a reader would take it for a bomb
        content = _zipped(members, zipfile.ZIP_STORED)
    atomic_write(path, content, replaces, part=part)


def _zipped(members: Mapping[str, bytes], how: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content, how)
    return buffer.getvalue()


def _document_need(content: bytes) -> int:
    """Bytes that a JSON text takes as Python objects: its letters, and so much for each value outside of its texts.

    ValueError for one that is nested too deeply.
    """
    signs = np.frombuffer(content.replace(b"\\\\", b"").replace(b'\\"', b""), np.uint8)
    quotes, values, depth = 0, 0, 0
    for start in range(0, len(signs), _BLOCK):
        block = signs[start : start + _BLOCK]
        inside = np.cumsum(block == ord('"'), dtype=np.uint8) + np.uint8(quotes & 1)  # its last bit counts
        outside = inside & 1 == 0
        values += int(np.count_nonzero(_VALUES[block] & outside))
        depths = depth + np.cumsum(_NESTING_STEP[block] * outside, dtype=np.int32)
        if depths.max() > _MAX_NESTING:  # more than code that walks over it can bear
            raise ValueError(f"it is nested more than {_MAX_NESTING} deep")
        depth = int(depths[-1])
        quotes += int(np.count_nonzero(block == ord('"')))
    return _LETTERS * (1 if content.isascii() else 2) * len(content) + _TOKEN * values


def _array_need(length: int) -> int:
    return _NUMBER * length + _HEADER


class Archive:
    """A zip file opened with suspicion; use inside `read_archive`. Its size bounds what its members take in memory."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        with contextlib.ExitStack() as opened:
            file = opened.enter_context(open_regular(self.path))
            self._left = SOME + PER_BYTE * os.fstat(file.fileno()).st_size
            self._zip = opened.enter_context(zipfile.ZipFile(file))
            self._check_members()
            self._opened = opened.pop_all()

    def _check_members(self) -> None:
        members = sorted(self._zip.infolist(), key=lambda one: one.header_offset)
        if len({one.filename for one in members}) < len(members):
            raise ModelFileError(f"{self.path} holds a member twice; it was not written by dpgm")
        if any(one.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for one in members):
            raise ModelFileError(f"{self.path} is packed in a way that dpgm does not use; it was not written by dpgm")
        # Members that share their bytes would be larger together than the file allows.
        ends = [one.header_offset for one in members[1:]] + [self._zip.start_dir]
        for one, end in zip(members, ends, strict=True):
            if one.header_offset < 0 or one.header_offset + _LOCAL_HEADER + one.compress_size > end:
                raise ModelFileError(f"{self.path} holds members that overlap; it was not written by dpgm")

    def names(self) -> set[str]:
        """The members of the file."""
        return set(self._zip.namelist())

    def close(self) -> None:
        """Close the file."""
        self._opened.close()

    def document(self, name: str) -> dict[str, Any]:
        """A JSON object; ModelFileError when it is missing, too large or something else."""
        content = self._read(name, self._left // _LETTERS)
        self._take(name, _document_need(content))
        document = json.loads(content)
        if not isinstance(document, dict):
            raise ModelFileError(f"{self.path}: {name} must hold a JSON object")
        return document

    def array(self, name: str, length: int, types: tuple[type[np.generic], ...] = (np.int64, np.float64)) -> Array:
        """A numeric array of exactly `length` entries of one of these types."""
        self._take(name, _array_need(length))
        wrong = ModelFileError(f"{self.path}: {name} does not hold {length} numbers")
        with zipfile.ZipFile(io.BytesIO(self._read(name, 8 * length + _HEADER))) as npz:
            (member,) = npz.infolist()
            known = member.filename == "values.npy" and member.compress_type == zipfile.ZIP_STORED
            if not known or member.file_size > 8 * length + _HEADER:
                raise wrong
            content = npz.read(member)
        stream = io.BytesIO(content)
        if np.lib.format.read_magic(stream) != (1, 0):
            raise wrong
        shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
        if shape != (length,) or dtype not in map(np.dtype, types):
            raise wrong
        return np.frombuffer(content, dtype, count=length, offset=stream.tell())

    def _take(self, name: str, need: int) -> None:
        if need > self._left:
            raise ModelFileError(
                f"{self.path}: {name} needs more memory than a file of its size can ask for; it was not written by dpgm"
            )
        self._left -= need

    def _read(self, name: str, limit: int) -> bytes:
        try:
            info = self._zip.getinfo(name)
        except KeyError:
            raise ModelFileError(f"{self.path} has no {name}; it is not a file of this kind") from None
        if info.file_size > limit:
            raise ModelFileError(f"{self.path}: {name} claims {info.file_size} bytes, more than its content can need")
        with self._zip.open(info) as member:
            content = member.read(limit + 1)  # the header may lie about the size
        if len(content) > limit:
            raise ModelFileError(f"{self.path}: {name} is larger than its content can need")
        return content


def read_archive(path: str | Path, what: str, read: Callable[[Archive], T]) -> T:
    """Run a reader over an archive and turn every failure into a ModelFileError that names the file.

    PluginErrors pass: a file may name a component that is not installed.
    """
    archive = None
    try:
        archive = Archive(path)
        return read(archive)
    except PluginError:
        raise
    except ModelFileError as error:
        raise ModelFileError(str(error) if str(path) in str(error) else f"{path}: {error}") from None
    except DpgmError as error:
        raise ModelFileError(f"{path} is not a sound {what}: {error}") from None
    except FileNotFoundError:
        near = f"; did you mean {path}.dpgm?" if Path(f"{path}.dpgm").is_file() else f"; name a {what}"
        raise ModelFileError(f"there is no file {path}{near}") from None
    except OSError as error:
        raise ModelFileError(f"cannot read {path}: {error.strerror or type(error).__name__}") from None
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        hint = hint_not_a_model(path, what)
        raise ModelFileError(hint or f"{path} is damaged or not a {what} ({type(error).__name__})") from None
    finally:
        if archive is not None:
            archive.close()


# --- Hints on files of another kind, by their names alone -----------------------------------------

_RECORDS = (
    ".csv",
    ".csv.gz",
    ".tsv",
    ".txt",
    ".parquet",
    ".arrow",
    ".feather",
    ".ipc",
)
_OTHER_TABLES = (".xlsx", ".xls", ".ods", ".sav", ".zsav", ".sas7bdat", ".xpt", ".dta")
_NETWORKS = (".bif", ".uai")


def hint_not_a_model(path: str | Path, expected: str) -> str | None:
    """What is wrong with naming this file where a model or release is needed; None if its name does not show it."""
    quoted = shlex.quote(str(path))
    network = "dpgm export writes such files, and a spec can name the graph of one: [structure] bif = ..."
    return _hint(
        path,
        expected,
        (_RECORDS, "a table of records", "a spec that names it makes one: dpgm fit SPEC"),
        (_OTHER_TABLES, "a table of another program", "save the table as CSV, whose spec makes one: dpgm fit SPEC"),
        (".toml", "a spec or domain", f"a spec makes one, and says where: dpgm fit {quoted}"),
        (".ledger", "a ledger", f"show it with: dpgm ledger show {quoted}"),
        (
            ".labels.json",
            "labels that were found",
            f"a fit goes on from them: dpgm fit SPEC --set labels_from={quoted}",
        ),
        (_NETWORKS, "a network of other programs", network),
    )


def hint_not_a_spec(path: str | Path) -> str | None:
    """What is wrong with naming this file where a spec is needed; None if its name does not show it."""
    quoted = shlex.quote(str(path))
    return _hint(
        path,
        "spec",
        (_RECORDS, "a table of records", f"one that names it is written with: dpgm init {quoted}"),
        (_OTHER_TABLES, "a table of another program", "save it as CSV there, and name the CSV file here"),
        (".dpgm", "a model or release", f"show a model with: dpgm query {quoted}"),
        (".ledger", "a ledger", f"show it with: dpgm ledger show {quoted}"),
    )


def _hint(path: str | Path, expected: str, *kinds: tuple[str | tuple[str, ...], str, str]) -> str | None:
    """Return the sentence for the first kind (endings of names, what it is, advice) that fits the file's name."""
    name = Path(path).name.lower()
    for endings, what, advice in kinds:
        if name.endswith(endings):
            return printable(f"{path} is {what} by its name, and not a {expected}; {advice}")
    return None

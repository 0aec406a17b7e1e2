"""Commands whose output names play tricks: nothing that is there is replaced, and what is refused leaves nothing.

A case is a command of the command line, with names in the places of what it writes. It runs in a box: a folder with all
that it reads, with links, pipes, devices and folders under likely names, inside of another folder where nothing is
written unless a name leads there.
"""

import atexit
import contextlib
import io
import json
import os
import random
import shutil
import socket
import stat
import string
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import dpgm_core as dpgm
from dpgm.cli import main
from dpgm_core._util.toml import toml_value
from tests.fuzz.target import Broken

_DOMAIN = 'a = 2\nb = ["x", "y"]\nc = 2\n'
_SPEC = """name = {NAME}
data = "data.csv"
domain = "domain.toml"
neighbours = "add-remove"
budget = {{ epsilon = 1 }}
learner = {{ name = "naive-mle", l2 = 0.01 }}
structure = {{ cliques = [["a", "b"], ["c"]] }}
[ledger]
path = {LEDGER}
budget = {{ epsilon = 2 }}
create = true
[output]
folder = {FOLDER}
"""
_STUDY = """records = 50
repeat = 1
seed = 1
truth = "in.dpgm"
neighbours = "add-remove"
budget = { epsilon = 1 }
structure = { cliques = [["a", "b"]] }
learner = { name = "naive-mle", l2 = 0.01 }
"""
_LEARNER = ("--learner", "naive-mle", "--set", "learner.l2=0.01")
#: Of each command its words, and names of what it writes; in a spec where no word has them.
_COMMANDS: dict[str, tuple[list[str], dict[str, str]]] = {
    "fit": (["fit", "spec.toml"], {"NAME": "x", "LEDGER": "x.ledger", "FOLDER": "out"}),
    "fit_here": (["fit", "spec.toml"], {"NAME": "x", "LEDGER": "x.ledger", "FOLDER": "."}),
    "release": (["release", "spec.toml"], {"NAME": "x", "LEDGER": "x.ledger", "FOLDER": "."}),
    "learn": (["learn", "in.release.dpgm", *_LEARNER, "-o", "{OUT}"], {"OUT": "new.dpgm"}),
    "learn_two": (["learn", "in.release.dpgm", "two.release.dpgm", *_LEARNER, "-o", "{OUT}"],
                  {"OUT": "new.dpgm"}),
    "sample": (["sample", "in.dpgm", "-n", "3", "-o", "{OUT}"], {"OUT": "new.csv"}),
    "sample_packed": (["sample", "in.dpgm", "-n", "3", "-o", "{OUT}"], {"OUT": "new.csv.gz"}),
    "sample_arrow": (["sample", "in.dpgm", "-n", "3", "-o", "{OUT}"], {"OUT": "new.arrow"}),
    "sample_sets": (["sample", "in.dpgm", "-n", "3", "--datasets", "2", "-o", "{OUT}"], {"OUT": "new.csv"}),
    "complete": (["complete", "in.dpgm", "rows.csv", "-o", "{OUT}"], {"OUT": "new.csv"}),
    "complete_sample": (["complete", "in.dpgm", "old.csv", "-o", "{OUT}"], {"OUT": "new.csv"}),
    "complete_parquet": (["complete", "in.dpgm", "old.parquet", "-o", "{OUT}"], {"OUT": "new.parquet"}),
    "export": (["export", "in.dpgm", "--uai", "{OUT}"], {"OUT": "new.uai"}),
    "export_both": (["export", "net.dpgm", "--bif", "{BIF}", "--uai", "{OUT}", "--kind", "bayes"],
                    {"BIF": "new.bif", "OUT": "new.uai"}),
    "infer": (["infer", "model.uai", "--evidence", "one.evid", "--task", "MAR", "-o", "{OUT}"], {"OUT": "new.MAR"}),
    "report": (["report", "in.dpgm", "-o", "{OUT}"], {"OUT": "new.html"}),
    "report_annex": (["report", "in.dpgm", "-o", "{OUT}", "--annex", "spec.toml", "--allow-non-private"],
                     {"OUT": "new.html"}),
    "compare": (["compare", "in.dpgm", "in.release.dpgm", "-o", "{OUT}"], {"OUT": "new.html"}),
    "validate": (["validate", "spec.toml", "-o", "{OUT}"], {"OUT": "new.json"}),
    "init": (["init", "data.csv", "-o", "{OUT}"], {"OUT": "new"}),
    "init_again": (["init", "in/data.csv", "-o", "{OUT}", "--overwrite"], {"OUT": "in"}),
    "study": (["study", "study.toml", "-o", "{OUT}"], {"OUT": "new"}),
    "ledger": (["ledger", "create", "{OUT}", "--name", "y", "--epsilon", "1", "--neighbours", "add-remove"],
               {"OUT": "new.ledger"}),
    "plugin": (["new", "mechanism", "my-noise", "--folder", "{OUT}"], {"OUT": "in"}),
}  # fmt: skip
_SUFFIXES = (".dpgm", ".csv", ".csv.gz", ".arrow", ".parquet", ".uai", ".bif", ".html", ".json", ".ledger", ".MAR", "")
#: What specs read.
_READ = ("domain.toml", "data.csv")
#: Names, with any suffix, under which there is something odd.
_ODD = (
    *("link", "wrong", "dangling", "loop", "folder", "pipe", "null", "foreign", "empty", "socket"),
    *("hard-in", "hard-old", "hard-rows", "hard-model"),
)
_STRANGE = (
    *("", ".", "..", "...", "-", "--", "--help", "-o", "~", " ", "\t", "new\n", "new\r", "new\0", "\x1b[31mnew", "é"),
    *("\udcff", "\u202e", "-rf", "*", "new*", "$HOME", "%s", "{0}", "con", "new.", "new ", ".new", "..new"),
    *("\\", "a\\b", "a:b", "'", '"', "a" * 255, "a" * 300, "é" * 200, "a/" * 300 + "a", "/proc/self/environ"),
    *("/proc/self/mem", "/proc/self/fd/1", "file:///nowhere/a", "memory://a", "s3://a/b"),
)
#: Of a name that is sound or not, what may stand before it.
_BEFORE = (
    *("./", "in/../", "linkdir/", "linkdir/../", "../", "../work/", "folder/", "new/deeper/", "dead/", "BOX/"),
    *("BOX/../", "important.txt/", "null/", "loop/", "in//", "in/./", "out/"),
)


class Refused(Exception):
    """A command that was refused, in its own words."""


@cache
def _sound() -> Path:
    """What commands read, and what they wrote before; made once, and gone with the process."""
    folder = Path(tempfile.mkdtemp(prefix="dpgm-fuzz-box-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    domain = dpgm.Domain.from_dict({"a": 2, "b": ["x", "y"], "c": 2})
    lines = "".join(f"{a},{b},{c}\n" for a in (0, 1) for b in ("x", "y") for c in (0, 1)) * 6
    texts = {
        "domain.toml": _DOMAIN,
        "data.csv": f"a,b,c\n{lines}",
        "rows.csv": "a,b,c,note\n0,,1,hello\n,y,0,\n",
        "study.toml": f"{_STUDY}[domain]\n{_DOMAIN}",
        "model.uai": "MARKOV\n2\n2 2\n1\n2 0 1\n4\n .1 .2 .3 .4\n",
        "one.evid": "1 0 1\n",
        "important.txt": "not to be touched\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "in").mkdir()
    (folder / "in/data.csv").write_text(texts["data.csv"])
    structure = dpgm.Structure(domain, [("a", "b"), ("c",)])
    released = [
        dpgm.release(folder / "data.csv", structure, dpgm.Budget.pure(1), "laplace", neighbours="add-remove")
        for _ in range(2)
    ]
    for release, name in zip(released, ("in", "two"), strict=True):
        release.save(folder / f"{name}.release.dpgm")
    model = dpgm.learn(released[0], {"name": "naive-mle", "l2": 0.01}).model
    for name in ("in.dpgm", "old.dpgm"):
        model.save(folder / name)
    network = dpgm.Dag(domain, {"b": ["a"]}).structure()
    counted = dpgm.release(folder / "data.csv", network, dpgm.Budget.pure(1), "laplace", neighbours="add-remove")
    dpgm.learn(counted, "bayes-net").model.save(folder / "net.dpgm")
    dpgm.Ledger.create(folder / "old.ledger", name="old", budget=dpgm.Budget.pure(9), neighbours="add-remove")
    with _inside(folder):
        for words in (
            *(["sample", "in.dpgm", "-n", "3", "-o", f"old.{kind}"] for kind in ("csv", "csv.gz", "arrow", "parquet")),
            ["export", "in.dpgm", "--uai", "old.uai"],
            ["export", "net.dpgm", "--bif", "old.bif"],
            ["infer", "model.uai", "--task", "MAR", "-o", "old.MAR"],
            ["report", "in.dpgm", "-o", "old.html"],
        ):
            assert _ran(words)[0] == 0, words
    return folder


def _boxed(folder: Path, names: Mapping[str, str]) -> Path:
    """The box in a folder, with what odd there is of the names of a case; the place where commands run."""
    inner = folder / "work"
    shutil.copytree(_sound(), inner)
    (folder / "outer.txt").write_text("not to be touched\n")
    (inner / "linkdir").symlink_to("in")
    (inner / "dead").symlink_to("nowhere/at/all")
    for place in {Path(part) for name in names.values() for part in Path(name).parts if part.startswith(_ODD)}:
        _odd(inner, place.name)
    return inner


def _odd(inner: Path, name: str) -> None:
    """What a name of `_ODD` promises, in a folder."""
    stem, suffix = name[: name.find(".")] if "." in name else name, "".join(Path(name).suffixes)
    path = inner / name
    if path.parent != inner or os.path.lexists(path):
        return
    match stem:
        case "link":
            path.symlink_to(f"old{suffix}")
        case "wrong":
            path.symlink_to("important.txt")
        case "dangling":
            path.symlink_to(f"../absent{suffix}")
        case "loop":
            path.symlink_to(name)
        case "folder":
            path.mkdir()
            (path / "kept").write_text("kept\n")
        case "pipe":
            os.mkfifo(path)
        case "socket":
            with socket.socket(socket.AF_UNIX) as bound, _inside(inner):
                bound.bind(name)
        case "null" if os.geteuid() == 0:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        case "foreign":
            path.write_text("important\n")
        case "empty":
            path.touch()
        case "hard-in" | "hard-old" | "hard-rows" | "hard-model" if (inner / f"{stem[5:]}{suffix}").is_file():
            os.link(inner / f"{stem[5:]}{suffix}", path)


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _seen(folder: Path) -> dict[str, tuple[object, ...]]:
    """Everything in a folder: what it is, and what is in it."""
    found: dict[str, tuple[object, ...]] = {}
    for root, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(root) / name
            state = path.lstat()
            kind = stat.S_IFMT(state.st_mode)
            content: object = None
            if stat.S_ISREG(kind):
                content = path.read_bytes()
            elif stat.S_ISLNK(kind):
                content = path.readlink()
            found[str(path.relative_to(folder))] = (state.st_mode, content)
    return found


@cache
def named_outputs() -> dict[str, bytes]:
    """Each command with sound names."""
    _sound()  # which loads what commands need, so that no case takes memory for it
    return {name: json.dumps({"words": words, "names": names}).encode() for name, (words, names) in _COMMANDS.items()}


def spoil_outputs(rng: random.Random, content: bytes, other: bytes) -> tuple[bytes, list[str]]:
    """One name, or now and then all of them, replaced by another."""
    case = json.loads(content)
    names = list(case["names"])
    for name in names if rng.random() < 0.2 else [rng.choice(names)]:
        case["names"][name] = _trick(rng, case["names"][name], case["words"])
    return json.dumps(case).encode(), ["name"]


def _trick(rng: random.Random, sound: str, words: list[str]) -> str:
    suffix = sound[at:] if (at := sound.find(".", 1)) > 0 else ""
    how = rng.random()
    if how < 0.35:
        name = rng.choice([*_ODD, "old", "in", "x", "x.release"])
        name += rng.choice([suffix] * 4 + list(_SUFFIXES))
    elif how < 0.6:
        strange = rng.choice([*_STRANGE, "".join(rng.choices(string.printable, k=rng.randrange(1, 12)))])
        name = strange if strange.startswith(("/", "../")) else strange + rng.choice([suffix, suffix, ""])
    elif how < 0.8:
        read = [word for word in words if "." in word and "{" not in word]
        read += ["spec.toml", "domain.toml", "data.csv", "x.ledger", "x.dpgm", "x.release.dpgm", "out", "in"]
        read += ["old.csv.dpgm.json", "important.txt", "old.uai.names", ".x.reserved", "x.ledger-journal"]
        name = rng.choice([*read, "x.labels.json"])
    else:
        name = sound
    if "/" not in name and rng.random() < 0.4:
        name = rng.choice(_BEFORE) + name
    if rng.random() < 0.05:
        name += rng.choice(["/", "/.", "/..", "/new"])
    return name


def write_outputs(path: Path, sound: bytes) -> str:
    """Run the command of a case. Broken, where it replaces what it must not, or leaves something of what it refused."""
    case = json.loads(path.read_bytes())
    box = path.with_name("box")
    box.mkdir()
    try:
        names = {
            name: text.replace("BOX/../..", "BOX/..").replace("BOX", str(box / "work"))
            for name, text in case["names"].items()
        }
        if "NAME" not in names:  # no system hands over a NUL in a word
            names = {name: text.replace("\0", "") for name, text in names.items()}
        usual = {"NAME": "x", "LEDGER": "x.ledger", "FOLDER": "out"}
        try:
            spec = _SPEC.format(**{name: toml_value(names.get(name, text)) for name, text in usual.items()})
        except dpgm.DomainError as error:
            raise Refused(f"no spec can say it: {error}") from None
        inner = _boxed(box, names)
        (inner / "spec.toml").write_bytes(spec.encode("utf-8", "surrogateescape"))
        words = [word.format(**names) if word.startswith("{") else word for word in case["words"]]
        before = _seen(box)
        with _inside(inner):
            code, said = _ran(words)
            named = [Path(name.replace("\0", "")) for name in (*names.values(), "out")]
            named += (
                [Path(names["FOLDER"].replace("\0", "")) / names["NAME"].replace("\0", "")] if "NAME" in names else []
            )
            real = [Path(os.path.realpath(path.parent)) / path.name for path in named]
            places = {os.path.relpath(path.absolute(), box) for path in (*named, *real)}
            read = {f"work/{word}" for word in (*case["words"], *_READ) if not word.startswith(("{", "-"))}
        _check(before, _seen(box), code, said, words, places, read)
    finally:
        shutil.rmtree(box)
    if code:
        raise Refused(said.strip().splitlines()[-1])
    return "read"


def _ran(words: list[str]) -> tuple[int, str]:
    """Exit code and stderr."""
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(words)
        except SystemExit as left:
            code = left.code
    if code not in (0, 1, 2, None):
        raise Broken(f"exit code {code!r}")
    return int(code or 0), err.getvalue()  # type: ignore[call-overload]


def _check(
    before: Mapping[str, tuple[object, ...]],
    after: Mapping[str, tuple[object, ...]],
    code: int,
    said: str,
    words: list[str],
    places: set[str],
    read: set[str],
) -> None:
    new = sorted(set(after) - set(before))
    changed = sorted(name for name in before if before[name] != after.get(name))
    if code:
        last = said.strip().splitlines()[-1:] or [""]
        if not last[0].startswith("dpgm: ") or "internal fault" in said or "Traceback" in said:
            raise Broken(f"a failure without a sentence: {said[-300:]!r}")
        if new or changed:
            raise Broken(f"refused ({last[0]:.150}), but new {new} and changed {changed}")
        return
    strange = [name for name in new if not any(_belongs(name, place) for place in places)]
    if strange:
        raise Broken(f"written elsewhere: {strange}")
    hidden = [name for name in new if name.endswith((".part", ".reserved", "-journal"))]
    hidden = [name for name in hidden if not any(f"{place}/".startswith(f"{name}/") for place in places)]
    if hidden:
        raise Broken(f"left: {hidden}")
    for name in changed:
        is_init = words[0] == "init" and "--overwrite" in words and name.endswith(("/domain.toml", "/spec.toml"))
        if "--datasets" in words and name == "work/in.dpgm":  # which gets replicates, and keeps them
            continue
        kept = _kind(before[name][1]) == _kind(after.get(name, ("", None))[1])
        if not is_init and (name in read or not kept):
            raise Broken(f"replaced: {name}")


def _belongs(name: str, place: str) -> bool:
    """Whether a file is where a name leads: there, inside, beside with another ending, or a folder above."""
    start = place.removesuffix(".gz")
    start = start[: start.rfind(".")] if start.rfind(".") > start.rfind("/") else start
    return place == "." or name.startswith(start) or Path(place).is_relative_to(name)


def _kind(content: object) -> object:
    """What a file is by its start; of a zip file by its first member."""
    if isinstance(content, bytes):
        if content.startswith(b"BAYES"):
            return b"MA"  # a UAI model, as one that begins with MARKOV
        return content[30:42] if content.startswith(b"PK") else content[:2]
    return content

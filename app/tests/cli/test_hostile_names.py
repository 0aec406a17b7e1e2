"""Names, labels and remarks from files never reach the terminal as they are: it would obey them."""

import ast
import io
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from attrs import frozen
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import dpgm_core as dpgm
from app.tests.made import domain_of
from dpgm import cli
from dpgm.cli.common import print_err, print_json, print_out, print_table, progress_shown
from dpgm_core.components.registry import Broken, Registry
from dpgm_core.plugin import Component

# A title set by escape, a forged line, a bare C1 escape, reversed text, nothing visible, and rich's own markup.
HOSTILE = "[red]\x1b]0;owned\x07\nprivate: yes\r\x9b2J\u202e\u200b\u2028\x7f[/nope]"
COLUMN = "".join(HOSTILE.splitlines())  # one line, as the first line of a CSV file is


def assert_harmless(text: str) -> None:
    """Only line breaks and what prints; and no line is one that the name forged."""
    assert all(letter == "\n" or letter.isprintable() for letter in text), ascii(text)
    assert "\nprivate: yes" not in text


def toml(text: str) -> str:
    return '"' + "".join(f"\\U{ord(letter):08x}" for letter in text) + '"'


@pytest.fixture
def shown_harmlessly(dpgm_command):
    """Runs a command; its exit code is the expected one, and all that it shows is harmless. Returns that."""

    def run(expected: int, *words: object) -> str:
        code, out, err = dpgm_command(*words)
        assert code == expected, (words, err)
        assert_harmless(out + err)
        return out + err

    return run


@pytest.fixture
def hostile_model(tmp_path) -> Path:
    """A model and its release with a hostile attribute, label, unit and note, in files with a hostile name."""
    domain = domain_of(**{HOSTILE: [HOSTILE, "b"], "age": "young old"})
    structure = dpgm.Structure(domain, [(HOSTILE, "age"), ("age", HOSTILE), (HOSTILE,)])
    terms = dpgm.Terms(neighbours="add-remove", unit=HOSTILE)
    folder = tmp_path / "a\x1b]0;owned\x07b\u202e"
    folder.mkdir()
    codes = np.array([[0, 0], [1, 1], [1, 1], [0, 1]] * 100)
    release = dpgm.release(codes, structure, dpgm.Budget.pure(5), terms=terms, save_release=folder / "m.release.dpgm")
    model = dpgm.learn(release).model
    provenance = {**model.provenance, "notes": [HOSTILE], "converged": False}
    dpgm.Model(structure, model.potentials, releases=model.releases, provenance=provenance).save(folder / "m.dpgm")
    return folder / "m.dpgm"


def test_models_and_releases_are_shown_harmlessly(hostile_model, shown_harmlessly):
    """query, sample, compare and learn, and their refusals, which name what is known; --debug too."""
    folder, release = hostile_model.parent, hostile_model.with_name("m.release.dpgm")
    (folder / "d.csv").write_text("age\nold\n")
    copied = Path(shutil.copy(hostile_model, folder / "copy.dpgm"))
    shown = 0
    for expected, words in (
        (0, ("query", hostile_model)),
        (0, ("query", hostile_model, HOSTILE, "age")),
        (0, ("query", hostile_model, "age", "-g", f"{HOSTILE}=b", "--intervals", "0.9", "--replicates", "2")),
        (0, ("query", hostile_model, "--map")),
        (2, ("query", hostile_model, "zzz")),
        (2, ("query", hostile_model, HOSTILE, "-g", f"{HOSTILE}=b")),
        (2, ("query", hostile_model, "age", "-g", f"{HOSTILE}={HOSTILE}{HOSTILE}")),
        (2, ("query", hostile_model, "age", "--inference", HOSTILE)),
        (2, ("query", folder / HOSTILE, "age")),
        (2, ("--debug", "query", hostile_model, "age", "-g", f"{HOSTILE}=c")),
        (2, ("query", hostile_model, "\udcff")),
        (2, (HOSTILE,)),
        (0, ("sample", hostile_model, "-n", 3, "-o", folder / "s.csv", "--datasets", 2)),
        (2, ("sample", hostile_model, "-n", 3, "-o", folder / f"{HOSTILE}.txt")),
        (0, ("compare", hostile_model)),
        (0, ("compare", hostile_model, copied)),
        (0, ("compare", release, hostile_model)),
        (2, ("compare", hostile_model, hostile_model)),
        (2, ("compare", hostile_model, folder / "d.csv")),
        (2, ("compare", hostile_model, "--data", folder / "d.csv", "--allow-non-private")),
        (0, ("-v", "learn", release)),
        (2, ("learn", release, "--set", f"learner.{HOSTILE}=1")),
    ):  # fmt: skip
        shown += "\\x1b]0;owned" in shown_harmlessly(expected, *words)
    assert shown >= 17  # spelled out, not left out


def test_runs_and_ledgers_are_shown_harmlessly(spec, shown_harmlessly):
    """plan, fit, release, validate and ledger, on hostile domains, records and file names."""
    folder = spec.parent
    (folder / "domain.toml").write_text(
        f'[attributes.{toml(COLUMN)}]\nlabels = ["F", {toml(HOSTILE)}]\nunknown = {toml(HOSTILE)}\n'
        '[attributes.age]\nbins = [0, 40, 99]\nunknown = "?"\n'
    )
    text = spec.read_text().replace("visits.ledger", "visits\\u202e.ledger").replace('name = "visits"', 'name = "v"')
    spec.write_text(f"unit = '[red]one[/nope]'\n{text}")  # a ledger takes no unit that does not print
    (folder / "visits.csv").write_bytes(b"x\x1b[2J,age\n" + b"F\x1b[2J,30\n\xe2\x80\xae,5\x07\nM,1,2\n" * 20)
    ledger = folder / "out/visits\u202e.ledger"
    for expected, words in (
        (0, ("plan", spec)),
        (0, ("plan", spec, "--records", "100")),
        (2, ("plan", spec, "--set", "structure.cliques=[['zzz']]", "--set", f"learner={json.dumps('x' + HOSTILE)}")),
        (2, ("fit", spec)),
        (1, ("validate", spec)),
    ):
        shown_harmlessly(expected, *words)
    (folder / "visits.csv").write_bytes(COLUMN.encode().join([b'"', b'",age\n']) + b"F,30\n" * 50)
    quoted = 'data = { source = "csv", path = "visits.csv", quoting = true }'
    spec.write_text(spec.read_text().replace('data = "visits.csv"', quoted))
    for expected, words in (
        (0, ("validate", spec)),
        (0, ("-v", "fit", spec)),
        (0, ("release", spec)),
        (0, ("ledger", "show", ledger)),
        (2, ("fit", spec)),
    ):
        shown_harmlessly(expected, *words)


@frozen(kw_only=True)
class Sly:
    """A mechanism whose own words are hostile."""

    strength: int = dpgm.option(1, help=HOSTILE, unit=HOSTILE)

    def noise(self, sensitivity: dpgm.Sensitivity, budget: dpgm.Budget) -> object:
        raise RuntimeError(HOSTILE)


def test_the_words_of_plugins_are_shown_harmlessly(dpgm_command, shown_harmlessly, monkeypatch):
    """plugins, the message of whoever fails with --debug or without, and of whoever asks for a broken one."""
    registry = Registry([], [Broken(distribution="sly", version=HOSTILE, cause=HOSTILE)], [HOSTILE])
    sly = Component(kind="mechanism", name="sly", target="sly:Sly", summary="said ")
    object.__setattr__(sly, "summary", HOSTILE)  # whatever a declaration lets pass
    registry.add(sly, Sly, distribution=HOSTILE)
    monkeypatch.setattr("dpgm_core.components.registry.default_registry", lambda: registry)
    for words in (("plugins",), ("plugins", "sly"), ("plugins", "mechanism", "other"), ("plugins", HOSTILE, "sly")):
        _, out, err = dpgm_command(*words)
        assert_harmless(out + err)
        assert "\\x1b]0;owned" in out + err

    def fail() -> Registry:
        raise RuntimeError(COLUMN)

    monkeypatch.setattr("dpgm_core.components.registry.default_registry", fail)
    for words in (("plugins",), ("--debug", "plugins")):
        assert "internal fault" in shown_harmlessly(1, *words)


class Terminal(io.StringIO):
    """A stderr that somebody looks at."""

    def isatty(self) -> bool:
        return True


def test_progress_spells_its_tasks_out(monkeypatch):
    """On a terminal rich writes escapes of its own, but none of a task's, and takes no brackets for markup."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "300")
    with progress_shown() as report:
        report(HOSTILE, 1, 2)
        report(HOSTILE, 2, 2)
    shown = terminal.getvalue()
    assert "[red]\\x1b]0;owned" in shown and "[/nope]" in shown and "2 of 2" in shown
    assert not set("\x07\u202e\u200b\x9b") & set(shown)


@given(st.text(st.characters(), max_size=12), st.text(st.characters(), max_size=12))
def test_whatever_is_written_prints(one, two):
    """Every way to write, any text: one line of what prints each, a table's columns aligned, JSON that reads back."""
    runner = CliRunner()
    with runner.isolation() as (out, err, *_):
        print_out(one)
        print_err(two)
        print_table([one, "b"], [["x", two], [two, 1]])
        written, talked = out.getvalue().decode(), err.getvalue().decode()
    assert len(written.split("\n")) == 6 and len(talked.split("\n")) == 2
    assert_harmless(written + talked)
    with runner.isolation() as (out, *_):
        print_json({one: [two]})
        written = out.getvalue().decode()
    assert_harmless(written)
    assert json.loads(written) == json.loads(json.dumps({one: [two]}))


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_letters_that_a_stream_lacks_are_spelled_out(monkeypatch, encoding):
    """No crash, and JSON that reads back."""
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding))
    print_out("жü")
    print_json("жü")
    sys.stdout.flush()
    first, second = raw.getvalue().decode(encoding).splitlines()
    assert first == {"ascii": "\\u0436\\xfc", "latin-1": "\\u0436ü", "utf-8": "жü"}[encoding]
    assert json.loads(second) == "жü"


def writers(path: Path) -> list[str]:
    names = [ast.unparse(one.func) for one in ast.walk(ast.parse(path.read_text())) if isinstance(one, ast.Call)]
    ways = ("print", "click.secho", "click.echo")
    return [one for one in names if one in ways or one.endswith((".stdout.write", ".stderr.write"))]


def test_commands_write_through_one_place():
    """A new command cannot forget to spell names out: only `common` writes."""
    folder = Path(cli.__file__).parent
    assert {path.name for path in folder.glob("*.py") if writers(path)} == {"common.py"}

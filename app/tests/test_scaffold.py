"""`dpgm new`: what it makes works as it stands; what cannot be made leaves nothing behind."""

import ast
import importlib
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import dpgm_core
from dpgm.scaffold import files_of, scaffold
from dpgm_core._util.lazy import FACES
from dpgm_core.components.registry import Registry
from dpgm_core.errors import OptionError
from dpgm_core.plugin import KINDS, Component


@pytest.fixture(params=KINDS)
def made(request, tmp_path, monkeypatch):
    """(kind, folder, class) of a new plugin, importable."""
    name = f"trial-{request.param}"
    folder = scaffold(request.param, name, tmp_path)
    monkeypatch.syspath_prepend(str(folder))
    module = importlib.import_module(f"dpgm_trial_{request.param}.{request.param}")
    return request.param, folder, getattr(module, f"Trial{request.param.capitalize()}")


def test_a_new_plugin_keeps_its_contract_at_once(made):
    """The declaration names the class, which the registry loads and makes; the entry point names the package."""
    kind, folder, cls = made
    (component,) = importlib.import_module(f"dpgm_trial_{kind}").dpgm_components()
    assert component.target == f"{cls.__module__}:{cls.__name__}"
    registry = Registry()
    registry.add(component)
    assert registry.load(kind, f"trial-{kind}") is cls
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["dpgm"] == {project["name"]: f"dpgm_trial_{kind}"}
    assert (folder / f"dpgm_trial_{kind}" / "py.typed").exists()


@pytest.mark.landing
def test_a_new_plugin_passes_the_conformance_kit(made, tmp_path):
    """At a small profile; its own tests name the class for the kit. The command checks a source below."""
    testing = pytest.importorskip("dpgm_testing")
    kind, folder, cls = made
    tests = {}
    exec((folder / "tests" / "test_conformance.py").read_text(), tests)
    conformance = tests[f"Test{cls.__name__}"]
    assert conformance.kind == kind and conformance.component is cls
    if kind != "source":
        small = testing.Profile(name="small", examples=3, draws=20_000, shrink=False)
        report = testing.check_component(cls, kind, profile=small)
        assert report.ok, str(report)


@pytest.mark.landing
def test_a_new_source_passes_dpgm_check_with_the_record_checks_run(tmp_path):
    """No check of a source with rows is skipped, as the declaration says how the kit gives it records."""
    pytest.importorskip("hypothesis")
    folder = scaffold("source", "trial-fresh", tmp_path)
    info = folder / "dpgm_trial_fresh-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dpgm-trial-fresh\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text("[dpgm]\ndpgm-trial-fresh = dpgm_trial_fresh\n")
    path = os.pathsep.join([str(folder), str(Path(dpgm_core.__file__).parents[1])])
    done = subprocess.run(
        [sys.executable, "-c", "from dpgm.cli import main; main()", "check", "dpgm-trial-fresh", "--json"],
        env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (report,) = json.loads(done.stdout)
    assert report["target"] == "source 'trial-fresh'"
    skipped = {one["message"] for one in report["outcomes"] if one["status"] != "passed"}
    assert all("needs 'reduces'" in why for why in skipped) and len(skipped) <= 1
    assert sum(one["status"] == "passed" for one in report["outcomes"]) >= 15


@pytest.mark.sampled(6)
def test_a_new_plugin_imports_the_public_face_only(made):
    """Names of the public faces alone; discovery loads no numpy."""
    kind, folder, _ = made
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dpgm_core"):
                assert node.module in FACES
                assert {alias.name for alias in node.names} <= set(importlib.import_module(node.module).__all__)
    code = f"import sys, dpgm_trial_{kind} as p; list(p.dpgm_components()); print('numpy' in sys.modules)"
    path = os.pathsep.join([str(folder), str(Path(dpgm_core.__file__).parents[1])])
    environment = os.environ | {"PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_templates_are_filled_and_say_what_to_do(kind):
    """No placeholder is left; every file compiles; the README and the module say TODO."""
    files = files_of(kind, "two-words")
    assert not [path for path, content in files.items() if "$" in content]
    assert all(compile(content, path, "exec") for path, content in files.items() if path.endswith(".py"))
    assert "TODO" in files[f"dpgm_two_words/{kind}.py"] and "## To do" in files["README.md"]
    lines = [line for path, content in files.items() if path.endswith(".py") for line in content.splitlines()]
    assert max(map(len, lines)) <= 120 and "class TwoWords:" in lines


def test_a_mechanism_says_what_a_privacy_claim_must_bring():
    """Theorem, all shifts, exact arithmetic, cost and files, before any code."""
    head = files_of("mechanism", "mine")["dpgm_mine/mechanism.py"].split('"""')[1]
    for word in ("theorem", "l0, l1, l2 and linf", "floating-point", "cost", "__attrs_post_init__", "cannot prove"):
        assert word in head
    assert files_of("engine", "mine") == files_of("inference", "mine")


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [
        ("mechanisms", "mine", "did you mean 'mechanism'"),
        ("noise", "mine", "no kind of plugin 'noise'"),
        ("learner", "My_Learner", "small letters, digits and single hyphens"),
        ("learner", "", "small letters"),
        ("learner", "a--b", "single hyphens"),
        ("learner", "3d", "a letter first"),
        ("learner", "../escape", "cannot be called '../escape'"),
        ("learner", "a/b", "cannot be called"),
        ("learner", "mine\n", "cannot be called"),
        ("learner", "dpgm-mine", "leave 'dpgm-' out"),
        ("learner", "dpgm", "leave 'dpgm-' out"),
        ("mechanism", "laplace", "offered by dpgm-laplace"),
        ("inference", "core", "dpgm-core .* is installed already"),
    ],
)
def test_wrong_requests_make_nothing(kind, name, words, tmp_path):
    with pytest.raises(OptionError, match=words):
        scaffold(kind, name, tmp_path)
    assert not list(tmp_path.iterdir())


def test_names_of_other_kinds_are_free(tmp_path):
    """A learner may be called what a mechanism of another distribution is called."""
    registry = Registry()
    registry.add(Component(kind="mechanism", name="same", target="a:B", summary="s"), distribution="other")
    assert scaffold("learner", "same", tmp_path, registry=registry).name == "dpgm-same"
    with pytest.raises(OptionError, match="offered by other"):
        scaffold("mechanism", "same", tmp_path, registry=registry)


@pytest.mark.parametrize("exists", ["file", "folder", "link"])
def test_what_exists_is_never_touched(exists, tmp_path):
    """Files, folders with or without content, dangling links: refused, unchanged."""
    target = tmp_path / "dpgm-mine"
    if exists == "file":
        target.write_text("mine")
    elif exists == "folder":
        target.mkdir()
    else:
        target.symlink_to(tmp_path / "nowhere")
    with pytest.raises(OptionError, match="exists already"):
        scaffold("learner", "mine", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["dpgm-mine"]
    assert exists != "folder" or not list(target.iterdir())


def test_a_failure_half_way_leaves_nothing(tmp_path, monkeypatch):
    """The third file cannot be written: an OptionError, and no trace of the first two."""
    written = []
    original = Path.write_text

    def full_disk(self, *arguments, **options):
        written.append(self)
        if len(written) == 3:
            raise OSError(28, "No space left on device")
        return original(self, *arguments, **options)

    monkeypatch.setattr(Path, "write_text", full_disk)
    with pytest.raises(OptionError, match="No space left on device; nothing was written"):
        scaffold("learner", "mine", tmp_path)
    assert len(written) == 3 and not list(tmp_path.iterdir())


def test_the_source_template_reads_every_line(tmp_path):
    """JSON Lines by hand: numbers, texts, nulls, nested and broken lines all come out as the domain says."""
    files = files_of("source", "trial-lines")
    names: dict[str, object] = {"__name__": "trial_lines"}
    exec(compile(files["dpgm_trial_lines/source.py"], "source.py", "exec"), names)
    domain = dpgm_core.Domain(
        [dpgm_core.Attribute.of_labels("a", ["1", "true"], unknown="?", null="none"),
         dpgm_core.Attribute.of_bins("b", [0, 10, 20], unknown="?")]
    )  # fmt: skip
    rows = [["b", "x", "a"], [3, 0, 1], ["15", 0, 1.0], [None, 0, True], [99, 0, [1]], [1, 0, None], [1, 2]]
    lines = [json.dumps(row) for row in rows] + ["{broken", "[1, 2, 3, 4]", "NaN", ""]
    (tmp_path / "r.jsonl").write_text("\n".join(lines) + "\n")
    (batch,) = names["TrialLines"](path=tmp_path / "r.jsonl").batches(domain, ["a", "b"])
    unknown, null = domain["a"].unknown, domain["a"].null
    assert batch[0].tolist() == [0, 0, 1, unknown, null, *[unknown] * 5]
    assert batch[1].tolist()[:4] == [0, 1, domain["b"].null, domain["b"].unknown]

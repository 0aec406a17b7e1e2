"""The example plugins keep the walls that every third party's plugin has to keep, read from their sources."""

import ast
import importlib
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from dpgm_core._util.lazy import FACES

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted(path.parent for path in (ROOT / "docs/examples/plugins").glob("*/pyproject.toml"))
PACKAGE = {path: path.name.replace("-", "_") for path in EXAMPLES}


def test_there_are_two():
    """A mechanism drawn by another library, and an inference engine."""
    assert [path.name for path in EXAMPLES] == ["dpgm-opendp", "dpgm-trw"]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_examples_import_the_public_face_only(example):
    """Names of the public faces; no other plugin."""
    for path in (example / PACKAGE[example]).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("dpgm_"):
                assert node.module.split(".")[0] in ("dpgm_core", PACKAGE[example])
                if node.module.startswith("dpgm_core"):
                    assert node.module in FACES
                    assert {alias.name for alias in node.names} <= set(importlib.import_module(node.module).__all__)
            elif isinstance(node, ast.Import):
                assert not [alias.name for alias in node.names if alias.name.startswith("dpgm_")]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_examples_are_whole_distributions(example):
    """Entry point named like the distribution, README, types, tests; discovery loads no library."""
    project = tomllib.loads((example / "pyproject.toml").read_text())["project"]
    assert project["name"] == example.name
    assert project["entry-points"]["dpgm"] == {example.name: PACKAGE[example]}
    assert (example / "README.md").exists() and list((example / "tests").glob("test_*.py"))
    assert (example / PACKAGE[example] / "py.typed").exists()
    heavy = {"numpy", "opendp"}
    code = f"import sys, {PACKAGE[example]} as p; [*p.dpgm_components()]; print({heavy} & {{*sys.modules}})"
    path = os.pathsep.join([str(example), str(ROOT)])
    environment = os.environ | {"PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == "set()", done.stderr

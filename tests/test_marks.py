"""Plain `pytest` and `pytest -m landing` run every test between them, and the kit in full in the second."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from dpgm_testing import InferenceConformance

ROOT = Path(__file__).resolve().parents[1]


class Item:
    """The part of a pytest item that conftest.py looks at."""

    def __init__(self, name, mark=None, cls=None, folder="tests/privacy"):
        self.name, self.cls, self.path = name, cls, ROOT / folder / "test_x.py"
        self.nodeid = f"{folder}/test_x.py::{name}"
        self.marks = {mark.name: mark} if mark else {}

    def get_closest_marker(self, name):
        return self.marks.get(name)

    def add_marker(self, name):
        self.marks[name] = None


def landing(request, expression, items):
    """The names of the items that conftest.py marks under a marker expression."""
    plugin = dict(request.config.pluginmanager.list_name_plugin())[str(ROOT / "conftest.py")]
    plugin.pytest_collection_modifyitems(SimpleNamespace(option=SimpleNamespace(markexpr=expression)), items)
    return [item.name for item in items if "landing" in item.marks]


@pytest.mark.parametrize("expression", ["not landing", "landing"])
def test_cases_of_a_sampled_test_are_shared_out(request, expression):
    """Every third stays, of each test by itself, whatever is selected; a folder is left to landing as a whole."""
    items = [Item(f"{test}[{case}]", pytest.mark.sampled(3).mark) for test in ("a", "b") for case in range(4)]
    items += [Item("kills", folder="tests/kill"), Item("plain")]
    assert landing(request, expression, items) == ["a[1]", "a[2]", "b[1]", "b[2]", "kills"]


def test_conformance_runs_in_both(request):
    """Quick in one and in full in the other; a class that names its own profile runs once."""
    ours, short = SimpleNamespace(profile=None), SimpleNamespace(profile="quick")
    for expression, expected in {"not landing": [], "landing": ["test_check[a]", "core"]}.items():
        items = [Item("test_check[a]", cls=ours), Item("core", pytest.mark.conformance.mark)]
        items += [Item("test_check[b]", cls=short), Item("test_other", cls=ours)]
        assert landing(request, expression, items) == expected


@pytest.mark.parametrize(("named", "profile"), [(None, "default"), ("quick", "quick")])
def test_the_environment_names_the_profile_of_a_class(monkeypatch, named, profile):
    """Where a class names none; `.ci/run` must not inherit one."""
    monkeypatch.delenv("DPGM_CONFORMANCE_PROFILE", raising=False)
    if named:
        monkeypatch.setenv("DPGM_CONFORMANCE_PROFILE", named)
    cls = type("Tree", (InferenceConformance,), {"component": "junction-tree"})
    assert cls.subject().profile.name == profile
    own = type("Own", (InferenceConformance,), {"component": "junction-tree", "profile": "thorough"})
    assert own.subject().profile.name == "thorough"


def test_this_session_is_quick_only_where_landing_is_left_out(request):
    """The hook that sets the environment has run."""
    if request.config.option.markexpr == "not landing":
        assert "DPGM_CONFORMANCE_PROFILE" in os.environ


def test_ci_runs_both():
    """README's command as it stands, and the marker; with no profile of the caller's environment."""
    run = (ROOT / ".ci/run").read_text()
    assert 'in_copy tests "$tests"' in run and "pytest -q -n auto -m landing" in run
    (unset,) = (line for line in run.splitlines() if line.startswith("unset "))
    assert "DPGM_CONFORMANCE_PROFILE" in unset

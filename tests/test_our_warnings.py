"""What ends a test, which tests run where, and that what a plugin declares is checked at once."""

import os
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest

from dpgm_core.errors import PluginError
from dpgm_core.plugin import Component
from dpgm_testing import InferenceConformance


def warned(module: str, category: type[Warning]) -> list[str]:
    """What is left of a warning that meets the filters of pyproject.toml; raises where it is an error."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.warn_explicit("words", category, "file.py", 1, module=module, registry={})
    return [str(one.message) for one in seen]


@pytest.mark.parametrize(
    "module", ["dpgm_core.model", "dpgm_eb_map.learner", "tests.inference.test_loopy_bp", __name__, "conftest"]
)
@pytest.mark.parametrize("category", [RuntimeWarning, UserWarning, ResourceWarning, SyntaxWarning])
def test_our_own_are_errors(module, category):
    """Overflows, files left open and whatever else our modules, plugins and tests cause."""
    with pytest.raises(category, match="words"):
        warned(module, category)


@pytest.mark.parametrize("category", [RuntimeWarning, UserWarning, DeprecationWarning, FutureWarning])
def test_those_of_other_code_are_reported(category):
    """A first run on newer releases than ours does not fail for what they say to each other."""
    assert warned("scipy.optimize._lbfgsb_py", category) == ["words"]


@pytest.mark.parametrize("category", [DeprecationWarning, PendingDeprecationWarning, FutureWarning])
def test_a_deprecation_that_our_code_meets_is_reported(category):
    """numpy blames its caller: what it will drop one day works today."""
    assert warned("dpgm_core.structure.tables", category) == ["words"]


def test_an_exception_that_nobody_sees_is_an_error():
    """Raised where Python can only print it, as in a finaliser, it would be lost."""
    with pytest.raises(pytest.PytestUnraisableExceptionWarning):
        warned("_pytest.unraisableexception", pytest.PytestUnraisableExceptionWarning)


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


@pytest.mark.parametrize("wrong", [
    {"kind": "noise"}, {"name": "A"}, {"name": 3}, {"target": "x.y"}, {"target": "x:y.z"}, {"summary": "a\nb"},
    {"records": "x.y"}, {"takes": "x:Y"}, {"takes": ("x.Y",)}, {"takes": (3,)}, {"takes": ["x:Y"]},
    {"kind": "learner", "takes": ("x:Y",)}, {"kind": "learner", "records": "x:y"},
])  # fmt: skip
def test_declarations_are_checked(wrong):
    """A component's kind, kebab-case name, target and one-line summary."""
    good = {"kind": "source", "name": "mine", "target": "a.b:C", "summary": "s"}
    assert Component(**good) and Component(**good, records="x:y", takes=("a.b:C", "a:Outer.Inner"))
    with pytest.raises(PluginError):
        Component(**good | wrong)

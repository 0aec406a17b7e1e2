"""Faces: names load on first use, and once."""

import sys
from types import ModuleType

import pytest

from dpgm_core._util.lazy import face


@pytest.fixture
def package(monkeypatch):
    made, module = ModuleType("lender"), ModuleType("lender.shelf")
    made.__path__, made.__all__ = [], ["b", "a"]
    made.__getattr__, made.__dir__ = face("lender", {"shelf": ["a", "b"]})
    module.a, module.b = object(), object()
    monkeypatch.setitem(sys.modules, "lender", made)
    monkeypatch.setitem(sys.modules, "lender.shelf", module)
    return made


def test_names_load_on_first_use_and_once(package):
    """The module's own object, which then stands in the package: the module is not asked again."""
    assert "a" not in vars(package)
    assert package.a is sys.modules["lender.shelf"].a
    sys.modules["lender.shelf"].a = "another"
    assert package.a != "another"
    assert dir(package) == ["a", "b"]


def test_what_no_module_lends_is_refused(package):
    """AttributeError names the package, so that hasattr and star imports behave."""
    assert not hasattr(package, "shelves")
    with pytest.raises(AttributeError, match="'lender' has no attribute 'shelves'"):
        package.shelves

"""A folder of kernels of one's own, as a plugin or a changed checkout would have them, and a cache of one's own."""

import importlib
import sys
from pathlib import Path

import pytest

KERNELS = """
from dpgm_core.inference.kernels.loading import jit
from {name}_inner import changed

@jit("float64(float64)")
def kernel(x):
    return changed(x) * 2.0
"""
INNER = """
from dpgm_core.inference.kernels.loading import jit

@jit
def changed(x):
    return x + {added}
"""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The folder that kernels are kept in during a test; it does not exist yet."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    return tmp_path / "numba" / "dpgm"


@pytest.fixture
def load(tmp_path, monkeypatch):
    """load(added) -> a kernel x -> 2 (x + added), compiled or from disk as in a new process."""
    from dpgm_core.inference.kernels import loading as caching

    folder = tmp_path / "kernels"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    name = "dpgm_test_kernels"

    def loaded(added=1.0):
        (folder / f"{name}.py").write_text(KERNELS.format(name=name))
        (folder / f"{name}_inner.py").write_text(INNER.format(added=added))
        for module in (name, f"{name}_inner"):
            sys.modules.pop(module, None)
        importlib.invalidate_caches()
        for one in (caching._sources, caching._environment, caching._warn_uncached, caching._warn_unused):
            one.cache_clear()
        kernel = importlib.import_module(name).kernel
        assert kernel.loaded is kernel.loaded
        return kernel

    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # files change within a second
    yield loaded
    for module in (name, f"{name}_inner"):
        sys.modules.pop(module, None)

"""The pytest plugin checks a distribution from any folder, and is light."""

import subprocess
import sys
from importlib import metadata

import pytest


def pytest_in(folder, *arguments):
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    if "dpgm_core.testing.pytest_plugin" not in {point.value for point in metadata.entry_points(group="pytest11")}:
        command += ["-p", "dpgm_core.testing.pytest_plugin"]  # core was installed before the kit was
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


def test_pytest_checks_a_distribution_from_any_folder(tmp_path, installed):
    """No code is written, tests that lie around are left alone, the header says what is tested."""
    if not installed("dpgm-laplace"):
        pytest.skip("dpgm-laplace is not installed")
    (tmp_path / "test_other.py").write_text("def test_other(): assert False\n")
    done = pytest_in(tmp_path, "--dpgm-plugin", "dpgm-laplace", "-k", "cost-within or refuses or hockey", "-rs")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed, 1 skipped" in done.stdout and "dpgm conformance: dpgm-laplace" in done.stdout
    assert "profile default; mechanism laplace" in done.stdout and "needs 'approx'" in done.stdout


@pytest.mark.parametrize("name", ["dpgm-nowhere", "numpy"])
def test_pytest_refuses_what_offers_nothing(tmp_path, name):
    """Unknown distributions and those without components end in an error, not in 0 tests."""
    done = pytest_in(tmp_path, "--dpgm-plugin", name)
    assert done.returncode != 0 and name in done.stderr


def test_the_pytest_plugin_is_light():
    """Loading it, as every pytest run does, imports neither numpy nor hypothesis."""
    code = (
        "import sys, dpgm_core.testing.pytest_plugin; print([m for m in ('numpy', 'hypothesis') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

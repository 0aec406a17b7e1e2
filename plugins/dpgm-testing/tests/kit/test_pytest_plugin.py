"""The pytest plugin checks a distribution from any folder, and is light."""

import subprocess
import sys
from importlib import metadata

import pytest


def pytest_in(folder, *arguments):
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    if "dpgm_testing.pytest_plugin" not in {point.value for point in metadata.entry_points(group="pytest11")}:
        command += ["-p", "dpgm_testing.pytest_plugin"]  # core was installed before the kit was
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


@pytest.mark.landing
def test_pytest_checks_a_distribution_from_any_folder(tmp_path, installed):
    """No code is written, tests that lie around are left alone, the header says what is tested."""
    if not installed("dpgm-laplace"):
        pytest.skip("dpgm-laplace is not installed")
    (tmp_path / "test_other.py").write_text("def test_other(): assert False\n")
    done = pytest_in(tmp_path, "--dpgm-plugin", "dpgm-laplace", "-k", "cost-within or refuses or hockey", "-rs")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed, 1 skipped" in done.stdout and "dpgm conformance: dpgm-laplace" in done.stdout
    assert "profile default; mechanism laplace" in done.stdout and "needs 'approx'" in done.stdout


@pytest.mark.landing
@pytest.mark.parametrize("name", ["dpgm-nowhere", "numpy"])
def test_pytest_refuses_what_offers_nothing(tmp_path, name):
    """Unknown distributions and those without components end in an error, not in 0 tests."""
    done = pytest_in(tmp_path, "--dpgm-plugin", name)
    assert done.returncode != 0 and name in done.stderr


def test_the_pytest_plugin_is_light():
    """Loading it, as every pytest run does, imports neither numpy nor hypothesis."""
    code = "import sys, dpgm_testing.pytest_plugin; print([m for m in ('numpy', 'hypothesis') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.landing
def test_pytest_runs_tests_through_another_engine(tmp_path):
    """`--dpgm-engine` gives the engine under the name of the junction tree, says so, and skips what it cannot hold."""
    (tmp_path / "test_mine.py").write_text(
        "import dpgm_core as dpgm\n"
        "def test_engine(): assert type(dpgm.make('inference', 'junction-tree')).__name__ == 'Through'\n"
        "def test_large():\n"
        "    wide = dpgm.Domain.from_sizes({f'x{n}': 10 for n in range(15)})\n"
        "    dpgm.make('inference', 'junction-tree').compile(dpgm.Structure(wide, [wide.names]))\n"
    )
    done = pytest_in(tmp_path, "--dpgm-engine", "loopy-bp", "-rs", "test_mine.py")
    assert "1 passed, 1 skipped" in done.stdout and "loopy-bp refuses what the test needs" in done.stdout
    assert "dpgm engine: loopy-bp in the place of junction-tree" in done.stdout
    done = pytest_in(tmp_path, "--dpgm-engine", "loppy-bp")
    assert done.returncode != 0 and "did you mean 'loopy-bp'" in done.stderr

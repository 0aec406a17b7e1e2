"""Wheels of core and of each plugin work when installed outside the checkout."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PLUGINS = sorted(path.parent for path in (ROOT / "plugins").glob("*/pyproject.toml"))

TINY_FIT = """
import dpgm_core as dpgm
structure = dpgm.Structure(dpgm.Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
codes = {"a": [0, 1, 1, 0] * 50, "b": [0, 1, 1, 1] * 50}
fit = dpgm.fit(codes, structure, dpgm.Budget.pure(5), neighbours="add-remove")
fit.model.save("tiny.dpgm")
print(dpgm.load_model("tiny.dpgm").marginal(["a"]))
"""


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command far from the checkout; its output is the reason if it fails."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "DPGM"))}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """One wheel per distribution, built without network."""
    pytest.importorskip("build")
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("wheels")
    for source in (ROOT, *PLUGINS):
        run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, source, cwd=folder)
    found = sorted(folder.glob("*.whl"))
    assert len(found) == 1 + len(PLUGINS)
    return found


@pytest.mark.slow
def test_wheels_hold_what_they_should(wheels):
    """Each wheel has its package, `py.typed` and the licence expression, and no tests or documentation."""
    for wheel in wheels:
        package = wheel.name.split("-")[0]
        names = zipfile.ZipFile(wheel).namelist()
        assert f"{package}/__init__.py" in names
        assert f"{package}/py.typed" in names
        assert {name.split("/")[0] for name in names} == {package, f"{'-'.join(wheel.name.split('-')[:2])}.dist-info"}


@pytest.mark.slow
def test_wheels_work_outside_the_checkout(wheels, tmp_path):
    """In a new virtual environment `dpgm plugins` lists every distribution, and a fit goes through, save and load.

    The environment sees the libraries of this one, but none of its editable installs: those hang on .pth files.
    """
    venv = tmp_path / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", venv, cwd=tmp_path)
    scripts = venv / ("Scripts" if os.name == "nt" else "bin")
    python = scripts / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", "--quiet"]
    run(*pip, "install", "--no-index", "--no-deps", *wheels, cwd=tmp_path)
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path).strip())
    libraries = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    (site / "libraries.pth").write_text("\n".join(libraries) + "\n")

    here = run(python, "-c", "import dpgm_core; print(dpgm_core.__file__)", cwd=tmp_path)
    assert Path(here.strip()).is_relative_to(venv)
    listed = run(scripts / "dpgm", "plugins", cwd=tmp_path)
    for plugin in PLUGINS:
        assert plugin.name in listed
    assert run(python, "-W", "error", "-c", TINY_FIT, cwd=tmp_path).strip()


def test_requirements_name_every_first_party_plugin():
    """`requirements.txt` installs core and each folder under plugins/, editable."""
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    wanted = {"-e ."} | {f"-e plugins/{plugin.name}" for plugin in PLUGINS}
    assert {line.strip() for line in lines if line and not line.startswith("#")} == wanted

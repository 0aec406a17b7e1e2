"""Wheels of core and of each plugin work when installed outside the checkout."""

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


@pytest.fixture(scope="module")
def wheels(wheel_of):
    """One wheel per distribution, built without network."""
    return [wheel_of(source) for source in (ROOT, *PLUGINS)]


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
def test_wheels_work_outside_the_checkout(wheels, environment_with, run_outside, tmp_path):
    """In a new virtual environment `dpgm plugins` lists every distribution, and a fit goes through, save and load."""
    scripts = environment_with(tmp_path, wheels)
    here = run_outside("python", "-c", "import dpgm_core; print(dpgm_core.__file__)", cwd=tmp_path, scripts=scripts)
    assert Path(here.strip()).is_relative_to(tmp_path)
    listed = run_outside("dpgm", "plugins", cwd=tmp_path, scripts=scripts)
    assert "broken:" not in listed
    for plugin in PLUGINS:
        assert plugin.name in listed
    assert run_outside("python", "-W", "error", "-c", TINY_FIT, cwd=tmp_path, scripts=scripts).strip()


def test_requirements_name_every_first_party_plugin():
    """`requirements.txt` installs core and each folder under plugins/, editable."""
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    wanted = {"-e ."} | {f"-e plugins/{plugin.name}" for plugin in PLUGINS}
    assert {line.strip() for line in lines if line and not line.startswith("#")} == wanted

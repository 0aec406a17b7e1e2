"""Wheels of core and of each plugin work when installed outside the checkout."""

import re
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PLUGINS = sorted(path.parent for path in (ROOT / "plugins").glob("*/pyproject.toml"))
#: Distributions that need an engine, which the README's commands do not install.
# Plugins and an extra of core for engines, which `.ci/engines.py` has environments for.
ENGINES = {"dpgm-spark", "dpgm-sql", "remote"}

TINY_FIT = """
import warnings
warnings.filterwarnings("error", module="dpgm_|__main__")
warnings.filterwarnings("default", category=DeprecationWarning)
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
    assert run_outside("python", "-c", TINY_FIT, cwd=tmp_path, scripts=scripts).strip()


def test_requirements_name_every_first_party_plugin():
    """`requirements.txt` installs core and each folder under plugins/, editable, but those that need an engine."""
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    wanted = {"-e ."} | {f"-e plugins/{plugin.name}" for plugin in PLUGINS if plugin.name not in ENGINES}
    assert {line.strip() for line in lines if line and not line.startswith("#")} == wanted


def installed(requirements, pinned):
    """Every distribution that these requirements pull in on this machine; skips if one is not as `pinned`."""
    found = {}
    wanted = list(requirements)
    while wanted:
        one = wanted.pop()
        name = canonicalize_name(one.name)
        if name.startswith("dpgm-") or (name in found and one.extras <= found[name]):
            continue
        found[name] = found.get(name, set()) | one.extras
        if metadata.version(name) not in pinned.get(name, [metadata.version(name)]):
            pytest.skip(f"{name} {metadata.version(name)} is not the version in constraints.txt")
        extras = ["", *one.extras]
        below = [Requirement(text) for text in metadata.requires(name) or []]
        wanted += [
            each
            for each in below
            if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in extras)
        ]
    return set(found)


def test_constraints_pin_what_the_requirements_pull_in():
    """`constraints.txt` has exact versions only, of everything the requirements need here and of nothing else."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [Requirement(line) for line in lines if not line.startswith("#")]
    assert all(re.fullmatch(r"==[\w.]+", str(one.specifier)) and not one.url and not one.extras for one in pins)
    pinned = {}
    for one in pins:
        pinned.setdefault(canonicalize_name(one.name), []).append(str(one.specifier).removeprefix("=="))
    wanted = []
    for folder in (ROOT, *(plugin for plugin in PLUGINS if plugin.name not in ENGINES)):
        project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
        extras = project.get("optional-dependencies", {})
        texts = [text for name in extras if name not in ENGINES for text in extras[name]]
        wanted += [*project["dependencies"], *texts]
    development = (line.split("#")[0].strip() for line in (ROOT / "requirements-dev.txt").read_text().splitlines())
    wanted += [line for line in development if line and not line.startswith("-")]
    assert installed(map(Requirement, wanted), pinned) == set(pinned)

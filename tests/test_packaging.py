"""Wheels of every distribution: what they hold, what they require, what a package index shows; and the name `dpgm`."""

import re
import runpy
import shutil
import sys
import tomllib
import zipfile
from email import message_from_bytes
from email.message import Message
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import dpgm
import dpgm_core
from dpgm.progress import shown
from dpgm.scaffold import scaffold
from dpgm_core.components.registry import version_bounds

ROOT = Path(__file__).resolve().parents[1]
KIT = ROOT / "plugins/dpgm-testing"
PLUGINS = sorted(path.parent for path in (ROOT / "plugins").glob("*/pyproject.toml") if path.parent != KIT)
NAME = ROOT / "app"
#: What is published, as the script that builds it says.
OURS = list(runpy.run_path(str(ROOT / "wheels/build.py"))["distributions"]())
EXAMPLES = sorted(path.parent for path in (ROOT / "docs/examples/plugins").glob("*/pyproject.toml"))
#: Plugins, and extras of core, that the README's commands do not install; `.ci/engines.py` has environments for them.
ENGINES = {"dpgm-dask", "dpgm-spark", "dpgm-sql", "formats", "remote"}
#: Pinned for requirements-browser.txt, which `.ci/run` installs later than it runs this.
BROWSER = {"axe-playwright-python", "greenlet", "playwright", "pyee"}


def declared(folder: Path) -> dict:
    """The table `project` of a distribution."""
    return tomllib.loads((folder / "pyproject.toml").read_text())["project"]


def required(folder: Path) -> list[Requirement]:
    """All that a distribution requires, extras included."""
    project = declared(folder)
    extras = project.get("optional-dependencies", {}).values()
    return [Requirement(text) for text in [*project["dependencies"], *(text for extra in extras for text in extra)]]


def of_wheel(wheel: Path, name: str) -> bytes:
    """A file of the wheel's .dist-info."""
    return zipfile.ZipFile(wheel).read(f"{'-'.join(wheel.name.split('-')[:2])}.dist-info/{name}")


def index_metadata(wheel: Path) -> Message:
    """What a package index reads of a wheel."""
    return message_from_bytes(of_wheel(wheel, "METADATA"))


# --- the wheels ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheels(wheel_of):
    """One wheel per distribution, built without network."""
    return [wheel_of(source) for source in OURS]


@pytest.mark.landing
def test_wheels_hold_what_they_should(wheels):
    """Each wheel has its package, `py.typed` and the text of the licence, and no tests or documentation."""
    for wheel in wheels:
        package = wheel.name.split("-")[0]
        names = zipfile.ZipFile(wheel).namelist()
        assert f"{package}/__init__.py" in names
        assert f"{package}/py.typed" in names
        assert {name.split("/")[0] for name in names} == {package, f"{'-'.join(wheel.name.split('-')[:2])}.dist-info"}
        assert of_wheel(wheel, "licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()


@pytest.mark.landing
def test_wheels_say_what_an_index_shows(wheels):
    """One version; licence, Pythons, keywords and a front page, without links into a checkout."""
    for wheel in wheels:
        shown = index_metadata(wheel)
        assert shown["Version"] == dpgm_core.__version__
        assert shown["License-Expression"] == "Apache-2.0"
        pythons = {f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13)}
        assert pythons <= set(shown.get_all("Classifier")) and shown["Requires-Python"] == ">=3.11"
        assert shown["Keywords"] and shown.get_all("Project-URL")
        assert shown["Description-Content-Type"] == "text/markdown"
        page = shown.get_payload()
        assert page.startswith(f"# {shown['Name']}\n") and "Licence: Apache-2.0." in page
        assert not [link for link in re.findall(r"\]\(([^)]*)\)", page) if not link.startswith("https://")]


@pytest.mark.landing
def test_wheels_are_the_same_bytes_each_time(wheels, wheel_of, tmp_path):
    """Sources in another folder and with other dates make the same wheel."""
    for name in ("dpgm_core/_util/version.py", "plugins/dpgm-laplace"):
        (tmp_path / name).parent.mkdir(parents=True)
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copyfile)(ROOT / name, tmp_path / name)
    (tmp_path / "plugins/dpgm-laplace/dpgm_laplace/__init__.py").touch()
    (first,) = (wheel for wheel in wheels if wheel.name.startswith("dpgm_laplace"))
    assert wheel_of(tmp_path / "plugins/dpgm-laplace").read_bytes() == first.read_bytes()


@pytest.mark.landing
def test_a_plugin_of_the_scaffold_is_a_whole_wheel(wheel_of, tmp_path):
    """What `dpgm new` makes has a licence, with its text, and bounds on core, as docs/compatibility.md asks."""
    wheel = wheel_of(scaffold("mechanism", "trial-coin", tmp_path))
    assert of_wheel(wheel, "licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
    assert index_metadata(wheel)["License-Expression"] == "Apache-2.0"
    assert f"dpgm-core{version_bounds(dpgm_core.__version__)}" in map(
        normal, index_metadata(wheel).get_all("Requires-Dist")
    )


def normal(text: str) -> str:
    """A requirement with its bounds in the order in which we write them."""
    one = Requirement(text)
    return one.name + ",".join(sorted(map(str, one.specifier), reverse=True))


# --- what they require --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", [*OURS[1:], *EXAMPLES], ids=lambda path: path.name)
def test_our_distributions_are_bounded(folder):
    """From this MINOR version to below the next one, core and each other; extras may leave it to the dependencies."""
    whole = version_bounds(dpgm_core.__version__)
    shorter = SpecifierSet(re.sub(r"^>=(\d+\.\d+)\.\d+", r">=\1", whole))
    ours = [one for one in required(folder) if one.name.split("-")[0] == "dpgm"]
    bare = [one.name for one in ours if not one.specifier]
    assert ours and all(one.specifier == shorter for one in ours if one.name not in bare)
    assert set(bare) <= {one.name for one in ours if one.specifier}


def test_requirements_name_every_first_party_plugin():
    """`requirements.txt` installs core, the plugins without an engine and the name `dpgm`; `dpgm` requires the same."""
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    plugins = {plugin.name for plugin in PLUGINS} - ENGINES
    wanted = {"-e .", "-e app"} | {f"-e plugins/{name}" for name in plugins}
    assert {line.strip() for line in lines if line and not line.startswith("#")} == wanted
    ours = {Requirement(text).name for text in declared(NAME)["dependencies"]}
    assert {name for name in ours if name.startswith("dpgm-")} == {"dpgm-core", *plugins}


def test_extras_of_the_name_reach_all_that_is_optional():
    """Each extra of `dpgm` forwards to extras that exist, and none of core, and no plugin, can be reached by none."""
    offers = {declared(folder)["name"]: set(declared(folder).get("optional-dependencies", {})) for folder in OURS}
    extras = [Requirement(text) for texts in declared(NAME)["optional-dependencies"].values() for text in texts]
    extras = [one for one in extras if one.name.startswith("dpgm-")]
    assert all(one.name in offers and one.extras <= offers[one.name] for one in extras)
    assert {extra for one in extras if one.name == "dpgm-core" for extra in one.extras} == offers["dpgm-core"]
    reached = {one.name for one in extras} | {Requirement(text).name for text in declared(NAME)["dependencies"]}
    assert {name for name in reached if name.startswith("dpgm-")} | {"dpgm"} == set(offers)
    shown = (NAME / "README.md").read_text()
    assert set(re.findall(r"^\| `dpgm\[(\w+)\]`", shown, re.MULTILINE)) == set(declared(NAME)["optional-dependencies"])


def test_one_floor_of_the_build_backend():
    """All say the same hatchling, whose floor `.ci/versions.py` builds them with."""
    systems = [tomllib.loads((folder / "pyproject.toml").read_text())["build-system"] for folder in [*OURS, *EXAMPLES]]
    assert all(system == systems[0] for system in systems)


# --- import dpgm --------------------------------------------------------------------------------------------------


def test_the_name_is_core_s_face():
    """The same names, the same objects, and four of its own; faces below are core's, and no module is loaded twice."""
    assert set(dir(dpgm)) == set(dpgm.__all__) == {*dpgm_core.__all__, "RelatedModel", "analyse", "init", "shown"}
    assert all(getattr(dpgm, name) is getattr(dpgm_core, name) for name in dpgm_core.__all__)
    assert dpgm.shown is shown and "shown" not in dpgm_core.__all__
    assert dpgm.plots is sys.modules["dpgm.plots"]
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = dpgm.nonsense


@pytest.mark.parametrize(
    "folder", [NAME, *(one for one in PLUGINS if one.name not in ENGINES)], ids=lambda one: one.name
)
def test_the_python_of_front_pages_runs(folder, tmp_path, monkeypatch):
    """As a newcomer would type it, one block after the other; that of `dpgm` saves a model."""
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for code in re.findall(r"^```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL | re.MULTILINE):
        exec(code, names)
    assert folder != NAME or dpgm.load_model("visits.dpgm").structure.domain.names == ("smoker", "visits")


# --- the pins -----------------------------------------------------------------------------------------------------


def installed(requirements, pinned):
    """Every distribution that these requirements pull in on this machine; skips if one is not as `pinned`."""
    found = {}
    wanted = list(requirements)
    while wanted:
        one = wanted.pop()
        name = canonicalize_name(one.name)
        if name.split("-")[0] == "dpgm" or (name in found and one.extras <= found[name]):
            continue
        found[name] = found.get(name, set()) | one.extras
        if metadata.version(name) not in pinned.get(name, [metadata.version(name)]):
            pytest.skip(f"{name} {metadata.version(name)} is not the version in constraints.txt")
        extras = ["", *one.extras]
        for below in map(Requirement, metadata.requires(name) or []):
            if below.marker is None or any(below.marker.evaluate({"extra": extra}) for extra in extras):
                wanted.append(below)
    return set(found)


@pytest.mark.landing  # README's command for the tests installs no tools
def test_constraints_pin_what_the_requirements_pull_in():
    """`constraints.txt` has exact versions only, of everything the requirements need here and of nothing else."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [Requirement(line) for line in lines if not line.startswith("#")]
    assert all(re.fullmatch(r"==[\w.]+", str(one.specifier)) and not one.url and not one.extras for one in pins)
    pinned = {}
    for one in (pin for pin in pins if pin.marker is None or pin.marker.evaluate()):
        pinned.setdefault(canonicalize_name(one.name), []).append(str(one.specifier).removeprefix("=="))
    wanted = []
    for folder in (ROOT, NAME, KIT, *(plugin for plugin in PLUGINS if plugin.name not in ENGINES)):
        project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
        extras = project.get("optional-dependencies", {})
        texts = [text for name in extras if name not in ENGINES for text in extras[name]]
        wanted += [*project["dependencies"], *texts]
    for name in ("requirements-test.txt", "requirements-dev.txt"):
        stated = (line.split("#")[0].strip() for line in (ROOT / name).read_text().splitlines())
        wanted += [line for line in stated if line and not line.startswith("-")]
    assert installed(map(Requirement, wanted), pinned) - BROWSER == set(pinned) - BROWSER

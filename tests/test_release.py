"""What a release has to say of itself, and the machines that run before it."""

import re
import runpy
from datetime import date
from pathlib import Path

import pytest
import yaml

import dpgm_core

ROOT = Path(__file__).resolve().parents[1]
faults = runpy.run_path(str(ROOT / "wheels/release.py"))["faults"]


@pytest.fixture
def checkout(tmp_path):
    """The four places that say which release it is."""
    (tmp_path / "dpgm_core/_util").mkdir(parents=True)
    (tmp_path / "dpgm_core/_util/version.py").write_text('__version__ = "0.3.1"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 0.3.1 - 2027-01-05\n\n* New.\n\n## 0.3.0 - 2026-12-01\n")
    (tmp_path / "CITATION.cff").write_text("cff-version: 1.2.0\nversion: 0.3.1\ndate-released: 2027-01-05\n")
    return tmp_path


def test_a_release_agrees_with_itself(checkout):
    """Version, changelog, citation and tag say the same: nothing to say."""
    assert faults(checkout, ["v0.3.1", "other"]) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("dpgm_core/_util/version.py", "0.3.1", "0.3.2", ["CHANGELOG.md", "CITATION.cff", "v0.3.2"]),
        ("CHANGELOG.md", "## 0.3.1 - 2027-01-05", "## Unreleased", ["## Unreleased"]),
        ("CHANGELOG.md", "2027-01-05", "2027-01-06", ["2027-01-06"]),
        ("CITATION.cff", "version: 0.3.1", "version: 0.3.0", ["CITATION.cff has version 0.3.0"]),
        ("CITATION.cff", "date-released: 2027-01-05\n", "", ["nothing"]),
    ],
)
def test_what_disagrees_is_named(checkout, file, old, new, said):
    """One line for each place."""
    (checkout / file).write_text((checkout / file).read_text().replace(old, new))
    found = faults(checkout, ["v0.3.1"])
    assert len(found) == len(said)
    assert all(words in line for words, line in zip(said, found, strict=True))


def test_a_release_has_its_tag(checkout):
    """The tag of another release is none."""
    assert faults(checkout, ["v0.3.0"]) == ["the commit's tags are ['v0.3.0']; git tag -a v0.3.1"]


def test_the_citation_is_one():
    """What version 1.2.0 of the format asks for; of this version; and the paper."""
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(cited)
    assert cited["cff-version"] == "1.2.0" and cited["version"] == dpgm_core.__version__
    assert isinstance(cited["date-released"], date)
    (paper,) = cited["references"]
    assert len(paper["authors"]) == 6 and paper["authors"][0]["family-names"] == "Bernstein"
    assert paper["year"] == 2017 and paper["title"] in " ".join((ROOT / "app/README.md").read_text().split())


def test_the_workflow_calls_what_ci_does():
    """`.ci/run`, once on each Python that we claim, and with that Python; tags are looked at."""
    job = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]["run"]
    claimed = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text())
    assert job["strategy"]["matrix"]["python"] == claimed
    assert tuple(claimed) == runpy.run_path(str(ROOT / ".ci/versions.py"))["VERSIONS"]
    setup, run, screenshots, tagged = job["steps"][1:]
    assert setup["with"]["python-version"] == "${{ matrix.python }}"
    assert run["run"] == "CI_PATH=$PATH bash .ci/run" and "CI_PATH:-" in (ROOT / ".ci/run").read_text()
    assert screenshots["with"]["path"] in (ROOT / ".ci/run").read_text()
    assert (ROOT / tagged["run"].removeprefix("python ")).exists()

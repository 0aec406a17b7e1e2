"""Reports as a desk and as a phone show them: of the health example, and of a model that a hostile file could make."""

import shutil
from itertools import pairwise

import numpy as np
import pytest
from click.testing import CliRunner

import dpgm_core as dpgm
from dpgm.cli import cli
from dpgm.report import make_report
from tests.browser.conftest import ROOT

HOSTILE = ["<script>document.title = 'taken'</script>", "\"><img src='http://192.0.2.1/x'>", "</style>" + "w" * 300]


@pytest.fixture(scope="session")
def reports(tmp_path_factory, chromium):
    """Name -> the address of a page."""
    folder = tmp_path_factory.mktemp("reports")
    shutil.copytree(ROOT / "docs/examples/health", folder / "health", ignore=shutil.ignore_patterns("out"))
    for arguments in (["fit", "health.toml"], ["report", "out/health.dpgm", "-o", "out/report.html"]):
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder / "health")
            done = CliRunner().invoke(cli, arguments, obj={"verbose": False}, catch_exceptions=False)
        assert done.exit_code == 0, done.output
    (folder / "hostile.html").write_text(make_report(hostile_model()), encoding="utf-8")
    pages = {"health": folder / "health/out/report.html", "hostile": folder / "hostile.html"}
    return {name: page.as_uri() for name, page in pages.items()}


def hostile_model():
    """Two hundred attributes in a chain, names and labels of which would be scripts; learned with a seed."""
    names = [f"{number} {HOSTILE[number % 3]}" for number in range(200)]
    labels = [*HOSTILE, "\u202eevil"]
    domain = dpgm.Domain.from_dict({name: {"labels": labels, "unknown": labels[0]} for name in names})
    structure = dpgm.Structure(domain, list(pairwise(names)))
    codes = np.random.default_rng(1).integers(0, 4, (500, 200))
    fit = dpgm.fit(codes, structure, dpgm.Budget.pure(5), neighbours="add-remove", randomness=dpgm.SeededRandomness(1))
    return fit.model


@pytest.mark.parametrize(
    ("name", "width", "dark"),
    [
        ("health", 1280, False),
        ("health", 1280, True),
        ("health", 390, False),
        ("health", 390, True),
        ("hostile", 1280, False),
        ("hostile", 390, True),
    ],
)
def test_a_report_fits_asks_nobody_and_can_be_read(opened, reports, name, width, dark):
    one = opened(reports[name], reports[name].partition("#")[0], width, dark=dark)
    one.shoot(f"report-{name}-{width}-{'dark' if dark else 'light'}", whole=name == "health")
    assert one.page.title() != "taken"
    one.page.evaluate("() => document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert one.overflowing() == []
    # Thousands of marks in pictures take a minute, and are drawn by the same code as the few of the other page.
    assert one.violations(leave_out="svg" if name == "hostile" else None) == []
    assert one.faults == []


@pytest.mark.parametrize("width", [1280, 390])
def test_the_tab_key_goes_through_a_report_in_order(opened, reports, width):
    one = opened(reports["health"], reports["health"], width)
    stops = [stop["at"] for stop in one.tab_stops(15)]
    assert stops == sorted(set(stops)) and len(stops) == 15


def test_two_hundred_attributes_are_searched(opened, reports):
    """Every section of a seeded release is stamped; a search leaves the attributes that have the text."""
    one = opened(reports["hostile"], reports["hostile"], 1280)
    page = one.page
    assert page.locator("main section").count() == page.locator("main section .stamp").count() > 5
    before = page.locator("main [data-find]:visible").count()
    page.get_by_role("searchbox").fill("17 ")
    after = page.locator("main [data-find]:visible").count()
    assert 0 < after < before
    assert one.faults == []


def test_it_prints_without_a_script(chromium, reports, tmp_path):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(reports["health"])
    page.pdf(path=tmp_path / "report.pdf", format="A4")
    context.close()
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")

"""The front page, the README and the how-tos say what is true: their commands run, their numbers are those measured."""

import math
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import dpgm_core as dpgm
from dpgm_core.components.registry import Registry
from dpgm_core.plugin import KINDS
from tests.pages import DOCS, ROOT, assert_prints, commands, ended, module_at, run_here, run_page

EXAMPLE = "docs/examples/health"


@pytest.fixture(scope="module")
def drawn():
    """docs/pictures/make.py."""
    return module_at(DOCS / "pictures/make.py")


@pytest.fixture
def health(tmp_path, monkeypatch):
    """An empty folder but for the example, without the outputs of earlier runs; commands run in it."""
    shutil.copytree(ROOT / EXAMPLE, tmp_path / EXAMPLE, ignore=shutil.ignore_patterns("out"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def section(name: str) -> str:
    """A part of the README that other pages include."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return text.split(f"[start:{name}] -->\n")[1].split(f"<!-- --8<-- [end:{name}]")[0]


def rows(text: str, columns: int) -> list[list[str]]:
    """The cells of the tables of so many columns, heads and rules left out."""
    found = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in text.splitlines() if "|" in line]
    return [row for row in found if len(row) == columns and not set(row[0]) <= set("-: ")]


@pytest.mark.landing
def test_the_readme_runs_with_its_doors(health, capfd):
    """The example and the five doors run, print what the page says, and are charged once for each fit."""
    run_here(ROOT / "README.md")
    assert_prints(ROOT / "README.md", capfd.readouterr().out)
    assert (health / EXAMPLE / "out/report.html").is_file() and (DOCS / "pictures/report.png").stat().st_size < 200_000
    doors = re.findall(r"`((?:dpgm|pytest) [^`]+)`", section("doors"))
    assert [door.split()[1] for door in doors] == ["plan", "fit", "learn", "new", "--dpgm-plugin"]
    for door in doors[:4]:
        (words,) = commands(door)
        assert ended(words) == 0, door
    assert (health / "dpgm-coin/pyproject.toml").is_file()
    done = subprocess.run([sys.executable, "-m", *doors[4].split()], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "passed" in done.stdout, done.stdout
    history = dpgm.Ledger.open(health / EXAMPLE / "out/health.ledger").history()
    assert [entry.cost for entry in history] == [dpgm.Budget.pure(1)]


def test_the_readme_lists_every_part():
    """The names of each kind are those that core and the distributions of requirements.txt declare."""
    shipped = set(re.findall(r"-e plugins/([\w-]+)", (ROOT / "requirements.txt").read_text())) | {"dpgm-core"}
    offers = [offer for offer in Registry.discover() if offer.distribution in shipped]
    said = {kind: re.findall(r"`([\w-]+)`", names) for kind, names in rows(section("parts"), 2)[1:]}
    assert set(said) == set(KINDS)
    assert said == {kind: [one.component.name for one in offers if one.component.kind == kind] for kind in said}


def test_the_readme_s_figures_are_the_measured_ones():
    """Errors of three-way tables on Adult at epsilon = 1, as the benchmark wrote them."""
    results = rows((ROOT / "benchmarks/results/selection.md").read_text(), 9)
    measured = {row[0]: [float(one) for one in row[2:4]] for row in results if " / " in row[0] and row[1] == "1"}
    said = [float(number) for number in re.findall(r"(?<![\w.])\.\d+", section("why"))]
    (auto, mst), (_, aim) = measured["auto / mst + mirror descent"], measured["aim / aim + mirror descent"]
    wanted = [auto, aim, mst]
    assert said == pytest.approx(wanted, abs=5e-4)


def test_the_pictures_are_those_of_their_script(drawn):
    """Every drawn picture is the committed one, letter by letter, and says in words what it shows."""
    assert drawn.DRAWN
    for name, draw in drawn.DRAWN.items():
        text = draw()
        assert (DOCS / "pictures" / name).read_text(encoding="utf-8") == text + "\n", "python docs/pictures/make.py"
        assert "<desc>" in text and 'role="img"' in text


def test_the_tutorial_runs(health):
    """Every command and every Python block of the tutorial works, in order; free care means more visits.

    The noise has scale 5 and the gap in P(no visit) is 0.17 of 20,190 rows: false alarm below 1e-9.
    """
    run_here(DOCS / "tutorial.md")
    assert len(dpgm.Ledger.open(Path(EXAMPLE) / "out/health.ledger").history()) == 1
    model = dpgm.load_model("health.dpgm")
    assert model.cost == dpgm.Budget.pure(1)
    free, dear = (model.marginal(["visits"], given={"coinsurance": share})[0] for share in ("0%", "95%"))
    assert free < dear


def test_the_page_on_epsilon_runs(health, capfd):
    """Its plans print what it says, and its trial runs."""
    run_here(DOCS / "epsilon.md")
    assert_prints(DOCS / "epsilon.md", capfd.readouterr().out)


def test_the_tables_of_the_page_on_epsilon_are_so(drawn):
    """What an epsilon is worth, from the definition; how large a count must be; what the plan of the example says."""
    page = (DOCS / "epsilon.md").read_text(encoding="utf-8")

    def number(cell: str) -> float:
        return float(cell.removesuffix("%").replace(",", ""))

    worth = [list(map(number, row)) for row in rows(page, 4)[1:]]
    for epsilon, odds, guess, caught in worth:
        factor = math.exp(epsilon)
        bounds = {odds: factor, guess: 100 * factor / (1 + factor), caught: 100 * min(0.05 * factor, 1 - 0.95 / factor)}
        assert all(0 <= said - bound <= 0.1 for said, bound in bounds.items()), epsilon  # rounded up
    head, *counts = rows(page, 5)
    for tables, *smallest in counts:
        for budget, count in zip(head[1:], smallest, strict=True):
            noise = drawn.half_width(float(budget.removeprefix("ε = ")), int(tables))
            assert number(count) == pytest.approx(10 * noise, abs=0.51)
    spec = tomllib.loads((ROOT / EXAMPLE / "health.toml").read_text())
    structure = dpgm.Structure(dpgm.Domain.load(ROOT / EXAMPLE / "domain.toml"), spec["structure"]["cliques"])
    for epsilon, noise, error in rows(page, 3)[1:]:
        budget = dpgm.Budget.pure(10_000 if epsilon == "without noise" else epsilon)
        table = dpgm.plan(structure, budget, neighbours="add-remove", records=20_000).tables[0]
        assert number(noise) == pytest.approx(table.noise, abs=0.051)
        assert number(error) == pytest.approx(table.relative, abs=6e-5)


def test_the_page_on_several_rows_runs(tmp_path, monkeypatch, capfd):
    """It prints what it says, and the model's promise is of patients."""
    monkeypatch.chdir(tmp_path)
    run_here(DOCS / "persons.md")
    assert_prints(DOCS / "persons.md", capfd.readouterr().out)
    model = dpgm.load_model("visits.dpgm")
    assert model.domain.names == ("ill", "seen", "drug")
    assert "one patient, counted with at most 4 rows" in model.guarantee()


@pytest.mark.landing
def test_the_page_on_related_tables_runs(tmp_path, capfd):
    """From two files to two, whose keys resolve; it prints what it says."""
    run_page(DOCS / "related.md", tmp_path)
    assert_prints(DOCS / "related.md", capfd.readouterr().out)
    roots, children = (
        [line.split(",")[0] for line in (tmp_path / f"synthetic/{name}.csv").read_text().splitlines()]
        for name in ("households", "persons")
    )
    assert len(set(roots)) == len(roots) and set(children) <= set(roots)


@pytest.mark.landing
def test_the_page_on_publishing_runs(health):
    """It writes what it names; the annex is for the owner's eyes, and neither the report nor the rows are as exact."""
    run_here(DOCS / "publish.md")
    assert "NOT PRIVATE" in Path("report-annex.html").read_text(encoding="utf-8")
    assert "NOT PRIVATE" not in Path("report.html").read_text(encoding="utf-8")
    assert Path("report-annex.html").stat().st_mode & 0o077 == 0
    assert Path("synthetic.csv.dpgm.json").is_file() and Path("health.uai").is_file()

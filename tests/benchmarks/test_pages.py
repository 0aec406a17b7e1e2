"""Numbers printed on pages are those of the stores in benchmarks/results, to the digits that the page prints."""

import math
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("joblib")

from benchmarks.harness.runs import read

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
MINUS = "\N{MINUS SIGN}"
NUMBER = re.compile(rf"[-{MINUS}]?(?:\d[\d,]*)?\.?\d+(?:e[+-]?\d+)?")


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def section(text: str, heading: str) -> str:
    """Return what stands under a heading, up to the next one of its level or above."""
    level = heading.index(" ")
    found = re.search(rf"^{re.escape(heading)}.*?$(.*?)(?=^#{{1,{level}}} |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, heading
    return found[1]


def table(text: str, number: int = 0) -> list[list[str]]:
    """Return the cells of a table in markdown without its rule, stripped of marks."""
    lines = re.findall(r"(?:^\|.*\|$\n?)+", text, re.MULTILINE)[number].splitlines()
    rows = [[re.sub(r"[*`]", "", cell).strip() for cell in line.strip("|").split("|")] for line in lines]
    return [rows[0], *rows[2:]]


def numbers(cell: str) -> list[str]:
    return [one.replace(MINUS, "-").replace(",", "") for one in NUMBER.findall(cell)]


def agree(printed: str, stored: float) -> bool:
    """Whether a printed number is the stored one, to half a unit of its last digit (and one of the store's)."""
    digits = printed.partition("e")[0].partition(".")[2]
    figures = len(printed.lstrip("-").strip("0.").replace(".", ""))
    unit = 10.0 ** -len(digits) if digits else 10.0 ** (len(printed.lstrip("-")) - figures)
    return math.isclose(float(printed), stored, abs_tol=0.5 * unit + 0.006 * abs(stored) * (abs(stored) >= 100) + 1e-9)


def test_a_number_that_is_off_is_found():
    """The comparison itself: the last digit counts."""
    assert agree(".583", 0.5827) and agree("343", 342.7254) and agree("-19.14", -19.1395) and agree("2.4", 2.4)
    assert (
        not agree(".583", 0.5847) and not agree("343", 352) and not agree("-19.14", -19.1495) and not agree("11", 9.6)
    )


@pytest.mark.parametrize("store", sorted(RESULTS.glob("paper-*.jsonl")), ids=lambda path: path.stem)
def test_papers(store):
    """What the page includes is the report of the store as it is today, and its own prose has no number besides."""
    name = store.stem.removeprefix("paper-")
    study = import_module(f"benchmarks.papers.{name}").STUDY
    report = study.text(read(store))
    assert store.with_suffix(".md").read_text(encoding="utf-8") == report
    page = text_of("docs/reproduction.md")
    assert all(f'--8<-- "benchmarks/results/{store.stem}.md:{part}"' in page for part in ("runs", "claims"))
    if name == "bernstein":
        prose = section(page, "## Bernstein et al. (2017)").partition("### Mobility weightings")[0]
        assert unsaid(prose, report) == set()
        assert unsaid(prose + "KL 123.4 and .0987\n", report) == {"123.4", ".0987"}


def unsaid(prose: str, report: str) -> set[str]:
    """Return the numbers of a page that its report does not have: years, links, code and included tables left out."""
    prose = re.sub(
        r"\]\([^)]*\)|`[^`]*`|^--8<--.*$|ICML \d{4}|[a-z-]+\d+", "", prose, flags=re.MULTILINE | re.IGNORECASE
    )
    said = set(re.findall(r"\.?\d[\d.]*\d|\d", report))
    return {one for one in re.findall(r"\.?\d[\d.]*\d|\d", prose) if one not in said and f"0{one}" not in said}


def test_figure_3b():
    """Held-out log-likelihoods on the campus."""
    rows = table(section(text_of("docs/reproduction.md"), "### Mobility weightings"))[1:]
    store = section((RESULTS / "fig3b.md").read_text(), "## campus, view segments, score segment")
    found = {row[0]: row[1:] for row in table(store)[1:]}
    for number, row in enumerate(rows):
        for name, cell in zip(("untied", "tied", "R1", "R2"), row[1:5], strict=True):
            assert agree(numbers(cell)[0], float(found[f"{name} naive-mle"][number].split()[0])), row
    ahead = [float(one.split()[0]) > float(other.split()[0]) for name in ("untied", "tied", "R1", "R2")
             for one, other in zip(found[f"{name} naive-mle"], found[f"{name} eb-map"], strict=True)]  # fmt: skip
    assert f"ahead in {sum(ahead)} of the campus's {len(ahead)} cells" in text_of("docs/reproduction.md")


def test_adult():
    """Total variation on triples held out, and the log-likelihood of a held-out record."""
    rows = table(section(text_of("docs/reproduction.md"), "## Adult"))
    found = {
        (row[0], row[1]): row for row in table(section((RESULTS / "adult.md").read_text(), "## adult, Laplace"))[1:]
    }
    names = ["eb-map", "mbi", "mbi best stop", "naive", "cgm-em", "independent"]
    for row in rows[1:]:
        for name, cell in zip(names, row[1:], strict=True):
            kept = found[name, row[0].replace(".1", "0.1").replace(".5", "0.5")]
            far, likely = numbers(cell)
            assert agree(far, float(kept[5].split()[0])) and agree(likely, float(kept[6].split()[0])), (row, name)


@pytest.mark.parametrize("name", ["peers", "task"])
def test_whole_programs(name):
    """What the comparison includes is the report of the store as it is today, which has the parts that it names."""
    module = {"peers": "benchmarks.peers.__main__", "task": "benchmarks.task"}[name]
    report = import_module(module).STUDY.text(read(RESULTS / f"{name}.jsonl"))
    assert (RESULTS / f"{name}.md").read_text(encoding="utf-8") == report
    parts = re.findall(rf'--8<-- "benchmarks/results/{name}.md:(\w+)"', text_of("docs/comparison.md"))
    assert parts and all(f"[start:{part}]" in report for part in parts)


def test_what_the_missing_factor_costs():
    """Two L1 errors that one record moves apart, chosen by exp(epsilon q): 3.99 times epsilon^2 / 8, never above 4."""
    page, records = text_of("docs/comparison.md"), np.array([5, 5])
    predictions = np.array([[7, 3], [3, 7]])
    before, after = (np.abs(table - predictions).sum(axis=1) for table in (records, records + np.array([1, 0])))
    assert before.tolist() == [4, 4] and after.tolist() == [3, 5]

    def cost(epsilon):
        one, other = (np.exp(epsilon * errors) / np.exp(epsilon * errors).sum() for errors in (before, after))
        return float((one * np.log(one / other)).sum()) / (epsilon**2 / 8)

    assert round(cost(0.1), 2) == 3.99 and "3.99 times the charge at ε = .1" in page
    assert all(cost(epsilon) <= 4 for epsilon in np.geomspace(1e-3, 10, 50))
    share = 0.1
    run = 1 - share + 4 * share
    assert f"{run:.1f} times its " in page and f"= {share + (1 - share) * run:.2f} times" in page

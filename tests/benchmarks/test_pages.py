"""Numbers printed on pages are those of the stores in benchmarks/results, to the digits that the page prints."""

import json
import math
import re
from collections import defaultdict
from pathlib import Path

import numpy as np

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


def test_figure_1():
    """Ranges of (a), and every KL of (b) and (c) that the page names."""
    page, store = section(text_of("docs/reproduction.md"), "## Figure 1"), (RESULTS / "fig1.md").read_text()
    rows = table(section(store, "## (a)"))[1:]
    assert f"Over {len(rows)} points" in page
    for column, words in ((4, r"lies between ([\d.]+) and ([\d.]+)"), (5, r"standard errors of ([\d.]+) to ([\d.]+)")):
        shown = re.search(words, page.replace("\n", " "))
        values = [float(row[column]) for row in rows]
        assert shown and agree(shown[1], min(values)) and agree(shown[2].rstrip("."), max(values))
    best = {(row[0], row[1]): row for row in table(section(store, "## (b)"))[1:]}
    shares = [float(best[n, "unprojected"][3]) / float(best[n, "projected"][3]) for n, _ in best]
    assert (round(100 * min(shares)) - 100, round(100 * max(shares)) - 100) == (2, 20) and "2 to 20 %" in page
    for n, kl, tiny in (("100000", ".583", "4.9"), ("1000000", ".0212", ".026")):
        assert agree(kl, float(best[n, "projected"][3])) and agree(tiny, float(best[n, "projected"][2]))
        assert kl in page and tiny in page
    kls = {(row[0], row[1]): row for row in table(section(store, "## (c)"))[1:]}
    for kind, shown in (("true", (".039", ".0040", ".00042")), ("noisy", ("1.9", ".14", ".0034"))):
        for n, one in zip(("10000", "100000", "1000000"), shown, strict=True):
            assert one in page and agree(one, float(kls[n, kind][3])), one


def test_figure_2_s_claims():
    """Draws, who is first, and every range of ratios of KL that the page states, from the store itself."""
    from benchmarks.fig2 import USABLE, by_size
    from benchmarks.harness.runs import read
    from benchmarks.protocol.trials import draws, geometric

    def ratio(trials, one, other):
        """The geometric mean of KL over KL on the draws that have both."""
        both = [kls for kls in trials.values() if {one, other} <= set(kls)]
        return geometric([kls[one]["kl"] / kls[other]["kl"] for kls in both]) if both else None

    ratios, places, behind, seconds = defaultdict(list), [], [], defaultdict(int)
    for size, found in by_size(read(RESULTS / "trials.jsonl")).items():
        for cell, trials in found.items():
            calm = cell.records == 10**6 and cell.epsilon >= 0.5
            if "psgd oracle" in trials.get(70000, {}):
                kls = {name: one["kl"] for name, one in trials[70000].items() if name != "non-private"}
                assert min(kls, key=kls.get) == "psgd oracle" and len(draws(trials, "psgd oracle")) == 1
                places.append(cell)
                ratios["psgd"].append(ratio(trials, "psgd oracle", "eb-map"))
            if cell.epsilon < 0.1:
                assert cell.graph == "chain3" and len(draws(trials, "eb-map")) == 2
                ratios["converged, noisy"].append(ratio(trials, "cgm-em converged", "cgm-em oracle"))
                continue
            assert len(draws(trials, "eb-map")) == {5: 10, 10: 5}[size] and len(draws(trials, "naive tiny")) <= 1
            assert len(draws(trials, "mbi")) in {5: (4, 5), 10: (1,)}[size]
            against = {
                name: ratio(trials, "eb-map", name) for name in USABLE if draws(trials, name) and name != "eb-map"
            }
            behind += [(size, cell.records, cell.epsilon, name) for name, one in against.items() if one > 1.001]
            order = sorted(
                set(against) - {"mbi", "eb-map", "naive tiny"}, key=lambda name: geometric(draws(trials, name))
            )
            seconds[order[0]] += 1
            tiny = ratio(trials, "naive tiny", "cgm-em oracle")
            ratios["tiny, calm" if calm else "tiny"] += [tiny] if tiny else []
            ratios["naive"] += [ratio(trials, name, "cgm-em oracle") for name in ("naive oracle", "naive auto")]
            ratios["converged"].append(ratio(trials, "cgm-em converged", "cgm-em oracle"))
            if size == 5:
                for name in ("mbi", "mbi oracle"):
                    ratios[f"{name}, calm" if calm else name].append(ratio(trials, name, "eb-map"))
    printed = {
        "psgd": (".65", ".88"), "tiny": ("5", "13000"), "tiny, calm": (".9", "1.2"), "naive": (".84", "1.07"),
        "converged": ("1.2", "11"), "mbi": ("1.1", "4.3"), "mbi, calm": ("12", "28"),
        "mbi oracle, calm": ("1.1", "2.9"),
    }  # fmt: skip
    page = section(text_of("docs/reproduction.md"), "## Figure 2").replace("\n  ", " ").replace(",000", "000")
    for name, (least, most) in printed.items():
        assert f"{least} to {most}" in page, name
        assert agree(least, min(ratios[name])), (name, min(ratios[name]))
        assert float(f"{max(ratios[name]):.2g}") == float(most) or agree(most, max(ratios[name])), (
            name,
            max(ratios[name]),
        )
    assert all(abs(one - 1) < 0.055 for one in ratios["mbi oracle"]) and "within 5 %" in page
    assert round(max(ratios["converged, noisy"])) == 20 and "20 at ε = .01" in page
    assert behind == [(10, 10**6, 1.0, "naive tiny")]  # on one draw, as the page says
    assert len(places) == 8 and all(cell.size == 5 and cell.records <= 1e5 and cell.epsilon >= 0.5 for cell in places)
    assert seconds["naive auto"] == 31 and seconds["cgm-em auto"] + seconds["cgm-em plateau"] == 4


def test_one_gaussian_release_against_dp_sgd():
    """results/psgd.md holds the store's DP-SGD and pure `eb-map`, and the page's ranges of ratios."""
    lines = map(json.loads, (RESULTS / "trials.jsonl").read_text().splitlines())
    stored = {(line["cell"], str(line["trial"]), name): kls["kl"] for line in lines
              if line["method"] in ("psgd", "eb-map") for name, kls in line["results"].items()}  # fmt: skip
    rows = table((RESULTS / "psgd.md").read_text())[1:]
    assert len(rows) == sum(name == "psgd oracle" for _, _, name in stored)
    for cell, trial, psgd, gaussian, pure, over, _ in rows:
        assert agree(psgd, stored[cell, trial, "psgd oracle"]) and agree(pure, stored[cell, trial, "eb-map"])
        assert math.isclose(float(over), float(psgd) / float(gaussian), rel_tol=0.01)
    page = section(text_of("docs/reproduction.md"), "## Figure 2")
    assert f"{min(row[5] for row in rows)} to {max(row[5] for row in rows)} times" in page


def test_figure_3a():
    """KL and correlation, method by method, and the trials."""
    rows, store = (
        table(section(text_of("docs/reproduction.md"), "## Figure 3a")),
        table((RESULTS / "fig3a.md").read_text()),
    )
    names = {
        "noisy tables": "noisy tables", "naive MLE, λ = 1e-6": "naive tiny", "naive MLE, auto": "naive",
        "naive MLE, λ by the truth": "naive oracle", "CGM-EM, auto": "cgm-em", "mbi, default": "mbi",
    }  # fmt: skip
    found = {tuple(row[:3]): row for row in store[1:]}
    points = [("100000", "0.1"), ("100000", "0.5"), ("1000000", "0.5")]
    for row in rows[1:]:
        for point, cell in zip(points, row[1:], strict=True):
            if cell:
                kept, shown = found[(names[row[0]], *point)], numbers(cell)
                assert agree(shown[-1], float(kept[3])), row
                assert len(shown) == 1 or agree(shown[0], float(kept[6])), row
                assert kept[8] in {"naive oracle": "43", "mbi": "2"}.get(names[row[0]], "5")


def test_figure_3b():
    """Held-out log-likelihoods on the campus."""
    rows = table(section(text_of("docs/reproduction.md"), "## Figure 3b"))[1:]
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

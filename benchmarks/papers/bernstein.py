"""Bernstein, McKenna, Sun, Sheldon, Hay and Miklau (ICML 2017): every figure, and what its claims come to.

    python -m benchmarks.paper bernstein [--smoke|--full|--report] [--jobs N]

Without --smoke or --full each cell has one draw. Ten attributes; populations have Dirichlet(1) edge potentials; draws 0
to 4 are five populations, draws 5 to 9 the same five with other records and other noise, and so on. Methods are groups
that share a data set. mbi needs DPGM_MBI_PYTHON. The paper states neither k of figure 2 nor epsilon of 1a nor N of 1c.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np

from benchmarks.harness.main import Study
from benchmarks.harness.output import beginning, facts_of, grouped, having
from benchmarks.harness.runs import Line
from benchmarks.papers import bernstein_pages as pages
from benchmarks.papers.bernstein_pages import Scores, scored
from benchmarks.papers.bernstein_runs import BASE, DAYS, work
from benchmarks.papers.claims import Claim, claim, report
from benchmarks.protocol.trials import METHODS as METHODS_OF_TRIALS
from benchmarks.protocol.trials import draws, geometric, kl_of, ratios

PROJECTIONS = ("projected", "unprojected", "projected own", "unprojected own")
#: The groups of methods of each figure.
METHODS = {
    "1a": ("tables", "learned"),
    "1b": PROJECTIONS,
    "1c": ("true", "noisy"),
    "2": ("learners", "references", "psgd", "mbi"),
    "3a": ("learners", "references", "eb-map", "psgd", "mbi"),
    "3b": ("learners", "references", "psgd"),
    "loopy": ("learners",),
    "theory": ("checks",),
}
RECORDS, EPSILONS = (10**4, 10**5, 10**6), (0.01, 0.1, 0.5, 1.0)
TRAIN = DAYS - round(DAYS / 4)
HALVES = [round(10 ** (half / 2)) for half in range(6, 17)]
#: Draws of DP-SGD by k and N: a fit reads each record in every epoch, and there are six fits.
PSGD_DRAWS = {(5, 10**4): 5, (5, 10**5): 5, (5, 10**6): 2, (10, 10**4): 2}

SMOKE = (
    "1a eps=0.5 N=1000 k=5", "1c N=10000 k=3", "2 chain3 k=3 N=3000 eps=0.5", "3a N=3000 eps=0.5 k=3",
    "3b of=210 N=100 eps=1", "3b of=210 N=100", "loopy side=3 k=3 N=3000 eps=1", "theory sensitivity k=3",
    "theory stirling N=1000 k=3", "theory mode N=30 eps=0.1", "theory algorithm N=1000 eps=0.5 k=3",
)  # fmt: skip


def cells(asked: Namespace) -> dict[str, int]:
    """cell -> draws."""
    if asked.extent == "smoke":
        return dict.fromkeys(SMOKE, 1)
    grid = {
        **{f"1a eps={eps} N={n} k=10": 25 for eps in (0.1, 0.5, 1.0) for n in HALVES},
        **{f"1b N={n} k=20": 5 for n in HALVES[2:7]},
        **{f"1c N={n} k=10": 10 for n in RECORDS},
        **{
            f"2 {graph} k={k} N={n} eps={eps}": 25 if k == 5 else 10
            for k, graph, n, eps in product((5, 10), pages.GRAPHS, RECORDS, EPSILONS)
        },
        **{f"3a N={n} eps={eps} k=20": 5 for n, eps in product(RECORDS[1:], EPSILONS[1:])},
        **{f"3b of={DAYS} N={n}": 1 for n in (1000, 10_000, TRAIN)},
        **{f"3b of={DAYS} N={n} eps={eps}": 10 for n, eps in product((1000, 10_000, TRAIN), (0.01, 0.1, 1.0))},
        **{f"loopy side=8 k=10 N=100000 eps={eps}": 5 for eps in EPSILONS[1:]},
        "theory sensitivity k=5": 1,
        **{f"theory stirling N={10**power} k=3": 5 for power in range(2, 8)},
        **{f"theory mode N=50 eps={eps}": 5 for eps in (0.1, 0.3, 1.0, 3.0)},
        "theory algorithm N=100000 eps=0.1 k=10": 3,
    }
    return grid if asked.extent == "full" else dict.fromkeys(grid, 1)


def serves(cell: str, draw: int, method: str) -> bool:
    """Whether the group runs on this draw of the cell."""
    figure, facts = cell.split()[0], facts_of(cell)
    records, epsilon, size = int(facts.get("N", 0)), float(facts.get("eps", 0)), int(facts.get("k", 0))
    if method not in METHODS[figure]:
        return False
    if figure == "1a" and method == "learned":
        return epsilon == 0.5 and records in [10**power for power in range(9)] and draw < 10
    if figure == "2" and method != "learners":
        return draw < {"references": 5, "psgd": PSGD_DRAWS.get((size, records), 1), "mbi": 7 // size}[method]
    if figure == "3a" and method in ("psgd", "mbi"):
        return records <= 10**5 and epsilon <= 0.5 and draw < (2 if method == "psgd" else 1)
    if figure == "3b":
        return (method == "references") == ("eps" not in facts) and draw < {"psgd": 2}.get(method, 10)
    return True


# --------------------------------------------------------------------------------------------------
# The claims. Each is judged by its own lines of the store; the rule for its status stands in the code.

Judged = tuple[str, str]
_NO_RUNS = "its runs are not in the store yet"
_OK, _BUT, _NOT, _SILENT = "reproduced", "with a caveat", "contradicted", "not attempted"


def claims(lines: Sequence[Line]) -> list[Claim]:
    """Every numbered claim of the paper."""
    of = {figure: beginning(lines, figure) for figure in METHODS}
    theory = {name: [line for line in of["theory"] if line["cell"].split()[1] == name] for name in pages.THEORY}
    learned, own = having(of["1a"], method="learned"), having(of["1a"], method="tables")
    psgd = [line for line in of["2"] if line["method"] != "mbi"] if having(of["2"], method="psgd") else []
    mobile = [line for line in of["3b"] if "eps=" in line["cell"]]
    with_psgd = mobile if having(mobile, method="psgd") else []
    two, three = "[figure 2](plots/fig2-paper-k5.svg)", "[figure 3b](plots/fig3b.svg)"
    return [
        _claim("B1", "sensitivity of the tables: \\|C\\|, always", theory["sensitivity"], _sensitivity, "Prop. 3"),
        _claim("B2", "noisy marginals err by μ(1-μ)/N + 2\\|C\\|²/(Nε)²", own, _error, "Prop. 4"),
        _claim("B3", "slope -2 where noise rules, -1 where sampling does", own, _slopes, "[1a](plots/fig1.svg)"),
        _claim("B4", "naive MLE's marginals behave likewise", learned, _learned, "[1a](plots/fig1.svg)"),
        _claim("B5", "naive MLE is consistent, its error that of the non-private MLE", learned, _efficient, "Prop. 4"),
        _claim("B6", "projection to the simplex helps naive MLE", of["1b"], _projection, "[1b](plots/fig1.svg)"),
        _claim("B7", "noisy tables need a penalty that is just right", of["1c"], _penalty, "[1c](plots/fig1.svg)"),
        _claim("B8", "log h(n) is about N times an entropy", theory["stirling"], _stirling, "Prop. 5"),
        _claim("B9", "the mode of the hidden tables stands for their mean", theory["mode"], _mode, "section 3"),
        _claim("B10", "Algorithm 1 solves problem (6)", theory["algorithm"], _algorithm, "Alg. 1"),
        _claim(
            "B11", "CGM improves upon naive MLE for all models, privacy levels and sizes",
            having(of["2"], method="learners"), _improves, two,
        ),
        _claim("B12", "learning from noisy tables beats private gradient descent", psgd, _descent, two),
        _claim("B13", "no curve of private gradient descent below ε = .5", psgd, _floor, two),
        _claim(
            "B14", "CGM takes 4 (chain) and 8 times (random graph) as long as naive MLE",
            having(of["2"], method="learners"), lambda some: _times(some, "cgm-em converged", (4, 8)), "section 4",
        ),
        _claim(
            "B15", "private gradient descent takes 27 and 40 times as long", psgd,
            lambda some: _times(some, "psgd oracle", (27, 40)), "section 4",
        ),
        _claim("B16", "CGM's edge marginals are nearest to the true ones", of["3a"], _nearest, "[3a](plots/fig3a.svg)"),
        _claim(
            "B17", "mobility: sensitivity 24\\|C\\|, and \\|C\\| once normalised", theory["sensitivity"],
            _mobility_sensitivity, "section 5",
        ),
        _claim("B18", "mobility: CGM predicts held-out days better than naive MLE", mobile, _mobility, three),
        _claim("B19", "mobility: both beat private gradient descent", with_psgd, _mobility_descent, three),
        _claim(
            "B20", "mobility: CGM takes 15 times, private gradient descent 46 times as long as naive MLE", with_psgd,
            _mobility_times, "section 5",
        ),
        _claim("B21", "mobility: normalised contributions help", mobile, _normalised, "section 5"),
        _claim("B22", "approximate inference may stand in the E-step", of["loopy"], _loopy, "[ours](plots/loopy.svg)"),
        Claim(
            name="B23", says="on the authors' campus traces", status=_SILENT, figure="3b",
            found="the traces are not public; ours are generated (`benchmarks/traces.py`), as many person-days",
        ),
    ]  # fmt: skip


def _claim(
    name: str, says: str, lines: Sequence[Line], judge: Callable[[Sequence[Line]], Judged], figure: str = ""
) -> Claim:
    """A claim that says how many runs it stands on."""

    def counted(some: Sequence[Line]) -> Judged:
        status, found = judge(some)
        return status, f"{found} ({len(some)} runs)" if status != _SILENT else found

    return claim(name, says, lines, counted, figure)


def _sensitivity(lines: Sequence[Line]) -> Judged:
    least, most = min(line["least"] for line in lines), max(line["most"] for line in lines)
    cliques = lines[0]["cliques"]
    return _OK if least == most == cliques else _NOT, f"one record moves {cliques} tables by {least:g} to {most:g}"


def _error(lines: Sequence[Line]) -> Judged:
    by_cell = {cell: [one["mse"] / one["predicted"] for one in some] for cell, some in grouped(lines, "cell").items()}
    means = [float(np.mean(some)) for some in by_cell.values()]
    few = max(map(len, by_cell.values())) < 10
    status = _BUT if few else _OK if max(abs(mean - 1) for mean in means) < 0.1 else _NOT
    text = f"measured over predicted {min(means):.3f} to {max(means):.3f} in {len(means)} cells"
    return status, text + ", of few draws" * few


def _slopes(lines: Sequence[Line]) -> Judged:
    epsilons = sorted({float(facts_of(line["cell"])["eps"]) for line in lines})

    def slope(epsilon: float, last: bool) -> float:
        some = [line for line in lines if float(facts_of(line["cell"])["eps"]) == epsilon]
        means = pages.by_records(some, lambda line: line["mse"])
        records = list(means)[-3:] if last else list(means)[:3]
        return float(np.polyfit(np.log(records), np.log([means[one] for one in records]), 1)[0]) if records[1:] else 0.0

    noise, sampling = slope(epsilons[0], False), slope(epsilons[-1], True)
    agrees = abs(noise + 2) < 0.15 and abs(sampling + 1) < 0.15
    return _OK if agrees else _BUT, f"{noise:.2f} and {sampling:.2f}"


def _learned(lines: Sequence[Line]) -> Judged:
    ratio = pages.by_records(lines, lambda line: line["mse_learned"] / line["mse"])
    text = ", ".join(f"{one:.2f}" for one in ratio.values())
    return _OK if max(ratio.values()) < 1.02 else _BUT, f"squared error over y/N's: {text} at {pages.powers(ratio)}"


def _efficient(lines: Sequence[Line]) -> Judged:
    ratio = pages.by_records(lines, lambda line: line["kl"] / line["kl_true"])
    text = ", ".join(f"{one:.3g}" for one in ratio.values())
    return _OK if abs(
        list(ratio.values())[-1] - 1
    ) < 0.1 else _BUT, f"KL over the MLE's: {text} at {pages.powers(ratio)}"


#: A KL in nats that no model reaches which learned anything.
_NOTHING = 30.0


def _projection(lines: Sequence[Line]) -> Judged:
    both = {}
    for cell in grouped(lines, "cell"):
        some = {name: having(lines, cell=cell, method=name) for name in PROJECTIONS[:2]}
        if all(some.values()):
            kls = {name: np.log([line["kl"] for line in each]) for name, each in some.items()}
            tiny, best = (
                float(np.exp(np.mean(part(kls["unprojected"])) - np.mean(part(kls["projected"]))))
                for part in (lambda each: each[:, 0], lambda each: each.min(axis=1))
            )
            if kls["projected"][:, 0].mean() < np.log(_NOTHING):
                both[cell] = tiny, best
    if not both:
        return _SILENT, _NO_RUNS
    least = min(tiny for tiny, _ in both.values())
    ranges = [f"{min(one):.2f} to {max(one):.2f}" for one in zip(*both.values(), strict=True)]
    status = _BUT if least > 0.99 else _NOT
    words = f"KL without it over KL with it: {ranges[0]} at the tiny penalty, {ranges[1]} at the best penalties"
    return status, f"{words}, where that learns anything"


def _penalty(lines: Sequence[Line]) -> Judged:
    rows, fine = [], True
    for _, some in sorted(grouped(lines, "cell").items(), key=lambda item: pages.records_of(item[0])):
        best = {m: np.exp(np.log([line["kl"] for line in having(some, method=m)]).mean(axis=0)) for m in METHODS["1c"]}
        fine &= bool(best["true"].argmin() < best["noisy"].argmin())
        rows.append(
            f"{pages.LAMBDAS[int(best['noisy'].argmin())]:.0e} ({pages.LAMBDAS[int(best['true'].argmin())]:.0e})"
        )
    where = pages.powers({pages.records_of(cell): 0 for cell in grouped(lines, "cell")})
    return _OK if fine else _BUT, f"best λ for noisy (for true) tables: {', '.join(rows)} at {where}"


def _stirling(lines: Sequence[Line]) -> Judged:
    error = pages.by_records(lines, lambda line: abs(line["entropy"] / line["log_h"] - 1))
    values = list(error.values())
    falls = all(one > other for one, other in pairwise(values))
    text = f"relative error {', '.join(f'{one:.1e}' for one in values)} at {pages.powers(error)}"
    return _OK if falls and values[-1] < 1e-3 else _BUT, text


def _mode(lines: Sequence[Line]) -> Judged:
    by_eps = {float(facts_of(cell)["eps"]): some for cell, some in grouped(lines, "cell").items()}
    means = [float(np.mean([line["distance"] for line in by_eps[eps]])) for eps in sorted(by_eps)]
    text = (
        f"apart by {', '.join(f'{one:.3f}' for one in means)} of N at ε = {', '.join(f'{e:g}' for e in sorted(by_eps))}"
    )
    return _OK if max(
        means
    ) < 0.05 else _BUT, f"{text} (one table of three cells, N = {facts_of(lines[0]['cell'])['N']})"


def _algorithm(lines: Sequence[Line]) -> Judged:
    names = ("constant .5", "constant .1", "2/(t+2)", "multipliers")
    found = {name: float(np.mean([line[name] for line in lines])) for name in names}
    text = (
        f"distance to the solution after 500 calls, of N: {found['constant .5']:.1e} and {found['constant .1']:.1e} at "
        f"constant steps, {found['2/(t+2)']:.1e} at 2/(t+2), {found['multipliers']:.1e} with damped multipliers"
    )
    return _OK if found["constant .5"] < 2e-3 else _BUT, text


def _wins(found: Scores, one: str, other: str, keep: Callable[[str], bool] = lambda cell: True) -> tuple[int, int]:
    """In how many cells the first has the lesser geometric mean KL, on the draws that have both; and how many cells."""
    every = [ratios(some, one, kl_of(other)) for cell, some in found.items() if keep(cell)]
    every = [some for some in every if some]
    return sum(geometric(some) < 1 for some in every), len(every)


def _span(found: Scores, one: str, other: str, keep: Callable[[str], bool] = lambda cell: True) -> str:
    every = [
        geometric(some) for cell, each in found.items() if keep(cell) and (some := ratios(each, one, kl_of(other)))
    ]
    return f"{min(every):.2f} to {max(every):.2f}" if every else "-"


def _improves(lines: Sequence[Line]) -> Judged:
    found = scored(lines)
    tiny, tuned = (_wins(found, "cgm-em auto", other) for other in ("naive tiny", "naive auto"))
    if not tiny[1] * tuned[1]:
        return _SILENT, _NO_RUNS
    text = (
        f"less KL in {tiny[0]} of {tiny[1]} cells against the tiny penalty; once naive MLE tunes itself, in {tuned[0]} "
        f"of {tuned[1]} (KL over its: {_span(found, 'cgm-em auto', 'naive auto')}). EM to convergence has "
        f"{_span(found, 'cgm-em converged', 'cgm-em auto')} times the KL of EM stopped"
    )
    return _OK if min(tiny[0] / tiny[1], tuned[0] / tuned[1]) == 1 else _BUT if tiny[0] > tiny[1] / 2 else _NOT, text


def _epsilon(cell: str) -> float:
    return float(facts_of(cell)["eps"])


def _descent(lines: Sequence[Line]) -> Judged:
    found = scored(lines)
    strong = _wins(found, "psgd oracle", "cgm-em auto", lambda cell: _epsilon(cell) >= 0.5)
    weak = _wins(found, "psgd oracle", "cgm-em auto", lambda cell: _epsilon(cell) < 0.5)
    if not strong[1]:
        return _SILENT, _NO_RUNS
    untuned, gaussian = (
        _wins(found, *pair) for pair in (("psgd untuned", "cgm-em auto"), ("psgd oracle", "gaussian eb-map"))
    )
    text = (
        f"tuned by the truth and at (ε, 1/N) it has less KL than CGM in {strong[0]} of {strong[1]} cells with ε ≥ .5, "
        f"in {weak[0]} of {weak[1]} below; untuned in {untuned[0]} of {untuned[1]}. One Gaussian release at the same "
        f"(ε, 1/N) beats it in {gaussian[1] - gaussian[0]} of {gaussian[1]} (its KL over that release's: "
        f"{_span(found, 'psgd oracle', 'gaussian eb-map')})"
    )
    return _OK if not strong[0] + weak[0] else _NOT if strong[0] > strong[1] / 2 else _BUT, text


def _floor(lines: Sequence[Line]) -> Judged:
    found = scored(lines)
    low = [cell for cell, some in found.items() if _epsilon(cell) < 0.5 and draws(some, "psgd oracle")]
    if not low:
        return _SILENT, _NO_RUNS
    behind = _wins(found, "uniform", "psgd oracle", lambda cell: _epsilon(cell) < 0.5)
    text = (
        f"the authors' accountant has a floor, ln(1/δ)/32; ours has none: it runs in {len(low)} such cells, and the "
        f"uniform model beats it in {behind[0]} of {behind[1]}"
    )
    return _BUT, text


def _times(lines: Sequence[Line], label: str, paper: tuple[int, int]) -> Judged:
    found = scored(lines)
    ours = []
    for graph in pages.GRAPHS:
        here = [some for cell, some in found.items() if cell.split()[1] == graph]
        every = [one for some in here for one in ratios(some, label, kl_of("naive oracle", "seconds"), "seconds")]
        if not every:
            return _SILENT, _NO_RUNS
        ours.append(geometric(every))
    text = f"{ours[0]:.2g} and {ours[1]:.2g} times (CPU seconds of one fit; naive MLE at the best penalty)"
    return _OK if all(0.5 < one / other < 2 for one, other in zip(ours, paper, strict=True)) else _BUT, text


def _nearest(lines: Sequence[Line]) -> Judged:
    found = scored(lines)
    rows, better = [], []
    for cell in found:
        mean = pages.means(found[cell], "correlation")
        if {"cgm-em", "noisy tables", "naive"} <= set(mean):
            others = {name: one for name, one in mean.items() if name not in ("cgm-em", "non-private")}
            best = max(others, key=lambda name: others[name])
            better.append(mean["cgm-em"] > max(mean["noisy tables"], mean["naive tiny"], mean["naive"]))
            facts = facts_of(cell)
            rows.append((mean["noisy tables"], mean["cgm-em"], mean["naive"], best, facts))
    if not rows:
        return _SILENT, _NO_RUNS
    noisy, cgm, naive, best, facts = min(rows, key=lambda row: row[0])
    text = (
        f"nearer than the noisy tables and naive MLE in {sum(better)} of {len(better)} cells; where noise is greatest "
        f"(N = {facts['N']}, ε = {facts['eps']}) correlations are {noisy:.3f} for y/N, {cgm:.3f} for CGM, {naive:.3f} "
        f"for self-tuned naive MLE, and the best is {best}"
    )
    return _OK if all(better) else _BUT if any(one[1] > one[0] for one in rows) else _NOT, text


def _mobility_sensitivity(lines: Sequence[Line]) -> Judged:
    one = lines[0]
    agrees = (
        one["mobility_plain"] == 24 * one["mobility_cliques"] and one["mobility_normalised"] <= one["mobility_cliques"]
    )
    text = f"{one['mobility_plain']:g} with {one['mobility_cliques']} edges, and {one['mobility_normalised']:.3g}"
    return _OK if agrees else _BUT, text


def _ahead(found: Scores, one: str, other: str) -> tuple[int, int]:
    """In how many cells the first has the greater mean score; and how many cells have both."""
    means = [pages.means(some, "score") for some in found.values()]
    both = [mean[one] > mean[other] for mean in means if {one, other} <= set(mean)]
    return sum(both), len(both)


def _mobility(lines: Sequence[Line]) -> Judged:
    found = scored(lines)
    tiny, tuned, eb = (_ahead(found, "cgm-em", other) for other in ("naive tiny", "naive", "eb-map"))
    if not tiny[1] * tuned[1]:
        return _SILENT, _NO_RUNS
    text = (
        f"in {tiny[0]} of {tiny[1]} cells against the tiny penalty, in {tuned[0]} of {tuned[1]} against naive MLE that "
        f"tunes itself, in {eb[0]} of {eb[1]} against `eb-map`"
    )
    return _OK if tiny[0] == tiny[1] and tuned[0] == tuned[1] else _BUT if tiny[0] > tiny[1] / 2 else _NOT, text


def _mobility_descent(lines: Sequence[Line]) -> Judged:
    found = scored(lines)
    cgm, naive = (_ahead(found, one, "psgd oracle") for one in ("cgm-em", "naive"))
    if not cgm[1] * naive[1]:
        return _SILENT, _NO_RUNS
    text = f"CGM in {cgm[0]} of {cgm[1]} cells, naive MLE (self-tuned) in {naive[0]} of {naive[1]}"
    return _OK if cgm[0] == cgm[1] and naive[0] == naive[1] else _BUT if naive[0] else _NOT, text


def _mobility_times(lines: Sequence[Line]) -> Judged:
    found = scored(lines)
    ours = []
    for label in ("cgm-em", "psgd oracle"):
        every = [one for some in found.values() for one in ratios(some, label, kl_of("naive", "seconds"), "seconds")]
        if not every:
            return _SILENT, _NO_RUNS
        ours.append(geometric(every))
    agrees = all(0.5 < one / paper < 2 for one, paper in zip(ours, (15, 46), strict=True))
    return _OK if agrees else _BUT, f"{ours[0]:.2g} and {ours[1]:.2g} times (CPU seconds; naive MLE that tunes itself)"


def _normalised(lines: Sequence[Line]) -> Judged:
    found = scored(lines)
    ahead = _ahead(found, "naive", "naive, not normalised")
    if not ahead[1]:
        return _SILENT, _NO_RUNS
    text = (
        f"self-tuned naive MLE scores better with them in {ahead[0]} of {ahead[1]} cells ([why](#mobility-weightings))"
    )
    return _OK if ahead[0] == ahead[1] else _BUT if ahead[0] or ahead[1] < 3 else _NOT, text


def _loopy(lines: Sequence[Line]) -> Judged:
    found = scored(lines)
    means = [pages.means(some, "l1") for some in found.values()]
    nearer = [sum(mean[name] < mean["noisy tables"] for mean in means) for name in ("cgm-em", "naive", "eb-map")]
    side = facts_of(lines[0]["cell"])["side"]
    fits = any(draws(some, "junction tree", "fits") != [0.0] * len(some) for some in found.values())
    text = (
        f"{side} x {side} grid, whose junction tree {'fits' if fits else 'does not fit'}, loopy belief propagation: "
        f"edge tables nearer to the truth than the noisy ones in {nearer[0]} of {len(means)} cells by CGM, in "
        f"{nearer[1]} by naive MLE, in {nearer[2]} by `eb-map`"
    )
    return _OK if nearer[0] == len(means) else _BUT, text


def text(lines: Sequence[Line]) -> str:
    """The page: runs, claims, and a table for each figure."""
    title = "Bernstein et al. (2017)"
    return report(title, claims(lines), lines, *pages.sections(lines))


def _trial(asked: Namespace, cell: str, draw: int) -> int:
    return BASE + draw


def _missing(method: str) -> str | None:
    return METHODS_OF_TRIALS[method].missing() if method in ("mbi", "psgd") else None


_GROUPS: Mapping[str, Any] = dict.fromkeys(method for methods in METHODS.values() for method in methods)

STUDY = Study(
    about=__doc__,
    name="paper-bernstein",
    cells=cells,
    methods=list(_GROUPS),
    serves=serves,
    trial=_trial,
    missing=_missing,
    work=work,
    text=text,
    pictures=pages.pictures,
)

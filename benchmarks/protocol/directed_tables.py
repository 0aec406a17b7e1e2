"""The tables of `benchmarks.bayes_net`: errors over the baseline's, budgets of equal error, targets, real records."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from benchmarks.harness.output import markdown
from benchmarks.harness.runs import Line
from benchmarks.protocol.directed import BASELINE, EXACT, METHODS
from benchmarks.protocol.graphs_of_people import DELTA, PEOPLE, REFERENCES

__all__ = ["budget_ratio", "over_baseline", "tables"]

LOCAL = "bayes-net local"
#: At epsilon = 1: method -> network -> KL over the baseline's, at most.
TARGETS = {
    "bayes-net": {"sachs": 0.52, "child": 0.38, "alarm": 0.40},
    "bayes-net Gaussian": {"sachs": 0.50, "child": 0.22, "alarm": 0.22},
}
#: `local` over the joint fit, at most; seconds on one thread.
LOCAL_AT_MOST, HAILFINDER_SECONDS = 1.35, 60
ERRORS = {"kl": "KL", "l1": "L1 of conditional tables"}

Values = Mapping[int, float]  # trial -> error


def tables(lines: Sequence[Line]) -> str:
    """All of them, in the order of the page that shows them."""
    runs = [line for line in lines if line["cell"].split()[0] not in ("adult", "time")]
    parts = ["# Bayesian networks over a public graph\n"]
    if runs:
        parts += ["## KL over the baseline's, epsilon = 1\n", _block("kl", _ratios(runs, "kl", "1"))]
        parts += [_targets(runs, lines)]
        parts += ["## The paper's headline: budget of equal error\n", _SAID_BUDGETS, _block("budget", _budgets(runs))]
        parts += ["## L1 of conditional tables over the baseline's, epsilon = 1\n", _ratios(runs, "l1", "1")]
        parts += [
            f"## KL over the baseline's, epsilon = {epsilon}\n\n{_ratios(runs, 'kl', epsilon)}"
            for epsilon in _epsilons(runs)
            if epsilon != "1"
        ]
        parts += ["## Queries, epsilon = 1\n", _SAID_QUERIES, _block("queries", _queries(runs))]
    parts += [_times(lines), _people(lines)]
    return "\n".join(part for part in parts if part)


_SAID_BUDGETS = (
    "The baseline's epsilon over the one with which a method has the same mean error, where the baseline spends 1 / 3; "
    'by interpolation on logarithms. "<1": more error than the baseline at every epsilon tried; ">": less at the '
    "smallest one.\n"
)
_SAID_QUERIES = "Mean L1 of single attributes' marginals / of P(target | two others), to the truth.\n"


def _block(name: str, table: str) -> str:
    """A table that pages of the documentation include."""
    return f"<!-- --8<-- [start:{name}] -->\n\n{table}\n<!-- --8<-- [end:{name}] -->\n"


def over_baseline(ours: Values, theirs: Values) -> tuple[float, float, int]:
    """The ratio of mean errors over the trials that both have, its standard error (jackknife), and how many trials."""
    both = sorted(set(ours) & set(theirs))
    if not both:
        return float("nan"), float("nan"), 0
    mine, other = np.array([ours[trial] for trial in both]), np.array([theirs[trial] for trial in both])
    ratio, count = float(mine.sum() / other.sum()), len(both)
    if count == 1:
        return ratio, float("nan"), 1
    without = (mine.sum() - mine) / (other.sum() - other)
    return ratio, float(np.sqrt((count - 1) * np.var(without))), count


def budget_ratio(ours: Mapping[float, float], theirs: Mapping[float, float], epsilon: float) -> str:
    """What the baseline spends, epsilon, over what ours needs for the baseline's error there.

    ours, theirs: epsilon -> error. Between two epsilons both are taken as powers.

    >>> budget_ratio({0.25: 4.0, 1: 1.0}, {1.0: 2.0}, 1)
    '2.0'
    """
    if epsilon not in theirs or not ours:
        return "-"
    wanted = theirs[epsilon]
    at = sorted(ours)
    if ours[at[0]] <= wanted:
        return f">{epsilon / at[0]:.1f}"
    for low, high in itertools.pairwise(at):
        if ours[low] > wanted >= ours[high]:
            along = np.log(ours[low] / wanted) / np.log(ours[low] / ours[high])
            return f"{epsilon / float(np.exp(np.log(low) + along * np.log(high / low))):.1f}"
    return "<1" if at[-1] >= epsilon else "-"


def _ratios(runs: Sequence[Line], error: str, epsilon: str) -> str:
    """Methods x networks, with standard errors; the baseline's own error."""
    names = _networks(runs)
    rows = []
    for method in METHODS:
        row = [method]
        for name in names:
            theirs = _values(runs, f"{name} {epsilon}", BASELINE, error)
            ours = _values(runs, f"{name} {epsilon}", method, error)
            if method == EXACT:
                ours = _values(runs, f"{name} 1", EXACT, error)
            if method == BASELINE and theirs:
                row.append(f"= {np.mean(list(theirs.values())):.3g}")
            else:
                row.append(_ratio(*over_baseline(ours, theirs)))
        if any(value != "-" for value in row[1:]):
            rows.append(row)
    return markdown(["method", *names], [*rows, ["draws", *_draws(runs, names, epsilon)]])


def _ratio(ratio: float, spread: float, count: int) -> str:
    if not count:
        return "-"
    return f"{ratio:.2f}" if count == 1 else f"{ratio:.2f} ({spread:.2f})"


def _draws(runs: Sequence[Line], names: Sequence[str], epsilon: str) -> list[str]:
    """The fewest and the most that a method had."""
    found = []
    for name in names:
        counts = [len(_values(runs, f"{name} {epsilon}", method, "kl")) for method in METHODS]
        there = sorted(count for count in counts if count) or [0]
        found.append(str(there[0]) if there[0] == there[-1] else f"{there[0]} to {there[-1]}")
    return found


def _targets(runs: Sequence[Line], lines: Sequence[Line]) -> str:
    """What was asked for, met or missed."""
    rows = []
    for method, wanted in TARGETS.items():
        for name, most in wanted.items():
            ours, theirs = (_values(runs, f"{name} 1", one, "kl") for one in (method, BASELINE))
            rows += _target(f"{method} / {BASELINE}, KL, {name}", over_baseline(ours, theirs), most)
    for name in TARGETS["bayes-net"]:
        ours, theirs = (_values(runs, f"{name} 1", one, "kl") for one in (LOCAL, "bayes-net"))
        rows += _target(f"{LOCAL} / bayes-net, KL, {name}", over_baseline(ours, theirs), LOCAL_AT_MOST)
    for line in lines:
        if line["cell"] == "time hailfinder" and line["method"] == "bayes-net":
            spent = float(line["whole"])
            rows.append(["hailfinder, CPU seconds of a fit", f"{spent:.1f}", str(HAILFINDER_SECONDS)])
            rows[-1].append(_met(spent <= HAILFINDER_SECONDS))
    return "## Targets\n\n" + markdown(["what", "measured", "at most", ""], rows) if rows else ""


def _target(what: str, found: tuple[float, float, int], most: float) -> list[list[str]]:
    return [[what, _ratio(*found), f"{most:.2f}", _met(found[0] <= most)]] if found[2] else []


def _met(met: bool) -> str:
    return "met" if met else "missed"


def _budgets(runs: Sequence[Line]) -> str:
    """Methods x networks, "at the baseline's epsilon = 1 / at 3"."""
    rows = []
    for method in (name for name in METHODS if name not in (EXACT, BASELINE)):
        for error, called in ERRORS.items():
            row = []
            for name in _networks(runs):
                ours, theirs = _paired_curves(runs, name, method, error)
                row.append(" / ".join(budget_ratio(ours, theirs, epsilon) for epsilon in (1.0, 3.0)))
            if any(value != "- / -" for value in row):
                rows.append([method, called, *row])
    return markdown(["method", "error", *_networks(runs)], rows)


def _paired_curves(runs: Sequence[Line], name: str, method: str, error: str) -> tuple[dict[float, float], ...]:
    """epsilon -> mean error, of the method and of the baseline, over the trials that both have at that epsilon."""
    curves: tuple[dict[float, float], ...] = ({}, {})
    for epsilon in _epsilons(runs):
        both = [_values(runs, f"{name} {epsilon}", one, error) for one in (method, BASELINE)]
        trials = set(both[0]) & set(both[1])
        if trials:
            for curve, values in zip(curves, both, strict=True):
                curve[float(epsilon)] = float(np.mean([values[trial] for trial in trials]))
    return curves


def _queries(runs: Sequence[Line]) -> str:
    """Means, not ratios."""
    return _shown(
        METHODS,
        _networks(runs),
        lambda method, name: [_values(runs, f"{name} 1", method, error) for error in ("alone", "asked")],
    )


def _shown(
    methods: Sequence[str] | Mapping[str, object], names: Sequence[str], find: Callable[..., list[Values]]
) -> str:
    rows = []
    for method in methods:
        found = [find(method, name) for name in names]
        if any(values for pair in found for values in pair):
            rows.append(
                [
                    method,
                    *(
                        " / ".join(f"{np.mean(list(one.values())):.4f}" if one else "-" for one in pair)
                        for pair in found
                    ),
                ]
            )
    return markdown(["method", *names], rows)


def _times(lines: Sequence[Line]) -> str:
    """CPU seconds on one thread."""
    rows = [
        [line["cell"].split()[1], str(line["nodes"]), line["method"], f"{line['whole']:.2f}", f"{line['learning']:.3f}"]
        for line in lines
        if line["cell"].startswith("time ")
    ]
    head = ["network", "nodes", "method", "fit, with counting and noise", "learning alone"]
    return "## CPU seconds, one thread\n\n" + markdown(head, rows) if rows else ""


def _people(lines: Sequence[Line]) -> str:
    """Real records: both errors, means over the seeds with standard errors."""
    cells = sorted({line["cell"] for line in lines if line["cell"].startswith("adult ")}, key=_promise)
    rows = []
    for cell in cells:
        for method in (*PEOPLE, *REFERENCES):
            some = [line for line in lines if line["cell"] == cell and line["method"] == method]
            if some:
                _, epsilon, kind = cell.split()
                said = {"pure": epsilon, "delta": f"({epsilon}, {DELTA})", "none": "no noise"}[kind]
                errors = [_spread([line[key] for line in some]) for key in ("error2", "loglik")]
                spent = f"{np.mean([line['seconds'] for line in some]):.1f}"
                rows.append([said, method, *errors, spent, str(len(some))])
    head = ["budget", "method", "pairs, total variation", "log-likelihood, held out", "CPU s", "seeds"]
    return "## Adult: real records\n\n" + _block("adult", markdown(head, rows)) if rows else ""


def _promise(cell: str) -> tuple[bool, float]:
    _, epsilon, kind = cell.split()
    return kind != "pure", float(epsilon)


def _spread(values: Sequence[float]) -> str:
    error = f" ({np.std(values, ddof=1) / np.sqrt(len(values)):.1g})" if len(values) > 1 else ""
    return f"{np.mean(values):.4f}{error}"


def _values(runs: Sequence[Line], cell: str, method: str, error: str) -> Values:
    return {line["trial"]: line[error] for line in runs if line["method"] == method and line["cell"] == cell}


def _networks(runs: Sequence[Line]) -> list[str]:
    return list(dict.fromkeys(line["cell"].split()[0] for line in runs))


def _epsilons(runs: Sequence[Line]) -> list[str]:
    return sorted({line["cell"].split()[1] for line in runs}, key=float)

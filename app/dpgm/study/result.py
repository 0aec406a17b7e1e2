"""Results of a study: means with standard errors, paired differences and failures, as text, CSV and a picture.

The truth is generated or a released model, so results are public.
"""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import field, frozen

from dpgm.study.one_run import MEASURES
from dpgm.study.picture import Point, draw_result
from dpgm.study.store import Line
from dpgm.study.study import KINDS, Study
from dpgm_core._util.html import table
from dpgm_core.errors import brief, clipped
from dpgm_core.privacy.budget import Budget

__all__ = ["Estimate", "Row", "StudyResult"]

_SAID = "Records were drawn from a model and the noise from a seed: nobody's data were read, and nothing was charged."
_HEADS = {
    "kl": "KL (nats)",
    "tv_cliques": "TV of cliques",
    "tv_cliques_worst": "worst",
    "tv_pairs": "TV of pairs",
    "tv_pairs_worst": "worst",
    "seconds": "seconds",
}


@frozen(kw_only=True)
class Estimate:
    """A mean over runs, its standard error (NaN for fewer than two runs), and the number of runs."""

    mean: float
    error: float
    count: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Estimate:
        """Of independent values; the mean is infinite where one of them is.

        >>> Estimate.of([1.0, 3.0])
        Estimate(mean=2.0, error=1.0, count=2)
        """
        known = list(values)
        count = len(known)
        if not count:
            return cls(mean=math.nan, error=math.nan, count=0)
        mean = math.fsum(known) / count
        if count == 1 or not math.isfinite(mean):
            return cls(mean=mean, error=math.nan, count=count)
        variance = math.fsum((value - mean) ** 2 for value in known) / (count - 1)
        return cls(mean=mean, error=math.sqrt(variance / count), count=count)

    def __str__(self) -> str:
        if not self.count:
            return "-"
        if math.isnan(self.error) or self.error == 0:
            return f"{self.mean:.3g}"
        digits = max(0, 1 - math.floor(math.log10(self.error)))  # two of the error
        return f"{self.mean:.{digits}f} ± {self.error:.{digits}f}"


@frozen(kw_only=True)
class Row:
    """Results of one method at one point.

    Attributes
    ----------
    means
        By measure, over the runs that did not fail.
    differences
        From the study's first method at the same point, over the runs in which neither failed; empty for that method.
    reasons
        Reasons of failures: (type, message, runs).
    """

    method: str
    names: Mapping[str, str]
    records: int
    budget: Budget
    runs: int
    failures: int
    means: Mapping[str, Estimate]
    differences: Mapping[str, Estimate]
    reasons: Sequence[tuple[str, str, int]]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        plain: dict[str, Any] = {"method": self.method, **self.names, "records": self.records}
        plain |= {"budget": self.budget.to_dict(), "runs": self.runs, "failures": self.failures}
        for measure in MEASURES:
            plain[measure] = _plain(self.means[measure])
            plain[f"{measure}_difference"] = _plain(self.differences[measure]) if self.differences else None
        plain["reasons"] = [{"error": kind, "message": said, "runs": count} for kind, said, count in self.reasons]
        return plain


@frozen(kw_only=True)
class StudyResult:
    """Results of a study.

    Attributes
    ----------
    rows
        One for each method and point, in the study's order.
    lines
        One for each run, as in the folder's `runs.jsonl`, and in the same order for every number of jobs.
    """

    name: str
    repeat: int
    rows: tuple[Row, ...] = field(repr=False)
    lines: tuple[Line, ...] = field(repr=False)

    @classmethod
    def of(cls, study: Study, lines: Sequence[Line]) -> StudyResult:
        """The lines of every case's runs, in the order of cases and runs."""
        parts = [lines[at : at + study.repeat] for at in range(0, len(lines), study.repeat)]
        methods = len(study.methods)
        rows = []
        for number, (case, part) in enumerate(zip(study.cases, parts, strict=True)):
            first = parts[number - number % methods]
            rows.append(
                Row(
                    method=case.method.label,
                    names={kind: part[0][kind] for kind in KINDS},
                    records=case.records,
                    budget=case.budget,
                    runs=len(part),
                    failures=sum("error" in line for line in part),
                    means={one: Estimate.of(_values(part, one).values()) for one in MEASURES},
                    differences={one: _difference(part, first, one) for one in MEASURES} if part is not first else {},
                    reasons=_reasons(part),
                )
            )
        return cls(name=study.name, repeat=study.repeat, rows=tuple(rows), lines=tuple(lines))

    def text(self) -> str:
        """A table of means and standard errors, what failed and why, and what the numbers are of."""
        return "\n".join([*self._heading(), "", *_aligned(*self._table()), "", *self._troubles(), _SAID])

    def csv(self) -> str:
        """The rows: a column for each measure's mean and standard error, and for those of its differences."""
        measures = [f"{measure}{what}" for measure in MEASURES for what in ("", "_difference")]
        columns = [column for measure in measures for column in (measure, f"{measure}_error")]
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["method", *KINDS, "records", "budget", "runs", "failures", *columns])
        for row in self.rows:
            numbers = []
            for measure in MEASURES:
                for estimate in (row.means[measure], row.differences.get(measure)):
                    numbers += ["", ""] if estimate is None else [_digits(estimate.mean), _digits(estimate.error)]
            facts = [row.records, row.budget, row.runs, row.failures]
            writer.writerow([row.method, *row.names.values(), *facts, *numbers])
        return out.getvalue()

    def svg(self) -> str:
        """KL and total variation of pairs against the budget, one standard error up and down; a line per method."""
        panels = {"kl": "KL(truth || model), nats", "tv_pairs": "total variation of pairs, mean"}
        axis = _axis([row.budget for row in self.rows])
        points = [
            Point(
                line=row.method,
                panel=f"{title}; {row.records:,} records",
                at=_amount(row.budget),
                tick=f"{_amount(row.budget):g}" if axis else str(row.budget),
                mean=row.means[measure].mean,
                error=row.means[measure].error,
            )
            for measure, title in panels.items()
            for row in self.rows
        ]
        title, sizes = f"{self.name}: error against budget", len({row.records for row in self.rows})
        return draw_result(
            title, points, axis=axis or "budget", across=sizes if 2 <= sizes <= 4 else 2, evenly=axis is None
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values of name and rows."""
        return {"name": self.name, "repeat": self.repeat, "rows": [row.to_dict() for row in self.rows]}

    def __repr__(self) -> str:
        return brief("StudyResult", clipped(self.name), f"{len(self.rows)} rows of {self.repeat} runs each")

    def _repr_html_(self) -> str:
        said = "; ".join([*self._heading(), *self._troubles()])
        return f"{table(*self._table(), caption=said)}{self.svg()}"

    def _heading(self) -> list[str]:
        """What all rows have in common, and what differences are from."""
        sizes, budgets = {row.records for row in self.rows}, {str(row.budget) for row in self.rows}
        same = [f"{next(iter(sizes)):,} records"] * (len(sizes) == 1) + [next(iter(budgets))] * (len(budgets) == 1)
        lines = ["; ".join([f"{self.name}: {self.repeat} runs of each, mean ± standard error", *same])]
        return lines + [f"differences are from {self.rows[0].method}, run by run on the same records"] * self._compares

    @property
    def _compares(self) -> bool:
        return any(row.differences for row in self.rows)

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Names of columns, and rows; what is the same in all rows stands in the heading."""
        sizes, budgets = len({row.records for row in self.rows}) > 1, len({row.budget for row in self.rows}) > 1
        head = [*["records"] * sizes, *["budget"] * budgets, "method", *_HEADS.values(), "failed"]
        body = []
        for row in self.rows:
            point = [*[f"{row.records:,}"] * sizes, *[str(row.budget)] * budgets]
            numbers = [_cell(measure, row.means[measure]) for measure in _HEADS]
            apart = [str(row.differences["kl"]) if row.differences else ""] * self._compares
            body.append([*point, row.method, *numbers, f"{row.failures} of {row.runs}", *apart])
        return head + ["difference of KL"] * self._compares, body

    def _troubles(self) -> list[str]:
        """Why runs failed, each reason once; and what could not be computed."""
        lines = [
            f"{row.method}, {row.records:,} records, {row.budget}: {count} of {row.runs} failed, {kind}: {said}"
            for row in self.rows
            for kind, said, count in row.reasons
        ]
        unanswered = dict.fromkeys(line["unanswered"] for line in self.lines if "unanswered" in line)
        lines += [f"not computed for some models: {said}" for said in unanswered]
        return lines


def _values(part: Sequence[Line], measure: str) -> dict[int, float]:
    """Run -> value, of the runs that have one."""
    return {line["run"]: float(line[measure]) for line in part if line.get(measure) is not None}


def _difference(part: Sequence[Line], first: Sequence[Line], measure: str) -> Estimate:
    ours, theirs = _values(part, measure), _values(first, measure)
    pairs = [ours[run] - theirs[run] for run in ours if run in theirs and math.isfinite(ours[run] + theirs[run])]
    return Estimate.of(pairs)


def _reasons(part: Sequence[Line]) -> tuple[tuple[str, str, int], ...]:
    """The most frequent first."""
    counted = Counter((line["error"], line["message"]) for line in part if "error" in line)
    return tuple((kind, said, count) for (kind, said), count in counted.most_common())


def _cell(measure: str, estimate: Estimate) -> str:
    if measure.endswith("worst") or measure == "seconds":
        return f"{estimate.mean:.2g}" if estimate.count else "-"
    return str(estimate)


def _amount(budget: Budget) -> float:
    if budget.kind == "gdp":
        return math.sqrt(budget.mu_squared)
    return float(budget.rho if budget.kind == "zcdp" else budget.epsilon)


def _axis(budgets: Sequence[Budget]) -> str | None:
    """What the budgets are amounts of; None where they have no common scale."""
    if len({(budget.kind, budget.delta) for budget in budgets}) > 1:
        return None
    kind, delta = budgets[0].kind, float(budgets[0].delta)
    return {"pure": "epsilon", "zcdp": "rho", "gdp": "mu", "approx": f"epsilon, with delta = {delta:g}"}[kind]


def _plain(estimate: Estimate) -> dict[str, Any]:
    return {
        "mean": None if math.isnan(estimate.mean) else estimate.mean,
        "standard_error": None if math.isnan(estimate.error) else estimate.error,
        "runs": estimate.count,
    }


def _digits(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"


def _aligned(head: Sequence[str], body: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]

    def line(row: Sequence[str]) -> str:
        return "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()

    return [line(head), line(["-" * width for width in widths]), *map(line, body)]

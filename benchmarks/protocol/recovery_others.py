"""The tables of `benchmarks.mrf` that no search fills: contrasts, models of order three, real records, time, scale."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from benchmarks.harness.output import markdown
from benchmarks.harness.runs import Line
from benchmarks.protocol.recovery_learners import noise_alone, saved
from benchmarks.protocol.recovery_tables import block

__all__ = ["median", "other_tables"]


def other_tables(lines: Sequence[Line]) -> str:
    """Errors of t-wise models, contrasts, days held out, scale."""
    return "\n".join(
        part
        for part in (_known(lines), _walsh(lines), _days(lines), _wide(lines), _rounds(lines), _gibbs(lines))
        if part
    )


def median(lines: Iterable[Line], cell: str, method: str, key: str) -> float | None:
    """Over the draws."""
    values = [line[key] for line in lines if line["cell"] == cell and line["method"] == method and key in line]
    return float(np.median(values)) if values else None


def _known(lines: Sequence[Line]) -> str:
    rows = []
    for cell in dict.fromkeys(line["cell"] for line in lines if line["cell"].startswith("known ")):
        runs = [line for line in lines if line["cell"] == cell]
        _, graph, size, relation = cell.split()
        ratio, spread = saved(runs)
        alone = noise_alone(graph, int(size), relation)
        rows.append(
            [f"{graph} {size}", relation, f"{ratio:.2f} ± {ratio * spread:.2f}", f"{alone:.2f}", str(len(runs))]
        )
    head = ["measured, p", "neighbours", "records for cells / for contrasts", "by the noise alone", "draws"]
    return f"## Contrasts of a known structure\n\n{_SAID_KNOWN}\n{block('known', markdown(head, rows))}" if rows else ""


_SAID_KNOWN = (
    "`eb-map`, equal errors (RMS) of the couplings, rho = .001, where noise is many times the sampling. By the noise "
    "alone: the deviation of a pair's product from four cells over that from contrasts, which measure every attribute "
    "alone besides; 2 where no attribute is measured alone.\n"
)


def _walsh(lines: Sequence[Line]) -> str:
    rows = []
    for cell in dict.fromkeys(line["cell"] for line in lines if line["cell"].startswith("walsh ")):
        for method in dict.fromkeys(line["method"] for line in lines if line["cell"] == cell):
            errors = [median(lines, cell, method, key) for key in ("off", "cpu")]
            draws = sum(line["cell"] == cell and line["method"] == method for line in lines)
            _, records, rho = cell.split()
            rows.append([records, rho, method, *(f"{one:.3f}" for one in errors if one is not None), str(draws)])
    head = ["records", "rho", "method", "largest error of a maximal monomial", "CPU s", "draws"]
    return f"## Binary t-wise models, p = 10, t = 3, medians\n\n{block('walsh', markdown(head, rows))}" if rows else ""


def _days(lines: Sequence[Line]) -> str:
    rows = []
    for cell in dict.fromkeys(line["cell"] for line in lines if line["cell"].startswith("days ")):
        for method in dict.fromkeys(line["method"] for line in lines if line["cell"] == cell):
            some = [line for line in lines if line["cell"] == cell and line["method"] == method]
            values = [line["pseudo"] for line in some]
            error = f" ({np.std(values, ddof=1) / math.sqrt(len(values)):.2g})" if len(values) > 1 else ""
            mean = {key: float(np.mean([line[key] for line in some])) for key in ("seconds", "cliques")}
            row = [cell.removeprefix("days "), method, f"{np.mean(values):.3f}{error}"]
            rows.append([*row, f"{mean['cliques']:.0f}", f"{mean['seconds']:.1f}", str(len(some))])
    head = ["budget", "method", "log pseudo-likelihood of a day, held out", "cliques", "CPU s", "seeds"]
    return f"## Hours of working days, 72 binary attributes\n\n{block('days', markdown(head, rows))}" if rows else ""


def _wide(lines: Sequence[Line]) -> str:
    rows = [
        [
            line["cell"].removeprefix("wide "),
            line["method"],
            f"{line['seconds']:.0f}",
            f"{line['peak']:,.0f}",
            line["said"],
        ]
        for line in lines
        if line["cell"].startswith("wide ")
    ]
    head = ["attributes x records", "method", "CPU s", "peak MB", "edges"]
    return f"## Scale\n\n{block('wide', markdown(head, rows))}" if rows else ""


def _rounds(lines: Sequence[Line]) -> str:
    rows = [
        [
            line["cell"].split()[1],
            f"{line['round']:.3f}",
            f"{line['products']:.3f}",
            f"{line['round'] / line['products']:.2f}",
        ]
        for line in lines
        if line["cell"].startswith("round ")
    ]
    head = ["attributes", "a round of gradients, CPU s", "its two products", "ratio"]
    return f"## A round of gradients on 65,536 records\n\n{block('round', markdown(head, rows))}" if rows else ""


def _gibbs(lines: Sequence[Line]) -> str:
    rows = [
        [line["method"], *(f"{line[key]:.2f}" for key in ("marginals", "records", "compiled"))]
        for line in lines
        if line["cell"].startswith("gibbs ")
    ]
    head = ["", "marginals, CPU s", "200,000 records", "to compile, once"]
    return f"## Gibbs sampling, 64 attributes, degree 3\n\n{block('gibbs', markdown(head, rows))}" if rows else ""

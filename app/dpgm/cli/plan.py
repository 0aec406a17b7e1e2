"""The command `dpgm plan`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpgm.cli.common import (
    FILE,
    json_option,
    print_err,
    print_json,
    print_lines,
    print_out,
    print_table,
    progress_option,
    progress_shown,
    selector_of,
    settings_option,
    stamp,
    unmeasured_note,
)
from dpgm_core.errors import BudgetError, DpgmError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dpgm.spec import Spec
    from dpgm_core.domain.domain import Domain
    from dpgm_core.learning.selector import SelectionPlan
    from dpgm_core.pipeline.planning import Plan
    from dpgm_core.privacy.budget import Budget
    from dpgm_core.structure.graphs import Clique

__all__ = ["plan"]


@click.command()
@click.argument("spec", type=FILE)
@settings_option
@json_option
@progress_option
@click.option("--records", type=float, default=None, help="A publicly known or guessed number of records.")
def plan(spec: Path, settings: tuple[str, ...], as_json: bool, records: float | None) -> None:
    """Show what SPEC would cost and how accurate it would be. Reads no data."""
    from dpgm.spec import load_spec

    run = load_spec(spec, settings)
    records = run.expected_records if records is None else records
    with progress_shown() as progress:
        progress("planning", 0, None)
        job = run.to_run()
        chosen = job.plan_selection(records) if run.selector is not None else None
        planned = job.plan(records) if chosen is None else None
    if chosen is not None:
        _print_selection(spec, run, chosen, records, as_json)
    if planned is not None:
        _print_release(spec, run, planned, records, as_json)


def _print_release(spec: Path, run: Spec, planned: Plan, records: float | None, as_json: bool) -> None:
    """Print what a release of named tables would cost and measure."""
    from dpgm_core.privacy.terms import flaws

    remarks = (*run.remarks, *_decimals_note(run))
    for note in (*remarks, *planned.notes):
        print_err(f"dpgm: {note}")
    private = run.seed is None
    if as_json:
        facts = planned.to_dict()
        print_json({**facts, "notes": [*remarks, *facts["notes"]], "private": private})
        return
    stamp(spec, (*flaws(unsafe=[planned.unsafe], private=private), *filter(None, [planned.condition])))
    _print_plan(run, planned)
    _print_tables(run, planned, records)


def _decimals_note(run: Spec) -> list[str]:
    """Return a sentence that asks for the decimals of numbers that state none."""
    related = run.terms.related
    columns = [
        one.name
        for one in (run.domain if related is None else (*related.root, *related.children))
        if one.values.kind == "number" and one.values.decimals is None and one.edges is not None
    ]
    if not columns:
        return []
    shown = ", ".join(columns[:8]) + (f", ... ({len(columns)} in all)" if len(columns) > 8 else "")
    return [
        f"samples will write {shown} with as many decimals as the bins tell apart: say decimals = 2 of money in the "
        "domain, or how many the values have"
    ]


def _print_plan(run: Spec, planned: Plan) -> None:
    """Print costs, and what is measured with which noise."""
    assert run.structure is not None  # whose tables these are
    groups = len(run.structure.groups)
    sensitivity = planned.sensitivity
    print_out(f"budget: {planned.asked}; this release costs {planned.cost}")
    _print_ledger(run, planned.cost)
    _print_related(run)
    weighted = planned.terms.contributions
    unit = "records" if weighted is None else f"1/{weighted.grid} persons"
    print_out(
        f"sensitivity ({planned.terms.neighbours.value}): L0 {sensitivity.l0}, L1 {sensitivity.l1}, "
        f"L2 {sensitivity.l2:.4g}, Linf {sensitivity.linf}; "
        f"noise scale {planned.scale:.6g} {unit} per {'sum' if planned.contrasts else 'cell'}"
    )
    print_lines(planned.structure)
    if planned.seconds_per_inference is None:
        print_out("inference: the engine cannot hold this structure; the learner does without it")
    else:
        cost = f"{planned.inference_cost}; " if planned.inference_cost else ""
        print_out(f"inference: {cost}about {1000 * planned.seconds_per_inference:.3g} ms a call")
    if planned.learner_memory is not None and planned.learner_seconds is not None:
        from dpgm_core.errors import human_bytes

        memory, seconds = human_bytes(planned.learner_memory), f"{planned.learner_seconds:.2g}"
        print_out(f"learner: about {memory} of memory and {seconds} s of CPU for one fit")
    if planned.contrasts:
        print_out(f"measured: {len(planned.tables)} sums of products, one for each set of attributes inside a clique")
    elif len(planned.tables) != groups:
        print_out(f"measured for the learner: {len(planned.tables)} tables instead of {groups}")


def _print_related(run: Spec) -> None:
    """Print how two related tables count."""
    related = run.terms.related
    if related is not None:
        print_out(f"two related tables: each root is one record, with {related.describe()}")


def _print_tables(run: Spec, planned: Plan, records: float | None) -> None:
    """Print the noise of each table, and what is not measured."""
    if run.terms.related is None and planned.terms.contributions is None and not planned.contrasts:
        tables = [(table.clique, table.noise**2) for table in planned.tables if len(table.clique)]
        _print_errors(run.domain, tables, records)
    print_out()
    what = "records" if planned.terms.contributions is None else "persons"
    by_row = any(table.records_per_row is not None for table in planned.tables)
    header = [
        "product" if planned.contrasts else "table",
        "cells",
        f"noise sd ({what})",
        "error of a probability",
        *["records per row"] * by_row,
    ]
    rows = [
        [
            " x ".join(table.clique) or "(total)",
            table.cells,
            f"{table.noise:.4g}",
            "-" if table.relative is None else f"{table.relative:.3g}",
            *["-" if table.records_per_row is None else _count(table.records_per_row)] * by_row,
        ]
        for table in planned.tables
    ]
    print_table(header, rows)
    if planned.unmeasured:
        print_out(unmeasured_note(planned.unmeasured))
    if all(table.relative is None for table in planned.tables):
        print_err("for the error of a probability give a publicly known number of records: --records N")


def _print_errors(domain: Domain, tables: Iterable[tuple[Clique, float]], records: float | None) -> None:
    """Print how exact shares will be. tables: cliques, and the variance of the noise in a cell."""
    from dpgm_core.models.findings import expected_errors, say_errors

    if records is not None:
        print_out(
            f"forecast: {say_errors(*expected_errors(domain, tables, records))}, if all labels are equally frequent"
        )


def _count(records: float) -> str:
    return f"{records:,.0f}" if records >= 100 else f"{records:.3g}"


def _print_ledger(run: Spec, cost: Budget) -> None:
    """Print the budget left, and whether a run of this cost would be refused."""
    if run.ledger is not None and run.ledger.path.exists():
        from dpgm_core.privacy.ledger import Ledger

        ledger = Ledger.open(run.ledger.path)
        try:
            ledger.check(run.to_run(ledger=ledger).charged.budget if cost == run.budget else cost)
            refused = ""
        except BudgetError:
            refused = "; this run would be refused"
        except DpgmError:  # whoever plans may have no right to charge
            refused = ""
        print_out(f"ledger: {ledger.remaining()} left in {run.ledger.path}{refused}")


def _print_selection(spec: Path, run: Spec, planned: SelectionPlan, records: float | None, as_json: bool) -> None:
    """Print what a selection would spend and measure."""
    from dpgm_core.pipeline.planning import budget_notes
    from dpgm_core.privacy.terms import change_factor, flaws

    remarks = (*run.remarks, *_decimals_note(run), *budget_notes(run.budget, records))
    remarks += () if run.research is None else run.research.notes
    for note in (*remarks, *planned.notes):
        print_err(f"dpgm: {note}")
    private = run.seed is None
    condition = run.terms.condition_for({run.budget.kind: change_factor(run.budget.kind, 1, 1)})
    conditions = [] if condition is None else [condition]
    workload = run.workload
    assert workload is not None  # the spec has one wherever it has select
    in_tables = {name for clique in workload.candidates for name in clique}
    unmeasured = [name for name in workload.domain.names if name not in in_tables]
    analyses = _expected(run, planned, records)
    if as_json:
        facts = planned.to_dict()
        print_json(
            {
                "selector": selector_of(run),
                **facts,
                "notes": [*remarks, *facts["notes"]],
                "asked": run.budget.to_dict(),
                "neighbours": run.terms.neighbours.value,
                "workload": workload.to_dict(),
                "unmeasured": unmeasured,
                "unsafe": None,
                "conditions": conditions,
                "private": private,
                **({"analyses": analyses} if analyses else {}),
            }
        )
        return
    stamp(spec, (*flaws(unsafe=[None], private=private), *conditions))
    print_out(
        f"budget: {run.budget} under {run.terms.neighbours.value} neighbours, charged whole before the first step"
    )
    _print_ledger(run, run.budget)
    _print_related(run)
    undetermined = workload.domain.undetermined
    but = f" but for what is found of {', '.join(undetermined)}" if undetermined else ""
    print_out(f"public: the domain{but}, the workload and every setting; the structure is chosen within the budget")
    print_out(f"one-way tables: noise of standard deviation {planned.deviation:.4g} records per cell")
    if run.terms.related is None:
        names = [(name,) for name in workload.domain.names if name not in unmeasured]
        _print_errors(workload.domain, [(name, planned.deviation**2) for name in names], records)
    if planned.detectable is not None:
        share = "" if records is None else f", a total variation of {planned.detectable / records / 2:.2g}"
        print_out(
            f"found with probability 0.9: a pair of attributes {planned.detectable:,.4g} records away from "
            f"independence, summed over its cells{share}"
        )
    print_out(f"candidates: {planned.candidates:,} tables")
    if planned.learner_memory is not None and planned.learner_seconds is not None:
        from dpgm_core.errors import human_bytes

        memory, seconds = human_bytes(planned.learner_memory), f"{planned.learner_seconds:.2g}"
        print_out(f"learner: up to about {memory} of memory, and {seconds} s of CPU beside inference, for one fit")
    print_out()
    print_table(["spent on", "budget"], [[what, str(one)] for what, one in planned.shares.items()])
    if planned.limits:
        print_out()
        print_table(["limit", "value"], [[what, f"{most:,}"] for what, most in planned.limits.items()])
    if unmeasured:
        print_out(unmeasured_note(unmeasured))
    _print_analyses(analyses)


def _expected(run: Spec, planned: SelectionPlan, records: float | None) -> list[dict[str, Any]]:
    """Return what the tables of each analysis are expected to tell of its numbers, by a public guess."""
    if run.research is None:
        return []
    from dpgm_core.learning.research import ANALYSIS_TABLES

    research, own = run.research, planned.shares[ANALYSIS_TABLES]
    widths = None if records is None else research.widths(own, run.terms, records)
    return [
        {
            "analysis": str(analysis),
            "name": name,
            "measured": max(0.0, 1 - float(research.unsupported[number][at])),
            "width": None if widths is None else float(widths[number][at]),
        }
        for number, analysis in enumerate(run.analyses)
        for at, name in enumerate(research.analyses[number].names)
    ]


def _print_analyses(analyses: list[dict[str, Any]]) -> None:
    """Print how much wider each interval is expected to be than without noise, and how much of it is measured."""
    if not analyses:
        return
    print_out()
    rows = [
        [
            one["analysis"],
            one["name"],
            f"{100 * one['measured']:.1f}",
            "-" if one["width"] is None else f"{one['width']:.2f}",
        ]
        for one in analyses
    ]
    print_table(["analysis", "number", "measured (%)", "width over a sample's"], rows)
    print_out("widths and parts are a guess from the domain alone; no record was read for them")
    if analyses[0]["width"] is None:
        print_err("for the expected widths give a publicly known number of records: --records N")

"""dpgm plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpgm_core.cli.common import (
    json_option,
    print_json,
    print_table,
    say,
    say_lines,
    settings_option,
    stamp,
    talk,
    unmeasured_note,
)
from dpgm_core.cli.progress import progress_option, progress_shown
from dpgm_core.cli.run import selector_of
from dpgm_core.errors import BudgetError, DpgmError

if TYPE_CHECKING:
    from dpgm_core.foresight.plans import Plan
    from dpgm_core.privacy.budget import Budget
    from dpgm_core.selection.contract import SelectionPlan
    from dpgm_core.spec import Spec

__all__ = ["plan"]


@click.command()
@click.argument("spec", type=click.Path(dir_okay=False, path_type=Path))
@settings_option
@json_option
@progress_option
@click.option("--records", type=float, default=None, help="A publicly known or guessed number of records.")
def plan(spec: Path, settings: tuple[str, ...], as_json: bool, records: float | None) -> None:
    """Say what SPEC would cost and how accurate it would be. Reads no data."""
    from dpgm_core.components.registry import make
    from dpgm_core.foresight.verbs import plan as make_plan
    from dpgm_core.foresight.verbs import plan_selection
    from dpgm_core.privacy.terms import flaws
    from dpgm_core.sources import as_source
    from dpgm_core.spec import load_spec

    run = load_spec(spec, settings)
    learner = make("learner", run.learner)
    asked: dict[str, Any] = {
        "data": as_source(run.data),
        "terms": run.terms,
        "records": run.expected_records if records is None else records,
        "split": {"tables": run.split, "holdout": run.holdout},
    }
    if run.structure is None:
        assert run.selector is not None and run.workload is not None  # the spec has both or a structure
        with progress_shown() as progress:
            progress("planning", 0, None)
            chosen = plan_selection(run.selector, run.budget, run.workload, run.learner, run.inference, **asked)
        _say_selection(spec, run, chosen, asked["records"], as_json)
        return
    with progress_shown() as progress:
        progress("planning", 0, None)
        planned = make_plan(run.structure, run.budget, run.mechanism, run.inference, learner=learner, **asked)
    remarks = (*run.remarks, *_decimals_asked(run))
    for note in (*remarks, *planned.notes):
        talk(f"dpgm: {note}")
    private = run.seed is None
    if as_json:
        facts = planned.to_dict()
        print_json({**facts, "notes": [*remarks, *facts["notes"]], "private": private})
        return
    stamp(spec, (*flaws(unsafe=[planned.unsafe], private=private), *filter(None, [planned.terms.condition])))
    _say_plan(run, planned, len(run.structure.groups))
    _say_tables(planned)


def _decimals_asked(run: Spec) -> list[str]:
    """Asks for the decimals of numbers of which none are stated, in a sentence."""
    found = [
        one.name
        for one in run.domain
        if one.values.kind == "number" and one.values.decimals is None and one.edges is not None
    ]
    if not found:
        return []
    shown = ", ".join(found[:8]) + (f", ... ({len(found)} in all)" if len(found) > 8 else "")
    return [
        f"samples will write {shown} with as many decimals as the bins tell apart: say decimals = 2 of money in the "
        "domain, or how many the values have"
    ]


def _say_plan(run: Spec, planned: Plan, groups: int) -> None:
    """What it costs, and what is measured with which noise. groups: of the spec's structure."""
    one = planned.sensitivity
    say(f"budget: {planned.asked}; this release costs {planned.cost}")
    _say_ledger(run, planned.cost)
    weighted = planned.terms.contributions
    unit = "records" if weighted is None else f"1/{weighted.grid} persons"
    say(
        f"sensitivity ({planned.terms.neighbours.value}): L0 {one.l0}, L1 {one.l1}, L2 {one.l2:.4g}, Linf {one.linf}; "
        f"noise scale {planned.scale:.6g} {unit} per {'sum' if planned.contrasts else 'cell'}"
    )
    say_lines(planned.structure)
    if planned.seconds_per_inference is None:
        say("inference: the engine cannot hold this structure; the learner does without it")
    else:
        cost = f"{planned.inference_cost}; " if planned.inference_cost else ""
        say(f"inference: {cost}about {1000 * planned.seconds_per_inference:.3g} ms a call")
    if planned.learner_memory is not None and planned.learner_seconds is not None:
        from dpgm_core.structure import human_bytes

        memory, seconds = human_bytes(planned.learner_memory), f"{planned.learner_seconds:.2g}"
        say(f"learner: about {memory} of memory and {seconds} s of CPU for one fit")
    if planned.contrasts:
        say(f"measured: {len(planned.tables)} sums of products, one for each set of attributes inside a clique")
    elif len(planned.tables) != groups:
        say(f"measured for the learner: {len(planned.tables)} tables instead of {groups}")


def _say_tables(planned: Plan) -> None:
    """The noise of each table, and what is not measured."""
    say()
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
        say(unmeasured_note(planned.unmeasured))
    if all(table.relative is None for table in planned.tables):
        talk("for the error of a probability give a publicly known number of records: --records N")


def _count(records: float) -> str:
    return f"{records:,.0f}" if records >= 100 else f"{records:.3g}"


def _say_ledger(run: Spec, cost: Budget) -> None:
    """What is left, and whether a run of this cost would still be taken."""
    if run.ledger is not None and run.ledger.path.exists():
        from dpgm_core.ledger.ledger import Ledger

        ledger = Ledger.open(run.ledger.path)
        try:
            ledger.check(cost)
            refused = ""
        except BudgetError:
            refused = "; this run would be refused"
        except DpgmError:  # whoever plans may have no right to charge
            refused = ""
        say(f"ledger: {ledger.remaining()} left in {run.ledger.path}{refused}")


def _say_selection(spec: Path, run: Spec, planned: SelectionPlan, records: float | None, as_json: bool) -> None:
    """What a selection would spend and see."""
    from dpgm_core.foresight.plans import delta_note
    from dpgm_core.privacy.terms import flaws

    remarks = (*run.remarks, *_decimals_asked(run))
    for note in filter(None, [*remarks, delta_note(run.budget, records), *planned.notes]):
        talk(f"dpgm: {note}")
    private = run.seed is None
    conditions = [] if run.terms.condition is None else [run.terms.condition]
    workload = run.workload
    assert workload is not None  # the spec has one wherever it has select
    held = {name for clique in workload.candidates for name in clique}
    unmeasured = [name for name in workload.domain.names if name not in held]
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
            }
        )
        return
    stamp(spec, (*flaws(unsafe=[None], private=private), *conditions))
    say(f"budget: {run.budget} under {run.terms.neighbours.value} neighbours, charged whole before the first step")
    _say_ledger(run, run.budget)
    found = workload.domain.undetermined
    but = f" but for what is found of {', '.join(found)}" if found else ""
    say(f"public: the domain{but}, the workload and every setting; the structure is chosen within the budget")
    say(f"one-way tables: noise of standard deviation {planned.deviation:.4g} records per cell")
    if planned.detectable is not None:
        share = "" if records is None else f", a total variation of {planned.detectable / records / 2:.2g}"
        say(
            f"found with probability 0.9: a pair of attributes {planned.detectable:,.4g} records away from "
            f"independence, summed over its cells{share}"
        )
    say(f"candidates: {planned.candidates:,} tables")
    if planned.learner_memory is not None and planned.learner_seconds is not None:
        from dpgm_core.structure import human_bytes

        memory, seconds = human_bytes(planned.learner_memory), f"{planned.learner_seconds:.2g}"
        say(f"learner: up to about {memory} of memory, and {seconds} s of CPU beside inference, for one fit")
    say()
    print_table(["spent on", "budget"], [[what, str(one)] for what, one in planned.shares.items()])
    if planned.limits:
        say()
        print_table(["limit", "value"], [[what, f"{most:,}"] for what, most in planned.limits.items()])
    if unmeasured:
        say(unmeasured_note(unmeasured))

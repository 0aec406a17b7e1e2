"""dpgm release."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpgm_core.cli.common import (
    again_option,
    json_option,
    print_json,
    say,
    settings_option,
    stamp,
    talk,
    unmeasured_note,
    validated_option,
)
from dpgm_core.cli.outcome import print_chosen, print_labels
from dpgm_core.cli.output import reserved
from dpgm_core.cli.progress import progress_option, progress_shown
from dpgm_core.cli.run import (
    opened_ledger,
    paid,
    refuse_header_alone,
    say_remarks,
    say_where,
    selector_of,
    telling_what_is_kept,
    unexpected_number,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dpgm_core.privacy.budget import Budget
    from dpgm_core.releases.release import NoisyTables
    from dpgm_core.selection.contract import Selection
    from dpgm_core.spec import Spec

__all__ = ["release"]


@click.command()
@click.argument("spec", type=click.Path(dir_okay=False, path_type=Path))
@settings_option
@validated_option
@again_option
@json_option
@progress_option
@click.pass_obj
def release(
    obj: dict[str, bool], spec: Path, settings: tuple[str, ...], validated: Path | None, again: bool, as_json: bool
) -> None:
    """Only the noisy release of SPEC, to learn from later with `dpgm learn`.

    Where SPEC says `select` under [structure], the structure is chosen first: that is charged like a fit and saved with
    every step, and a [workload] says what the model is wanted for.
    """
    from dpgm_core.errors import OptionError
    from dpgm_core.releases.missing import mostly_missing
    from dpgm_core.releases.release import total_cost
    from dpgm_core.releases.stamps import caveats_of, stamp_of
    from dpgm_core.releases.told import labels_facts
    from dpgm_core.releases.totals import contradictions
    from dpgm_core.spec import load_spec

    run = load_spec(spec, settings, validated)
    refuse_header_alone(run)
    if run.selector is None and run.holdout:
        raise OptionError(
            f"spec {spec.name} sets a share aside for a holdout, which is part of a fit; run dpgm fit, or "
            "leave the holdout out with --set holdout.share=0"
        )
    with reserved(run, again=again) as (saved, _), opened_ledger(run) as ledger, progress_shown() as progress:
        say_remarks(run)
        with telling_what_is_kept():
            noisy, selection = _released(run, {"save_release": saved, "ledger": ledger, "progress": progress})
        say_where(run, saved, [noisy])
        spent, left = total_cost([noisy]), None if ledger is None else ledger.remaining()
    unexpected = [*unexpected_number(run, [noisy]), *mostly_missing([noisy])]
    if as_json:
        told = _facts(noisy, spent, left) if selection is None else _chosen_facts(run, noisy, selection, spent, left)
        told["notes"] = [*told.get("notes", run.remarks), *unexpected]
        print_json({**told, **labels_facts([noisy]), **stamp_of([noisy], noisy.guarantee())})
        return
    stamp(noisy.saved_as or saved, caveats_of([noisy]))
    for note in unexpected:
        talk(f"dpgm: {note}")
    for note in contradictions([noisy]) if selection is None else ():
        talk(f"note: {note}")
    say(f"release: {noisy.saved_as}")
    where = "left" if selection is None else "left in the ledger"
    say(f"spent:   {spent}" + ("" if left is None else f"; {where}: {left}"))
    print_labels([noisy])
    if selection is not None:
        structure, notes = selection.structure, selection.notes
        print_chosen(structure, [noisy], verbose=obj["verbose"], selector=selector_of(run), notes=notes)
        say()
    elif noisy.structure.untold:
        say(unmeasured_note(noisy.structure.untold))
    say(noisy.guarantee())


def _released(run: Spec, how: Mapping[str, Any]) -> tuple[NoisyTables, Selection | None]:
    """The tables of a run, and how they were chosen where its structure is not named."""
    from dpgm_core import pipeline

    if run.structure is not None:
        return pipeline.release(run.data, run.structure, run.budget, run.mechanism, **how, **paid(run)), None
    who = {"learner": run.learner, "inference": run.inference}
    assert run.selector is not None  # checked by the spec
    return pipeline.select(run.data, run.selector, run.budget, **who, **how, **paid(run))


def _facts(noisy: NoisyTables, spent: Budget, left: Budget | None) -> dict[str, Any]:
    """A release of named tables, for `--json`."""
    return {
        "release": str(noisy.saved_as),
        "cost": spent.to_dict(),
        "left": None if left is None else left.to_dict(),
        "unmeasured": list(noisy.structure.untold),
    }


def _chosen_facts(
    run: Spec, noisy: NoisyTables, selection: Selection, spent: Budget, left: Budget | None
) -> dict[str, Any]:
    """A release of chosen tables, for `--json`: with the steps that chose them."""
    from dpgm_core.releases.told import session_facts

    return {
        "release": str(noisy.saved_as),
        "spent": spent.to_dict(),
        "left": None if left is None else left.to_dict(),
        "selector": selector_of(run),
        "structure": [list(clique) for clique in selection.structure.cliques],
        "notes": [*run.remarks, *selection.notes],
        "rounds": list(selection.trace),
        **session_facts([noisy]),
        "unmeasured": list(noisy.structure.untold),
    }

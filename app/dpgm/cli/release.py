"""The command `dpgm release`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpgm.cli.common import (
    check_has_records,
    explain_saved_releases,
    open_ledger,
    paid_command,
    print_err,
    print_json,
    print_out,
    print_remarks,
    progress_shown,
    selector_of,
    stamp,
    unexpected_number,
    unmeasured_note,
    warn_renamed,
)
from dpgm.cli.show import print_chosen, print_labels, reserved
from dpgm_core.errors import OptionError

if TYPE_CHECKING:
    from dpgm.spec import Spec
    from dpgm_core.learning.selector import Selection
    from dpgm_core.privacy.budget import Budget
    from dpgm_core.releases.release import NoisyTables

__all__ = ["release"]


@paid_command
def release(
    obj: dict[str, bool], spec: Path, settings: tuple[str, ...], validated: Path | None, again: bool, as_json: bool
) -> None:
    """Make the noisy release of SPEC and learn nothing; `dpgm learn` learns from it later.

    If SPEC has a `selector` under [structure], the structure is chosen first, for its [workload]. The whole budget is
    charged, and every step is saved.
    """
    from dpgm.spec import load_spec
    from dpgm_core.releases.release import total_cost
    from dpgm_core.releases.session import caveats_of, labels_facts, stamp_of
    from dpgm_core.releases.totals import contradictions, mostly_missing

    run = load_spec(spec, settings, validated)
    check_has_records(run)
    if run.selector is None and run.holdout:
        raise OptionError(
            f"spec {spec.name} reserves a share for a holdout, which is part of a fit; run dpgm fit, or "
            "leave the holdout out with --set holdout.share=0"
        )
    with reserved(run, again=again) as (saved, _), open_ledger(run) as ledger, progress_shown() as progress:
        print_remarks(run)
        with explain_saved_releases():
            job = run.to_run(ledger=ledger, save_release=saved, progress=progress, learns=False)
            noisy, selection = (job.release(), None) if run.selector is None else job.select()
        warn_renamed(run, saved, [noisy])
        spent, left = total_cost([noisy]), None if ledger is None else ledger.remaining()
    unexpected = [*unexpected_number(run, [noisy]), *mostly_missing([noisy])]
    if as_json:
        facts = _facts(run, noisy, selection, spent, left)
        facts["notes"] = [*facts.get("notes", run.remarks), *unexpected]
        print_json({**facts, **labels_facts([noisy]), **stamp_of([noisy], noisy.guarantee())})
        return
    stamp(noisy.saved_as or saved, caveats_of([noisy]))
    for note in unexpected:
        print_err(f"dpgm: {note}")
    for note in contradictions([noisy]) if selection is None else ():
        print_err(f"note: {note}")
    print_out(f"release: {noisy.saved_as}")
    where = "left" if selection is None else "left in the ledger"
    print_out(f"spent:   {spent}" + ("" if left is None else f"; {where}: {left}"))
    print_labels([noisy])
    if selection is not None:
        structure, notes = selection.structure, selection.notes
        print_chosen(structure, [noisy], verbose=obj["verbose"], selector=selector_of(run), notes=notes)
        print_out()
    elif noisy.structure.untold:
        print_out(unmeasured_note(noisy.structure.untold))
    print_out(noisy.guarantee())


def _facts(
    run: Spec, noisy: NoisyTables, selection: Selection | None, spent: Budget, left: Budget | None
) -> dict[str, Any]:
    """A release for `--json`; of tables that were chosen, with the steps that chose them."""
    from dpgm_core.releases.session import session_facts

    chosen: dict[str, Any] = {}
    if selection is not None:
        chosen = {
            "selector": selector_of(run),
            "structure": [list(clique) for clique in selection.structure.cliques],
            "notes": [*run.remarks, *selection.notes],
            "rounds": list(selection.trace),
            **session_facts([noisy]),
        }
    return {
        "release": str(noisy.saved_as),
        "cost" if selection is None else "spent": spent.to_dict(),
        "left": None if left is None else left.to_dict(),
        **chosen,
        "unmeasured": list(noisy.structure.untold),
    }
